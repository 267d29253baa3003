"""Rows of turns that failed: set them aside with a reason, list them, replay or discard them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import Connection, bindparam, func, null, text, update

from memory_app.db.expressions import among
from memory_app.db.tables.turns import turns


@dataclass(frozen=True, slots=True)
class FailedTurn:
    """A turn that was set aside, without its text: where it stands, since when, why, and in which stage."""

    id: UUID
    agent: str
    user: str
    session: str
    seq: int
    accepted_at: datetime
    failed_at: datetime
    reason: str
    attempts: int
    is_indexed: bool


_FAIL = (
    update(turns)
    .where(turns.c.scope_id == bindparam("scope"), among(turns.c.id, "ids"), turns.c.failed_at.is_(None))
    .values(failed_at=func.now(), lease_until=null())
    .returning(turns.c.id)
)
_FAILED = text(
    """
    SELECT t.id, a.name AS agent, u.name AS user, s.name AS session, t.seq, t.accepted_at, t.failed_at,
           t.failed_reason AS reason, t.starts + t.failures AS attempts, t.indexed_at IS NOT NULL AS is_indexed
    FROM turns t
    JOIN sessions s ON s.scope_id = t.scope_id AND s.id = t.session_id
    JOIN scopes c ON c.id = t.scope_id JOIN agents a ON a.id = c.agent_id JOIN users u ON u.id = c.user_id
    WHERE t.failed_at IS NOT NULL AND t.extracted_at IS NULL
      AND (CAST(:before AS uuid) IS NULL OR t.id < :before)
    ORDER BY t.id DESC LIMIT :limit
    """
)
_SETTLE = (
    update(turns)
    .where(turns.c.id == bindparam("turn"), turns.c.failed_at.is_not(None), turns.c.extracted_at.is_(None))
    .returning(turns.c.scope_id, turns.c.session_id, turns.c.seq)
)
"""Change a turn that was set aside, unless it was replayed or discarded already."""
# Due from now on, not since it was accepted: nobody was late.
_REPLAY = _SETTLE.values(failed_at=null(), failed_reason=null(), starts=0, failures=0, lease_until=func.now())
_DISCARD = _SETTLE.values(extracted_at=func.now())


def fail(connection: Connection, scope_id: int, ids: Sequence[UUID], *, reason: str) -> tuple[UUID, ...]:
    """Set turns aside with a reason; the ids that were not failed before."""
    rows = connection.execute(_FAIL, {"scope": scope_id, "ids": list(ids), "failed_reason": reason})
    return tuple(row.id for row in rows)


def failed(connection: Connection, *, limit: int, before: UUID | None) -> tuple[FailedTurn, ...]:
    """Turns of this tenant that wait for a replay or a discard, newest first."""
    rows = connection.execute(_FAILED, {"limit": limit, "before": before})
    return tuple(FailedTurn(**row._mapping) for row in rows)


def replay(connection: Connection, turn_id: UUID) -> tuple[int, int, int] | None:
    """Take back the failure; the turn's (scope, session, seq), or None when it had not failed."""
    row = connection.execute(_REPLAY, {"turn": turn_id}).one_or_none()
    return None if row is None else (row.scope_id, row.session_id, row.seq)


def discard(connection: Connection, turn_id: UUID) -> tuple[int, int, int] | None:
    """Close a failed turn without effects; its (scope, session, seq), or None when it had not failed."""
    row = connection.execute(_DISCARD, {"turn": turn_id}).one_or_none()
    return None if row is None else (row.scope_id, row.session_id, row.seq)
