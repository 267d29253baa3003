"""Sessions and their turns page by page, with what came of each turn."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import Connection, text

from memory_app.records.kinds import question_kinds
from memory_app.records.records import Role, Stage
from memory_app.turns.rows.stages import STAGE

TEXT_CHARS = 4_000
"""Of a turn in a listing."""

MEMORY_CHARS = 300


@dataclass(frozen=True, slots=True)
class SessionLine:
    """A session in a listing. ``number`` counts sessions in the order in which they began."""

    number: int
    name: str
    turns: int
    extracted: int
    created_at: datetime
    last_activity_at: datetime
    ended_at: datetime | None
    parked_reason: str | None


@dataclass(frozen=True, slots=True)
class PastTurn:
    """A turn with the stage it is in and why nothing came of it, if so. ``text`` is its beginning, of ``chars`` in
    all."""

    id: UUID
    seq: int
    role: Role
    speaker: str
    text: str
    chars: int
    at: datetime
    stage: Stage
    reason: str | None
    place: int | None
    words_deleted_at: datetime | None


@dataclass(frozen=True, slots=True)
class Outcome:
    """The beginning of a memory that rests on a turn."""

    turn_id: UUID
    id: UUID
    kind: str
    text: str
    is_current: bool


_SESSIONS = text(
    """
    SELECT s.id AS number, s.name, s.next_seq - 1 AS turns, s.extracted_seq AS extracted, s.created_at,
           s.last_activity_at, s.ended_at, s.parked_reason
    FROM sessions s
    WHERE s.scope_id = :scope AND (CAST(:before AS bigint) IS NULL OR s.id < :before)
    ORDER BY s.id DESC LIMIT :limit
    """
)
_TURNS = text(
    f"""
    SELECT t.id, t.seq, t.role, t.speaker, left(t.text, {TEXT_CHARS}) AS text, length(t.text) AS chars, t.at,
           {STAGE} AS stage, coalesce(t.failed_reason, t.reason) AS reason, t.place, t.words_deleted_at
    FROM turns t
    WHERE t.scope_id = :scope AND t.session_id = :session AND (CAST(:before AS integer) IS NULL OR t.seq < :before)
    ORDER BY t.seq DESC LIMIT :limit
    """
)
_OUTCOMES = text(
    f"""
    SELECT e.turn_id, m.id, m.kind, left(m.text, {MEMORY_CHARS}) AS text, m.retired_at IS NULL AS is_current
    FROM evidence e JOIN memories m ON m.scope_id = e.scope_id AND m.id = e.memory_id
    WHERE e.turn_scope_id = :scope AND e.turn_id = ANY(:turns) AND m.kind <> ALL(:questions)
    ORDER BY e.turn_id, m.id LIMIT :limit
    """
)


def sessions(
    connection: Connection, scope_id: int, *, limit: int, before: int | None
) -> tuple[SessionLine, ...]:
    """Sessions of the scope, the newest first; ``before`` is the last number of the page before."""
    rows = connection.execute(_SESSIONS, {"scope": scope_id, "limit": limit, "before": before})
    return tuple(SessionLine(**row._mapping) for row in rows)


def turns(
    connection: Connection, scope_id: int, session_id: int, *, limit: int, before: int | None
) -> tuple[PastTurn, ...]:
    """Turns of a session, the latest first; ``before`` is the last place of the page before."""
    values = {"scope": scope_id, "session": session_id, "limit": limit, "before": before}
    return tuple(PastTurn(**row._mapping) for row in connection.execute(_TURNS, values))


def outcomes(
    connection: Connection, scope_id: int, turn_ids: Collection[UUID], *, limit: int
) -> tuple[Outcome, ...]:
    """Memories of the scope or its agent that rest on the turns; questions are none."""
    values = {
        "scope": scope_id,
        "turns": list(turn_ids),
        "questions": list(question_kinds()),
        "limit": limit,
    }
    return tuple(Outcome(**row._mapping) for row in connection.execute(_OUTCOMES, values))
