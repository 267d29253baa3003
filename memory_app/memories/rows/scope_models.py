"""Which models the vectors of a scope come from: what recall has to ask, and what still has to be embedded again.

A row is written before the first vector of its model and goes when the last one is gone. Whoever writes vectors holds
the scope's row shared; whoever takes a model out holds it alone, so that no vector is left without its row here.
"""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import Connection, bindparam, select, text

from memory_app.db.locks import locking
from memory_app.db.tables.search import scope_models
from memory_app.db.tables.tenancy import scopes

# Shared locks let writers pass each other and hold back `remove`, which asks for the same rows alone.
_ADD = text(
    """
    WITH held AS MATERIALIZED (
        SELECT c.id, c.tenant_id FROM scopes c WHERE c.id = ANY(:scopes) ORDER BY c.id FOR KEY SHARE)
    INSERT INTO scope_models (tenant_id, scope_id, model)
    SELECT h.tenant_id, h.id, :model FROM held h
    WHERE NOT EXISTS (SELECT FROM scope_models m WHERE m.scope_id = h.id AND m.model = :model)
    ON CONFLICT DO NOTHING
    """
)
_LOCK = locking("scope", select(scopes.c.id).where(scopes.c.id == bindparam("scope")).with_for_update())
_REMOVE = text(
    """
    DELETE FROM scope_models s WHERE s.scope_id = :scope AND s.model = :model
      AND NOT EXISTS (SELECT FROM turns t WHERE t.scope_id = :scope AND t.embedding_model = :model)
      AND NOT EXISTS (SELECT FROM memories m WHERE m.scope_id = :scope AND m.embedding_model = :model)
    RETURNING model
    """
)
_MARK = text(
    """
    INSERT INTO scope_models (tenant_id, scope_id, model, is_indexed)
    SELECT c.tenant_id, c.id, :model, :is_indexed FROM scopes c WHERE c.id = :scope
    ON CONFLICT (scope_id, model) DO UPDATE SET is_indexed = excluded.is_indexed
    """
)
_INDEXED = (
    select(scope_models.c.model)
    .where(scope_models.c.scope_id == bindparam("scope"), scope_models.c.is_indexed)
    .order_by(scope_models.c.model)
)


def add(connection: Connection, scope_ids: Iterable[int], model: str) -> None:
    """Before vectors of ``model`` are written to these scopes, in the same transaction."""
    # In one order for everybody, so that two writers of several scopes do not wait for each other in a circle.
    scopes = sorted(set(scope_ids))
    if scopes:
        connection.execute(_ADD, {"scopes": scopes, "model": model})


def remove(connection: Connection, scope_id: int, model: str) -> bool:
    """Take the model out if no row of the scope has a vector of it any more; waits for writers under way."""
    # Locked in a statement of its own: the next one then sees what the writers committed that it waited for.
    connection.execute(_LOCK, {"scope": scope_id})
    return connection.execute(_REMOVE, {"scope": scope_id, "model": model}).one_or_none() is not None


def indexed(connection: Connection, scope_id: int) -> tuple[str, ...]:
    """Models for which the scope has search indexes."""
    return tuple(connection.execute(_INDEXED, {"scope": scope_id}).scalars())


def mark(connection: Connection, scope_id: int, model: str, *, is_indexed: bool) -> None:
    """Say that recall may use the scope's search indexes for the model, or not any more."""
    connection.execute(_MARK, {"scope": scope_id, "model": model, "is_indexed": is_indexed})
