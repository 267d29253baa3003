"""What the rows of a snapshot hold, field by field, as one table. Pure.

Every field must be there and fit, so that nothing is lost or filled in silently; what is not in the table is left out
of an import, whatever a document says of it. Only a column that was added after the first release may be missing: a
snapshot of before could not have it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from memory_app.db.expressions import nullable_types
from memory_app.db.tables.memories import entities, links, memories
from memory_app.db.tables.turns import sessions, turns
from memory_app.errors import InvalidInput
from memory_app.language.text import TERM_IDS
from memory_app.records.kinds import KINDS
from memory_app.records.records import ENTITY_TYPES, VALENCES, Origin, Retirement, Role
from memory_app.records.scope import check_name
from memory_app.turns.intake import METADATA_DEPTH

# A B-tree entry of PostgreSQL takes 2,704 bytes at most, and a longer one fails the whole import.
KEY_LIMIT = 2_000
"""Longest text that is looked up by an index, in characters."""

# Python's years end at 1 and 9999: converting a time to another zone or adding a half-life must not overflow.
_FIRST_YEAR, _LAST_YEAR = 2, 9_990

# PostgreSQL stores no NUL in text, and a lone surrogate cannot be encoded as UTF-8.
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")
_INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?(Z|[+-]\d\d:\d\d)")
_NUMBER = r"[-+]?\d+(\.\d+)?([eE][-+]?\d+)?"
_VECTOR = re.compile(rf"\[{_NUMBER}(,{_NUMBER})*\]")
_SPARSE = re.compile(rf"\{{(\d+:{_NUMBER}(,\d+:{_NUMBER})*)?\}}/{TERM_IDS}")


@dataclass(frozen=True, slots=True)
class Sort:
    """What a field may hold: words for error messages, and the rule. One of a ``later`` release may be missing."""

    description: str
    fits: Callable[[Any], bool]
    later: bool = False


def _or_null(sort: Sort) -> Sort:
    return Sort(f"{sort.description}, or null", lambda value: value is None or sort.fits(value))


def _list_of(sort: Sort, description: str) -> Sort:
    return Sort(description, lambda value: isinstance(value, list) and all(map(sort.fits, value)))


def _object_of(sorts: Mapping[str, Sort], *, required: Collection[str] = ()) -> Sort:
    """An object with none but these fields."""

    def fits(value: Any) -> bool:
        if not isinstance(value, dict):
            return False
        # An unknown name is refused: it would be stored inside the JSON column and never read.
        if not set(required) <= value.keys() <= sorts.keys():
            return False
        return all(sorts[name].fits(inner) for name, inner in value.items())

    return Sort(f"an object of {', '.join(sorts)}, each as an export writes it,", fits)


def _one_of(names: Collection[str]) -> Sort:
    return Sort(f"one of {', '.join(names)}", lambda value: isinstance(value, str) and value in names)


def _whole(low: int, high: int) -> Sort:
    def fits(value: Any) -> bool:
        # `type` and not `isinstance`: to Python, true and false are whole numbers.
        return type(value) is int and low <= value <= high

    return Sort(f"a whole number from {low} to {high}", fits)


def _number(low: float, high: float) -> Sort:
    def fits(value: Any) -> bool:
        # The range first: isfinite() overflows on a whole number beyond the largest float.
        return type(value) in (int, float) and low <= value <= high and math.isfinite(value)

    return Sort(f"a number from {low:g} to {high:g}", fits)


def _is_text(value: Any) -> bool:
    """Text that Postgres can store."""
    return isinstance(value, str) and _UNSTORABLE.search(value) is None


def _is_id(value: Any) -> bool:
    if not isinstance(value, str):
        return False
    try:
        # Only the canonical form: references are compared as text, and UUID() also reads braces and capitals.
        return str(UUID(value)) == value
    except ValueError:
        return False


def _is_instant(value: Any) -> bool:
    # The pattern first: fromisoformat() also reads dates without a time and times without a zone.
    if not isinstance(value, str) or not _INSTANT.fullmatch(value):
        return False
    try:
        year = datetime.fromisoformat(value).year
    except ValueError:
        return False
    return _FIRST_YEAR <= year <= _LAST_YEAR


def _is_name(value: Any) -> bool:
    try:
        check_name(value, field="name")
    except InvalidInput:
        return False
    return True


def _is_plain(value: Any, *, depth: int) -> bool:
    """JSON that a turn may carry."""
    if isinstance(value, str):
        return _is_text(value)
    if value is None or isinstance(value, bool | int):
        return True
    if isinstance(value, float):
        return math.isfinite(value)
    # The metadata object itself is depth 0, hence one level more than callers may nest.
    if not isinstance(value, dict | list) or depth >= METADATA_DEPTH + 1:
        return False
    inner = value if isinstance(value, list) else [*value, *value.values()]
    return all(_is_plain(item, depth=depth + 1) for item in inner)


def _matches(pattern: re.Pattern[str]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, str) and pattern.fullmatch(value) is not None


ID = Sort("an id, which is a UUID in lower case,", _is_id)
TEXT = Sort("text", _is_text)
FLAG = Sort("true or false", lambda value: isinstance(value, bool))
INSTANT = Sort("a time with its zone", _is_instant)
NAME = Sort("a name", _is_name)
COUNT = _whole(0, 2**31 - 1)
_TEXTS = _list_of(TEXT, "a list of texts")
_STATEMENT = Sort("text that is not empty", lambda value: _is_text(value) and bool(value.strip()))
_KEY = Sort(
    f"text of 1 to {KEY_LIMIT} characters", lambda value: _is_text(value) and 1 <= len(value) <= KEY_LIMIT
)
_METADATA = Sort(
    f"an object of plain JSON, nested {METADATA_DEPTH} deep at most,",
    lambda value: isinstance(value, dict) and _is_plain(value, depth=0),
)
_COUNTS = Sort(
    "an object of whole numbers",
    lambda value: (
        isinstance(value, dict) and all(map(_is_text, value)) and all(map(COUNT.fits, value.values()))
    ),
)
_EMOTION = _object_of(
    {"valence": _one_of(VALENCES), "intensity": _number(0, 1), "user_impact": _or_null(TEXT)},
    required=("valence",),
)
_BOND = _object_of(
    {
        "bond_strength": _or_null(_number(0, 1)),
        "communication_style": _TEXTS,
        "shared_references": _TEXTS,
        "user_values": _TEXTS,
        "user_struggles": _TEXTS,
    }
)
_SMALL = _whole(0, 2**15 - 1)
_EMBEDDED: Mapping[str, Sort] = {
    "embedding": _or_null(Sort("a vector", _matches(_VECTOR))),
    "embedding_model": _or_null(_KEY),
    "keywords": _or_null(Sort(f"a sparse vector of {TERM_IDS} dimensions", _matches(_SPARSE))),
    "terms": _or_null(_list_of(_whole(1, TERM_IDS), "a list of the numbers of terms")),
    "traits": _SMALL,
}

INTERNAL: Mapping[str, tuple[str, ...]] = {
    "nodes": ("session_id", "run_id", "stored_xact", "altered_xact"),
    "entities": ("id",),
    "sessions": ("id", "fence", "lease_until", "starts", "asked_seq", "waits_for_cap"),
    "turns": (
        "user_id",
        "session_id",
        "idempotency_key",
        "request_hash",
        "lease_until",
        "accepted_xact",
        "indexed_xact",
        "settled_xact",
    ),
}
"""Columns that stay inside, besides those of tenant and scope: numbers of this database, leases, what callers sent."""

_FIRST_FIELDS: dict[str, dict[str, Sort]] = {
    "nodes": {
        "id": ID,
        "kind": _one_of(tuple(KINDS)),
        "subtype": _or_null(TEXT),
        "text": _STATEMENT,
        "canonical_key": _KEY,
        "subject": _or_null(TEXT),
        "relation": _or_null(_KEY),
        "object": _or_null(TEXT),
        "subject_key": _or_null(_KEY),
        "object_key": _or_null(_KEY),
        "single_valued": FLAG,
        "importance": _whole(1, 10),
        "confidence": _number(0, 1),
        "pinned": FLAG,
        "origin": _one_of(tuple(Origin)),
        "sources": _TEXTS,
        "emotional_state": _or_null(_EMOTION),
        "relational_context": _or_null(_BOND),
        "tags": _TEXTS,
        "synthesis_type": _or_null(TEXT),
        "valid_from": INSTANT,
        "valid_until": _or_null(INSTANT),
        "created_at": INSTANT,
        "stored_at": INSTANT,
        "last_seen": INSTANT,
        "confirmed_at": INSTANT,
        "last_recalled": _or_null(INSTANT),
        "repeat_count": COUNT,
        "recall_count": COUNT,
        "feedback_score": _number(-1, 1),
        "successor": _or_null(ID),
        "retired_at": _or_null(INSTANT),
        "retired_reason": _or_null(_one_of(tuple(Retirement))),
        "session": _or_null(NAME),
        **_EMBEDDED,
    },
    "links": {
        "source_id": ID,
        "target_id": ID,
        "type": _KEY,
        "weight": _number(-1e9, 1e9),
        "created_at": INSTANT,
    },
    "entities": {
        "key": _KEY,
        "type": _one_of(ENTITY_TYPES),
        "label": TEXT,
        "aliases": _TEXTS,
        "summary": _or_null(TEXT),
        "first_seen": INSTANT,
        "last_seen": INSTANT,
        "mention_count": COUNT,
        "merged_into": _or_null(_KEY),
    },
    "mentions": {"memory_id": ID, "entity": _KEY},
    "sessions": {
        "name": NAME,
        "next_seq": _whole(1, 2**31 - 1),
        "extracted_seq": COUNT,
        "due_at": _or_null(INSTANT),
        "pending_since": _or_null(INSTANT),
        "failures": COUNT,
        "refusals": COUNT,
        "failing_since": _or_null(INSTANT),
        "parked_reason": _or_null(TEXT),
        "replay_seqs": _list_of(COUNT, "a list of whole numbers"),
        "created_at": INSTANT,
        "last_activity_at": INSTANT,
        "ended_at": _or_null(INSTANT),
        "summary": _or_null(TEXT),
        "summary_id": _or_null(ID),
        "synthesized_seq": COUNT,
    },
    "turns": {
        "id": ID,
        "session": NAME,
        "seq": COUNT,
        "role": _one_of(tuple(Role)),
        "speaker": _KEY,
        "text": TEXT,
        "at": INSTANT,
        "accepted_at": INSTANT,
        "emotional_tone": _or_null(TEXT),
        "tools_used": _TEXTS,
        "metadata": _METADATA,
        "starts": _SMALL,
        "failures": _SMALL,
        "indexed_at": _or_null(INSTANT),
        "extracted_at": _or_null(INSTANT),
        "reason": _or_null(TEXT),
        "failed_at": _or_null(INSTANT),
        "failed_reason": _or_null(TEXT),
        **_EMBEDDED,
    },
    "evidence": {"memory_id": ID, "turn_id": ID},
}
"""By list and field, as the first release wrote them."""

_SORTS: Mapping[type[Any], Sort] = {
    str: TEXT,
    bool: FLAG,
    int: COUNT,
    float: _number(-math.inf, math.inf),
    datetime: INSTANT,
    UUID: ID,
    list: _TEXTS,
    dict: _METADATA,
    # What SQLAlchemy says of a column of JSON; the only one is what was redacted of a turn.
    object: _COUNTS,
}
"""By the Python type of a column, for those that have no line of their own."""


def later_fields(types: Mapping[str, type[Any]]) -> dict[str, Sort]:
    """The fields of columns that came after the first release: nullable, since rows of before have nothing there."""
    return {name: replace(_or_null(_SORTS[type]), later=True) for name, type in types.items()}


_TABLES = {"nodes": memories, "links": links, "entities": entities, "sessions": sessions, "turns": turns}

FIELDS: Mapping[str, Mapping[str, Sort]] = {
    **_FIRST_FIELDS,
    **{
        name: _FIRST_FIELDS[name]
        | later_fields(nullable_types(table, without={*_FIRST_FIELDS[name], *INTERNAL.get(name, ())}))
        for name, table in _TABLES.items()
    },
}
"""By list and field. A test compares it with what an export gives."""

TOGETHER: Mapping[str, Sequence[tuple[str, str]]] = {
    "nodes": (("retired_at", "retired_reason"), ("embedding", "embedding_model")),
    "turns": (("failed_at", "failed_reason"), ("embedding", "embedding_model")),
}
"""Pairs of fields that are null both or neither."""

UNIQUE: Mapping[str, tuple[str, ...]] = {
    "nodes": ("id",),
    "links": ("source_id", "target_id", "type"),
    "entities": ("key",),
    "mentions": ("memory_id", "entity"),
    "sessions": ("name",),
    "turns": ("id",),
    "evidence": ("memory_id", "turn_id"),
}
"""What names a row of its list."""

LISTS = tuple(FIELDS)
"""Every list of rows. A checkpoint of a session leaves the last three empty."""


def check_rows(name: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Raise `InvalidInput` naming the first row and field of the list that does not fit by itself."""
    keys: set[tuple[Any, ...]] = set()
    for place, row in enumerate(rows):
        path = f"{name}[{place}]"
        for field, sort in FIELDS[name].items():
            _check_field(row, field, sort, path=path)
        # After the fields: a pair is looked up, so both must be there.
        for first, second in TOGETHER.get(name, ()):
            if (row[first] is None) != (row[second] is None):
                raise wrong(f"{path}.{second}", f"is null where {first} is, and nowhere else")
        key = tuple(row[field] for field in UNIQUE[name])
        if key in keys:
            raise wrong(f"{path}.{UNIQUE[name][0]}", "the same row stands there twice")
        keys.add(key)


def _check_field(row: Mapping[str, Any], field: str, sort: Sort, *, path: str) -> None:
    if field not in row:
        # A snapshot of an older release cannot have a column that was added since.
        if sort.later:
            return
        raise wrong(f"{path}.{field}", "is missing")
    # Not by `require`: a large snapshot has millions of fields, and the messages would be made for each of them.
    if not sort.fits(row[field]):
        raise wrong(f"{path}.{field}", f"{sort.description} is required")


def require(is_fit: bool, path: str, problem: str) -> None:
    """Raise the error for the part of a snapshot at ``path`` unless it fits."""
    if not is_fit:
        raise wrong(path, problem)


def wrong(path: str, problem: str) -> InvalidInput:
    """The error for the part of a snapshot at ``path``."""
    return InvalidInput(f"{path}: {problem}; nothing was imported", field=path)
