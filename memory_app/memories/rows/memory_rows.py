"""What a row of ``memories`` holds: as it is to be written, and as it is read.

The columns follow the fields of `Memory` and `MemoryRow`, so that a new field needs no line here unless its type is
stored in another form.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any
from uuid import UUID

from sqlalchemy import Row

from memory_app.db.vectors import sparse_text, vector_text
from memory_app.language.sentence_type import Trait, traits_of
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


MEMORY_COLUMNS = tuple(field.name for field in fields(Memory) if field.name != "session")
KEY_COLUMNS = tuple(field.name for field in fields(MemoryRow) if field.name != "memory")

COLUMNS = f"""{", ".join(f"m.{name}" for name in ("scope_id", *MEMORY_COLUMNS, *KEY_COLUMNS))},
    (SELECT s.name FROM sessions s WHERE s.scope_id = m.scope_id AND s.id = m.session_id) AS session"""

INSERTED_COLUMNS = (
    *(name for name in MEMORY_COLUMNS if name not in {"id", "successor", "retired_at", "retired_reason"}),
    *KEY_COLUMNS,
    "session_id",
    "run_id",
    "embedding",
    "keywords",
    "terms",
    "traits",
)
"""What is written when a memory is stored; the rest comes from the scope, or when the row is retired."""

CURRENT = "m.retired_at IS NULL AND (m.valid_until IS NULL OR m.valid_until > now())"
"""What a question about now may find."""


def memory_of(row: Row[Any]) -> Memory:
    """The memory of a row that has `COLUMNS`."""
    values = {name: getattr(row, name) for name in (*MEMORY_COLUMNS, "session")}
    for name, read in _READERS.items():
        values[name] = read(values[name])
    return Memory(**values)


def row_of(row: Row[Any]) -> MemoryRow:
    """The memory of a row that has `COLUMNS`, with its keys."""
    keys = {name: getattr(row, name) for name in KEY_COLUMNS}
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


def values_of(new: NewMemory) -> dict[str, Any]:
    """The row by `INSERTED_COLUMNS` as JSON, but for ids and instants, whose text form will do."""
    memory, keys = new.row.memory, new.row
    return {
        **{name: getattr(memory, name) for name in MEMORY_COLUMNS},
        **{name: getattr(keys, name) for name in KEY_COLUMNS},
        "emotional_state": _json(memory.emotional_state),
        "relational_context": _json(memory.relational_context),
        "last_seen": memory.last_seen or memory.created_at,
        "confirmed_at": keys.confirmed_at or memory.valid_from,
        "session_id": new.session_id,
        "run_id": new.run_id,
        "embedding": vector_text(new.embedding),
        "embedding_model": new.embedding_model,
        "keywords": sparse_text(new.keywords),
        "terms": sorted(new.keywords),
        "traits": _traits(memory),
    }


def _traits(memory: Memory) -> int:
    """Of the `ON_DEMAND`; what somebody prefers has a subtype."""
    traits = traits_of(memory.text, by_user=False) & (Trait.QUANTITY | Trait.MOMENT)
    return int(traits | Trait.PREFERENCE if memory.subtype == "preference" else traits)


def _json(value: EmotionalState | RelationalContext | None) -> dict[str, Any] | None:
    return None if value is None else asdict(value)
