"""What search reads of a turn, deleted when the turn is old: the turn itself stays readable."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import Connection, bindparam, select, text

from memory_app.db.tables.turns import turns

# A few at a time, and without those that somebody holds: indexing of new turns goes on meanwhile.
_LAPSE = text(
    """
    WITH old AS MATERIALIZED (
        SELECT t.id, t.terms FROM turns t
        WHERE t.scope_id = :scope AND t.keywords IS NOT NULL AND t.accepted_at < now() - CAST(:age AS interval)
        ORDER BY t.accepted_at LIMIT :most FOR NO KEY UPDATE SKIP LOCKED
    )
    UPDATE turns t SET embedding = NULL, embedding_model = NULL, keywords = NULL, terms = NULL
    FROM old WHERE t.scope_id = :scope AND t.id = old.id RETURNING old.terms
    """
)
_OLDEST_SEARCHED = (
    select(turns.c.accepted_at)
    .where(turns.c.scope_id == bindparam("scope"), turns.c.keywords.is_not(None))
    .order_by(turns.c.accepted_at)
    .limit(1)
)


def lapse(connection: Connection, scope_id: int, *, age: timedelta, most: int) -> list[tuple[int, ...]]:
    """Delete the search columns of turns accepted longer ago than ``age``; the terms that each of them had."""
    rows = connection.execute(_LAPSE, {"scope": scope_id, "age": age, "most": most})
    return [tuple(row.terms or ()) for row in rows]


def oldest_searched(connection: Connection, scope_id: int) -> datetime | None:
    """When the oldest turn that search can find was accepted."""
    return connection.execute(_OLDEST_SEARCHED, {"scope": scope_id}).scalar_one_or_none()
