"""What search reads of a turn, deleted when the turn is old or is not to be kept: the turn itself stays readable."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy import Connection, text

# What no model has curated is in no memory, and would be lost with its place in the search.
_CURATED = """EXISTS (SELECT FROM sessions s WHERE s.scope_id = t.scope_id AND s.id = t.session_id
                      AND s.synthesized_seq >= t.seq)"""
# A few at a time, and without those that somebody holds: indexing of new turns goes on meanwhile.
_LAPSE = text(
    f"""
    WITH old AS MATERIALIZED (
        SELECT t.id, t.terms FROM turns t
        WHERE t.scope_id = :scope AND t.keywords IS NOT NULL
          AND (t.accepted_at < now() - CAST(:limit AS interval)
               OR t.accepted_at < now() - CAST(:age AS interval) AND {_CURATED})
        ORDER BY t.accepted_at LIMIT :most FOR NO KEY UPDATE SKIP LOCKED
    )
    UPDATE turns t SET embedding = NULL, embedding_model = NULL, keywords = NULL, terms = NULL
    FROM old WHERE t.scope_id = :scope AND t.id = old.id RETURNING old.terms
    """
)
_WITHDRAW = text(
    """
    UPDATE turns t SET embedding = NULL, embedding_model = NULL, keywords = NULL, terms = NULL
    FROM turns old WHERE t.scope_id = :scope AND t.id = ANY(:ids) AND t.keywords IS NOT NULL
      AND old.scope_id = t.scope_id AND old.id = t.id
    RETURNING old.terms
    """
)
_NEXT_LAPSE = text(
    f"""
    SELECT least(
        (SELECT min(t.accepted_at) + CAST(:limit AS interval) FROM turns t
         WHERE t.scope_id = :scope AND t.keywords IS NOT NULL),
        (SELECT min(t.accepted_at) + CAST(:age AS interval) FROM turns t
         WHERE t.scope_id = :scope AND t.keywords IS NOT NULL AND {_CURATED}))
    """
)


def lapse(
    connection: Connection, scope_id: int, *, age: timedelta, limit: timedelta | None, most: int
) -> list[tuple[int, ...]]:
    """Delete the search columns of turns accepted longer ago than ``age`` that a model has curated, and of all that are
    older than ``limit`` (None: there is no limit); the terms that each of them had."""
    values = {"scope": scope_id, "age": age, "limit": limit, "most": most}
    rows = connection.execute(_LAPSE, values)
    return [tuple(row.terms or ()) for row in rows]


def withdraw(connection: Connection, scope_id: int, ids: Sequence[UUID]) -> list[tuple[int, ...]]:
    """Delete the search columns of these turns; the terms that each of those had which were indexed already."""
    if not ids:
        return []
    return [
        tuple(row.terms or ()) for row in connection.execute(_WITHDRAW, {"scope": scope_id, "ids": list(ids)})
    ]


def next_lapse(
    connection: Connection, scope_id: int, *, age: timedelta, limit: timedelta | None
) -> datetime | None:
    """When the next turn loses its search columns; None: none that search can find will, as things are."""
    values = {"scope": scope_id, "age": age, "limit": limit}
    return connection.execute(_NEXT_LAPSE, values).scalar_one()  # type: ignore[no-any-return]
