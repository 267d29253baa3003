"""Rows whose vectors are of another model: read in the order of their ids, written only where nobody was faster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import Connection, text

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
_READ = {
    "turns": text(
        """SELECT id, text, speaker, at FROM turns
        WHERE scope_id = :scope AND id > :after AND embedding_model = :model ORDER BY id LIMIT :most"""
    ),
    "memories": text(
        """SELECT id, text FROM memories
        WHERE scope_id = :scope AND id > :after AND embedding_model = :model ORDER BY id LIMIT :most"""
    ),
}
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
_COUNT = text(
    """SELECT (SELECT count(*) FROM turns WHERE scope_id = :scope AND embedding_model = :model)
            + (SELECT count(*) FROM memories WHERE scope_id = :scope AND embedding_model = :model)"""
)

TABLES = tuple(_READ)


def stale_scopes(connection: Connection, *, model: str, most: int) -> tuple[StaleScope, ...]:
    """Scopes of any tenant that hold vectors of other models than ``model``; a scope comes once per model."""
    return tuple(StaleScope(*row) for row in connection.execute(_STALE, {"model": model, "most": most}))


def count(connection: Connection, stale: StaleScope) -> int:
    """Rows of the scope that still have the model."""
    values = {"scope": stale.scope_id, "model": stale.model}
    return int(connection.execute(_COUNT, values).scalar_one())


def read(
    connection: Connection, stale: StaleScope, table: str, *, after: UUID, most: int
) -> tuple[StaleRow, ...]:
    """The next rows of a table that still have the model, in the order of their ids."""
    values = {"scope": stale.scope_id, "model": stale.model, "after": after, "most": most}
    return tuple(StaleRow(*row) for row in connection.execute(_READ[table], values))


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
