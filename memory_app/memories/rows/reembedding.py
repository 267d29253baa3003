"""Rows whose vectors are of another model: read in the order of their ids, written only where nobody was faster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, Table, and_, bindparam, func, select, text

from memory_app.db.expressions import columns_of
from memory_app.db.tables.memories import memories
from memory_app.db.tables.turns import turns
from memory_app.db.vectors import vector_text

FIRST = UUID(int=0)


@dataclass(frozen=True, slots=True)
class StaleScope:
    """A scope that holds vectors of ``model``, which is not the current one."""

    tenant_id: int
    scope_id: int
    model: str


@dataclass(frozen=True, slots=True)
class StaleRow:
    """A row to embed. ``speaker`` and ``at`` are a turn's; a memory is embedded by its text alone."""

    id: UUID
    text: str
    speaker: str | None = None
    at: datetime | None = None


_STALE = text("SELECT tenant_id, scope_id, model FROM stale_scopes(:model, :most)")
_TABLES = {"turns": turns, "memories": memories}


def _is_stale(table: Table) -> ColumnElement[bool]:
    return and_(table.c.scope_id == bindparam("scope"), table.c.embedding_model == bindparam("model"))


_READ = {
    name: select(*columns_of(table, StaleRow))
    .where(_is_stale(table), table.c.id > bindparam("after"))
    .order_by(table.c.id)
    .limit(bindparam("most"))
    for name, table in _TABLES.items()
}
# A row that has another model by now was written by somebody faster, and is left alone.
_WRITE = {
    table: text(
        f"""
        UPDATE {table} r SET embedding = CAST(v.embedding AS halfvec), embedding_model = :new_model
        FROM unnest(CAST(:ids AS uuid[]), CAST(:embeddings AS text[])) AS v(id, embedding)
        WHERE r.scope_id = :scope AND r.id = v.id AND r.embedding_model = :model
        """
    )
    for table in _READ
}
_STALE_TURNS, _STALE_MEMORIES = (
    select(func.count()).where(_is_stale(table)).scalar_subquery() for table in _TABLES.values()
)
_COUNT = select(_STALE_TURNS + _STALE_MEMORIES)
TABLES = tuple(_TABLES)


def stale_scopes(connection: Connection, *, model: str, limit: int) -> tuple[StaleScope, ...]:
    """Scopes of any tenant that hold vectors of other models than ``model``; a scope comes once per model."""
    return tuple(StaleScope(*row) for row in connection.execute(_STALE, {"model": model, "most": limit}))


def count(connection: Connection, stale: StaleScope) -> int:
    """Rows of the scope that still have the model."""
    values = {"scope": stale.scope_id, "model": stale.model}
    return int(connection.execute(_COUNT, values).scalar_one())


def read(
    connection: Connection, stale: StaleScope, table: str, *, after: UUID, limit: int
) -> tuple[StaleRow, ...]:
    """The next rows of a table that still have the model, in the order of their ids."""
    values = {"scope": stale.scope_id, "model": stale.model, "after": after, "most": limit}
    return tuple(StaleRow(**row._mapping) for row in connection.execute(_READ[table], values))


def write(
    connection: Connection,
    stale: StaleScope,
    table: str,
    vectors: Sequence[tuple[UUID, Sequence[float]]],
    *,
    model: str,
) -> int:
    """Put the new vectors in place of those of the old model; how many rows still had it."""
    values = {
        "scope": stale.scope_id,
        "model": stale.model,
        "new_model": model,
        "ids": [id for id, _ in vectors],
        "embeddings": [vector_text(vector) for _, vector in vectors],
    }
    return connection.execute(_WRITE[table], values).rowcount
