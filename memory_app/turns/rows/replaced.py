"""Turns whose place another turn has taken, and which wait for their erasure."""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

from sqlalchemy import Connection, text

from memory_app.records.records import REPLACED

_TAKE = text(
    """
    UPDATE turns t SET reason = :replaced
    WHERE t.scope_id = :scope AND t.session_id = :session AND t.id = ANY(:ids) AND t.reason IS DISTINCT FROM :replaced
    RETURNING t.id, coalesce(t.place, t.seq) AS place
    """
)
_WAITING = text(
    """
    SELECT t.id FROM turns t
    WHERE t.scope_id = :scope AND t.session_id = :session AND t.seq BETWEEN :low AND :high AND t.reason = :replaced
    ORDER BY t.seq
    """
)


def take(connection: Connection, scope_id: int, session_id: int, ids: Collection[UUID]) -> dict[UUID, int]:
    """Hide turns of a session whose row is locked; the place of each that is there and was not replaced before."""
    values = {"scope": scope_id, "session": session_id, "ids": list(ids), "replaced": REPLACED}
    return {row.id: row.place for row in connection.execute(_TAKE, values)}


def waiting(
    connection: Connection, scope_id: int, session_id: int, *, low: int, high: int
) -> tuple[UUID, ...]:
    """Replaced turns with ``low`` ≤ seq ≤ ``high`` that are not erased yet."""
    values = {"scope": scope_id, "session": session_id, "low": low, "high": high, "replaced": REPLACED}
    return tuple(row.id for row in connection.execute(_WAITING, values))
