"""The form of an export as JSON Lines: a header, one object for each row, and the counts at the end. Pure.

Each line has a ``type``, and the names of the agent and user that the row belongs to.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from memory_app.errors import InvalidInput
from memory_app.records.scope import Scope
from memory_app.transfer.snapshot import FORMAT as SNAPSHOT
from memory_app.transfer.snapshot import VERSION as SNAPSHOT_VERSION
from memory_app.transfer.snapshot import canonical_meta
from memory_app.transfer.snapshot_rows import LISTS

FORMAT = "memory-export"
VERSION = 1

HEADER, END = "header", "end"
# A snapshot is one line of any length: it must not be parsed as a whole to see that it is no header.
HEADER_LIMIT = 10_000
"""Characters of a header at most."""

LIST_OF = {
    "session": "sessions",
    "turn": "turns",
    "memory": "nodes",
    "link": "links",
    "entity": "entities",
    "mention": "mentions",
    "evidence": "evidence",
}
"""Types of lines that an import takes, and the list of a snapshot that each belongs to."""

TYPED_TYPES = ("entity", "link")
"""Types of lines whose rows have a `type` of their own: `entity_type`, `link_type`."""

Json = dict[str, Any]


class Extent(StrEnum):
    """What an export holds: a person with all agents or with one, everybody of an agent, or everything of a tenant."""

    USER = "user"
    SCOPE = "scope"
    AGENT = "agent"
    TENANT = "tenant"


def extent_of(agent: str | None, user: str | None) -> Extent:
    """The extent of an export with these names; None is everybody."""
    if user is not None:
        return Extent.USER if agent is None else Extent.SCOPE
    return Extent.TENANT if agent is None else Extent.AGENT


def line_of(type: str, row: str, *, agent: str | None = None, user: str | None = None) -> str:
    """A row that is JSON already as a line of an export, with its end."""
    names = {"type": type} | ({} if agent is None else {"agent": agent, "user": user})
    # The row is joined as text: to read and write its JSON again would cost more than the rest of an export.
    return f"{json.dumps(names, ensure_ascii=False)[:-1]}, {row[1:]}\n"


def type_of(line: str) -> str:
    """The type of a line that `line_of` made, which stands first in it."""
    return line.split('"', 4)[3]


@dataclass(slots=True)
class Parsed:
    """A whole export: time zones, labels and aliases by user, what each scope holds, and how many lines of other types
    there were."""

    header: Json
    zones: dict[str, str] = field(default_factory=dict)
    user_names: dict[str, tuple[str | None, tuple[str, ...]]] = field(default_factory=dict)
    seeded: dict[Scope, bool] = field(default_factory=dict)
    lists: dict[Scope, dict[str, list[Json]]] = field(default_factory=dict)
    left_out: dict[str, int] = field(default_factory=dict)


def is_header(line: str) -> bool:
    """Whether a file that begins with this line is an export as JSON Lines."""
    if len(line) > HEADER_LIMIT:
        return False
    try:
        header = json.loads(line)
    except ValueError:
        return False
    return isinstance(header, dict) and header.get("format") == FORMAT


def parse_export(lines: Iterable[str]) -> Parsed:
    """Read an export of one user. `InvalidInput` names the line that does not fit, or says that the file was cut."""
    parsed: Parsed | None = None
    counts: dict[str, int] = defaultdict(int)
    end: Json | None = None
    for number, line in enumerate(lines, start=1):
        row = _object(line, number)
        if parsed is None:
            parsed = Parsed(_checked_header(row))
        elif end is not None:
            raise _wrong(number, "stands behind the end")
        elif row["type"] == END:
            end = row
        else:
            counts[row["type"]] += 1
            _take(parsed, row, number)
    if parsed is None:
        raise InvalidInput("the file is empty; nothing was imported", field="path")
    if end is None:
        raise InvalidInput("the file was cut: its last line, the end, is missing; nothing was imported")
    # A file from which lines were taken by hand still has its end.
    if end.get("counts") != dict(counts):
        raise InvalidInput("the file lacks lines or has too many: its counts differ; nothing was imported")
    return parsed


def snapshot_of(parsed: Parsed, scope: Scope, embedder: Json) -> Json:
    """What the export holds of a scope, as a snapshot. The rows must have their vectors."""
    lists = parsed.lists[scope]
    # A memory may rest on a turn of another scope, which a snapshot cannot hold.
    turns = {row["id"] for row in lists["turns"]}
    lists["evidence"] = [row for row in lists["evidence"] if row["turn_id"] in turns]
    return {
        "format": SNAPSHOT,
        "version": SNAPSHOT_VERSION,
        "created_at": parsed.header["created_at"],
        "scope": {
            "agent": scope.agent,
            "user": scope.user,
            "session": None,
            "is_seeded": parsed.seeded[scope],
        },
        "embedder": embedder,
        "canonical": canonical_meta(lists["nodes"]) | {"version": parsed.header["normaliser"]},
        "counts": {name: len(lists[name]) for name in LISTS},
        **lists,
    }


def _object(line: str, number: int) -> Json:
    try:
        row = json.loads(line)
    except ValueError as error:
        raise _wrong(number, "is not JSON; the file was perhaps cut") from error
    if isinstance(row, dict) and isinstance(row.get("type"), str):
        return row
    raise _wrong(number, "is no object with a type")


def _checked_header(row: Mapping[str, Any]) -> Json:
    if row["type"] != HEADER or row.get("format") != FORMAT:
        raise _wrong(1, f"is no header of an export; its format must be {FORMAT!r}")
    if row.get("version") != VERSION:
        raise _wrong(1, f"has version {row.get('version')!r}; this code reads {VERSION}")
    # One import is one transaction, and holds all its rows: too much for more than one person.
    if row.get("extent") not in (Extent.USER, Extent.SCOPE):
        raise InvalidInput(
            "an export of an agent or a tenant is for reading; import the exports of its users, or move the whole "
            "database with `memory move` or pg_dump",
            field="extent",
        )
    for name in ("created_at", "with_vectors", "embedder", "normaliser"):
        if name not in row:
            raise _wrong(1, f"lacks {name}")
    return dict(row)


def _take(parsed: Parsed, row: Json, number: int) -> None:
    """Put a row where its type belongs, without the fields that a line adds to the row of a snapshot."""
    type = row.pop("type")
    if type == "user":
        name = _text(row, "name", number)
        parsed.zones[name] = _zone(row, number)
        parsed.user_names[name] = _names(row, number)
        return
    if type not in LIST_OF and type != "scope":
        # Feedback, runs, checkpoints, grants, and whatever a newer release adds: they are exported to be read.
        parsed.left_out[type] = parsed.left_out.get(type, 0) + 1
        return
    try:
        scope = Scope(_text(row, "agent", number), _text(row, "user", number))
    except InvalidInput as error:
        raise _wrong(number, error.message) from error
    if type == "scope":
        parsed.seeded[scope] = bool(row.get("is_seeded"))
        parsed.lists[scope] = {name: [] for name in LISTS}
        return
    if scope not in parsed.lists:
        raise _wrong(number, "is of an agent and user without a line of the type scope before it")
    del row["agent"], row["user"]
    # The other way round than `rows.exports`, where the type of the line takes the name.
    if type in TYPED_TYPES:
        row["type"] = row.pop(f"{type}_type", None)
    parsed.lists[scope][LIST_OF[type]].append(row)


def _text(row: Json, name: str, number: int) -> str:
    value = row.get(name)
    if not isinstance(value, str):
        raise _wrong(number, f"needs text in {name}")
    return value


def _wrong(number: int, what: str) -> InvalidInput:
    return InvalidInput(f"line {number} {what}; nothing was imported", field=f"line {number}")


def _zone(row: Json, number: int) -> str:
    """The zone that counted for a user: the one that was set, else the offset of the times that they sent."""
    zone = _text(row, "time_zone", number)
    # Both came later: an older export has neither.
    if zone == "UTC" and not row.get("zone_is_set") and row.get("utc_offset") is not None:
        return _text(row, "utc_offset", number)
    return zone


def _names(row: Json, number: int) -> tuple[str | None, tuple[str, ...]]:
    """Label and aliases of a user; both came later than the first exports."""
    label, aliases = row.get("label"), row.get("aliases", [])
    if not isinstance(label, str | None):
        raise _wrong(number, "needs text or null in label")
    if not isinstance(aliases, list) or not all(isinstance(alias, str) for alias in aliases):
        raise _wrong(number, "needs a list of names in aliases")
    return label, tuple(aliases)
