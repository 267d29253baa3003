"""What a row of ``memories`` holds: as it is to be written, and as it is read.

The columns are those of the table that `Memory` and `MemoryRow` have a field for, so that a new field needs no line
here unless its type is stored in another form.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import Column, Row, and_, func, or_, select

from memory_app.db.expressions import column_list, columns_of
from memory_app.db.tables.memories import memories
from memory_app.db.tables.turns import sessions
from memory_app.db.vectors import sparse_text, vector_text
from memory_app.language.sentence_type import Trait, traits_of
from memory_app.memories import vital
from memory_app.records.records import (
    EmotionalState,
    Memory,
    MemoryRow,
    Origin,
    RelationalContext,
    Retirement,
)


@dataclass(frozen=True, slots=True)
class NewMemory:
    """A row to be: everything decided, vectors at hand. The database gives it its id."""

    row: MemoryRow
    embedding: Sequence[float]
    embedding_model: str
    keywords: dict[int, float]
    session_id: int | None = None
    run_id: UUID | None = None


@dataclass(frozen=True, slots=True)
class ScopedMemory:
    """A memory and the scope that it belongs to."""

    scope_id: int
    memory: Memory


_MEMORY = columns_of(memories, Memory)
_KEYS = columns_of(memories, MemoryRow)
_READ = (memories.c.scope_id, *_MEMORY, *_KEYS)

COLUMNS = f"""{column_list(_READ, "m")},
    (SELECT s.name FROM sessions s WHERE s.scope_id = m.scope_id AND s.id = m.session_id) AS session"""
"""What `memory_of` and `row_of` read, for text SQL in which the table is called ``m``."""

MEMORIES = select(
    *_READ,
    select(sessions.c.name)
    .where(sessions.c.scope_id == memories.c.scope_id, sessions.c.id == memories.c.session_id)
    .scalar_subquery()
    .label("session"),
)
"""The same as `COLUMNS`, to be narrowed down."""

INSERTED_COLUMNS = (
    *(column for column in _MEMORY if column.name not in {"id", "successor", "retired_at", "retired_reason"}),
    *_KEYS,
    memories.c.session_id,
    memories.c.run_id,
    memories.c.embedding,
    memories.c.keywords,
    memories.c.terms,
    memories.c.traits,
)
"""What is written when a memory is stored; the rest comes from the scope, or when the row is retired."""

KEPT_ON_REPETITION = frozenset(
    {
        # What a memory says never changes, nor does what is computed of it.
        *("kind", "text", "canonical_key", "embedding", "embedding_model", "keywords", "terms"),
        # Where and when it was first stored.
        *("session_id", "run_id", "created_at"),
        # Moved by recall and feedback alone, without the lock on the scope.
        *("last_recalled", "recall_count", "feedback_score"),
    }
)
"""Columns that saying it again leaves alone; every other one is united with what was said."""

REPEATED_COLUMNS = tuple(column for column in INSERTED_COLUMNS if column.name not in KEPT_ON_REPETITION)

IS_CURRENT = and_(
    memories.c.retired_at.is_(None),
    or_(memories.c.valid_until.is_(None), memories.c.valid_until > func.now()),
)
"""What a question about now may find."""
CURRENT = "m.retired_at IS NULL AND (m.valid_until IS NULL OR m.valid_until > now())"
"""`IS_CURRENT` for text SQL in which the table is called ``m``."""


_MEMORY_NAMES = (*(column.name for column in _MEMORY), "session")


def memory_of(row: Row[*tuple[Any, ...]]) -> Memory:
    """The memory of a row that has `COLUMNS`."""
    values = {name: getattr(row, name) for name in _MEMORY_NAMES}
    # Few columns need it: a window reads hundreds of rows, and each conversion costs.
    for name, read in _READERS.items():
        values[name] = read(values[name])
    return Memory(**values)


def row_of(row: Row[*tuple[Any, ...]]) -> MemoryRow:
    """The memory of a row that has `COLUMNS`, with its keys."""
    keys = _fields(row, _KEYS)
    # The driver returns arrays as lists; a record holds tuples.
    return MemoryRow(memory_of(row), **keys | {"sources": tuple(row.sources)})


def _emotional(value: dict[str, Any] | None) -> EmotionalState | None:
    return EmotionalState(**value) if value else None


def _retirement(value: str | None) -> Retirement | None:
    return None if value is None else Retirement(value)


def _relational(value: dict[str, Any] | None) -> RelationalContext | None:
    if not value:
        return None
    lists = {key: tuple(items) for key, items in value.items() if key != "bond_strength"}
    return RelationalContext(bond_strength=value.get("bond_strength"), **lists)


_READERS: Mapping[str, Callable[[Any], Any]] = {
    "tags": tuple,
    "origin": Origin,
    "retired_reason": _retirement,
    "emotional_state": _emotional,
    "relational_context": _relational,
}
"""Columns whose Python type is not that of the driver."""


def statement_values(row: MemoryRow) -> dict[str, Any]:
    """What the row says, by column, as JSON, but for ids and instants, whose text form will do."""
    memory = row.memory
    return {
        # Every column of a field first, then those whose stored form is another.
        **_fields(memory, _MEMORY),
        **_fields(row, _KEYS),
        "emotional_state": _json(memory.emotional_state),
        "relational_context": _json(memory.relational_context),
        "last_seen": memory.last_seen or memory.created_at,
        "confirmed_at": row.confirmed_at or memory.valid_from,
        "traits": _traits(memory),
    }


def values_of(new: NewMemory) -> dict[str, Any]:
    """The row by `INSERTED_COLUMNS`, in the form of `statement_values`."""
    return {
        **statement_values(new.row),
        "session_id": new.session_id,
        "run_id": new.run_id,
        "embedding": vector_text(new.embedding),
        "embedding_model": new.embedding_model,
        "keywords": sparse_text(new.keywords),
        "terms": sorted(new.keywords),
    }


def _fields(record: object, columns: Iterable[Column[Any]]) -> dict[str, Any]:
    return {column.name: getattr(record, column.name) for column in columns}


def _traits(memory: Memory) -> int:
    """Of the `ON_DEMAND`, and whether it is vital; what somebody prefers has a subtype."""
    traits = traits_of(memory.text, by_user=False) & (Trait.QUANTITY | Trait.MOMENT)
    if memory.subtype == "preference":
        traits |= Trait.PREFERENCE
    return int(traits) | vital.BIT if vital.is_vital(memory) else int(traits)


def _json(value: EmotionalState | RelationalContext | None) -> dict[str, Any] | None:
    return None if value is None else asdict(value)
