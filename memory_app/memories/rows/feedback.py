"""Feedback: what was said about an answer or a memory, and the scores it moves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import Connection, and_, bindparam, func, insert, select, text, update

from memory_app.db.expressions import among
from memory_app.db.tables.memories import evidence, feedback, memories
from memory_app.db.tables.turns import sessions, turns
from memory_app.records.records import LinkType, Retirement, Role

_ADD = insert(feedback).returning(feedback.c.id)
_OF_TURN = (
    select(memories.c.id)
    .join_from(
        evidence,
        memories,
        and_(memories.c.scope_id == evidence.c.scope_id, memories.c.id == evidence.c.memory_id),
    )
    .where(
        evidence.c.turn_scope_id == bindparam("scope"),
        evidence.c.turn_id == bindparam("turn"),
        evidence.c.scope_id == bindparam("scope"),
        memories.c.retired_at.is_(None),
    )
    .order_by(memories.c.id)
)
_SIMILAR = text(
    f"""
    SELECT m.id FROM memories m
    WHERE m.scope_id = :scope AND m.retired_at IS NULL AND NOT m.id = ANY(:ids) AND m.id IN (
        SELECT l.target_id FROM links l
        WHERE l.scope_id = :scope AND l.source_id = ANY(:ids) AND l.type = '{LinkType.SIMILAR_TO}'
        UNION
        SELECT l.source_id FROM links l
        WHERE l.scope_id = :scope AND l.target_id = ANY(:ids) AND l.type = '{LinkType.SIMILAR_TO}')
    ORDER BY m.id
    """
)
_MOVE = (
    update(memories)
    .where(memories.c.scope_id == bindparam("scope"), among(memories.c.id, "ids"))
    .values(feedback_score=func.greatest(-1, func.least(1, memories.c.feedback_score + bindparam("by"))))
)
_TURN = (
    select(turns.c.scope_id, turns.c.role, turns.c.accepted_at, sessions.c.name)
    .join_from(
        turns,
        sessions,
        and_(sessions.c.scope_id == turns.c.scope_id, sessions.c.id == turns.c.session_id),
    )
    .where(among(turns.c.scope_id, "scopes"), turns.c.id == bindparam("turn"))
)
_CURRENT = (
    select(memories.c.id)
    .where(
        memories.c.scope_id == bindparam("scope"),
        among(memories.c.id, "ids"),
        memories.c.retired_at.is_(None),
    )
    .order_by(memories.c.id)
)
# Followed only through merges: what superseded a memory says something else, which nobody rated.
_STANDING = text(
    f"""
    WITH RECURSIVE after AS (
        SELECT m.id, m.successor, m.retired_reason FROM memories m WHERE m.scope_id = :scope AND m.id = :id
        UNION
        SELECT m.id, m.successor, m.retired_reason FROM after a
        JOIN memories m ON m.scope_id = :scope AND m.id = a.successor
        WHERE a.retired_reason = '{Retirement.MERGED}'
    )
    SELECT id FROM after WHERE retired_reason IS DISTINCT FROM '{Retirement.MERGED}' OR successor IS NULL
    """
)


@dataclass(frozen=True, slots=True)
class RatedTurn:
    """Where a turn belongs, who said it, and when it was accepted."""

    scope_id: int
    role: Role
    session: str
    accepted_at: datetime


def add(
    connection: Connection,
    tenant_id: int,
    scope_id: int,
    *,
    turn_id: UUID | None,
    memory_id: UUID | None,
    label: str,
    note: str | None,
) -> int:
    """One row; its number in the scope's table. Exactly one of the targets is given."""
    values = {
        "tenant_id": tenant_id,
        "scope_id": scope_id,
        "turn_id": turn_id,
        "memory_id": memory_id,
        "label": label,
        "note": note,
    }
    return int(connection.execute(_ADD, values).scalar_one())


def turn(connection: Connection, scope_ids: Sequence[int], turn_id: UUID) -> RatedTurn | None:
    """The turn, if it belongs to any of the scopes."""
    row = connection.execute(_TURN, {"scopes": list(scope_ids), "turn": turn_id}).one_or_none()
    return None if row is None else RatedTurn(row.scope_id, Role(row.role), row.name, row.accepted_at)


def standing(connection: Connection, scope_id: int, memory_id: UUID) -> UUID | None:
    """The memory itself, or what it was merged into, however many times; None when it is gone."""
    values = {"scope": scope_id, "id": memory_id}
    return connection.execute(_STANDING, values).scalar_one_or_none()


def memories_of_turn(connection: Connection, scope_id: int, turn_id: UUID) -> tuple[UUID, ...]:
    """Current memories that rest on a turn; for an answer these include the questions it answered."""
    return tuple(connection.execute(_OF_TURN, {"scope": scope_id, "turn": turn_id}).scalars())


def current(connection: Connection, scope_id: int, ids: Sequence[UUID]) -> tuple[UUID, ...]:
    """Those of the memories that are not retired."""
    return tuple(connection.execute(_CURRENT, {"scope": scope_id, "ids": list(ids)}).scalars())


def similar(connection: Connection, scope_id: int, ids: Sequence[UUID]) -> tuple[UUID, ...]:
    """Current memories linked as similar to any of ``ids``, whichever end the link began at; none of ``ids``."""
    return tuple(connection.execute(_SIMILAR, {"scope": scope_id, "ids": list(ids)}).scalars())


def move(connection: Connection, scope_id: int, ids: Sequence[UUID], *, by: float) -> None:
    """Add ``by`` to the scores, which stay within −1…1."""
    if ids:
        connection.execute(_MOVE, {"scope": scope_id, "ids": list(ids), "by": by})
