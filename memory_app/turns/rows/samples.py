"""Samples of an agent's conversations, and how many turns its tenant had read by a language model."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy import Connection, text

from memory_app.records.records import Role, Turn
from memory_app.tenancy.policy import ExtractionMode


@dataclass(frozen=True, slots=True)
class SampleTurn:
    """A turn, the scope it is of, and when it was accepted, which decides with which others it is read."""

    turn: Turn
    scope_id: int
    accepted_at: datetime


# Whole sessions, the latest first: a part of one would say nothing about how long they are.
_NEWEST = text(
    """
    SELECT t.id, t.scope_id, t.session_id, t.seq, t.role, t.text, t.at, t.accepted_at
    FROM (
        SELECT s.scope_id, s.id FROM sessions s
        JOIN scopes c ON c.id = s.scope_id JOIN agents a ON a.id = c.agent_id
        WHERE a.tenant_id = :tenant AND a.name = :agent ORDER BY s.last_activity_at DESC LIMIT :sessions
    ) s JOIN turns t ON t.scope_id = s.scope_id AND t.session_id = s.id
    ORDER BY t.session_id, t.seq LIMIT :turns
    """
)
_READ_BY_MODEL = text(
    f"""
    SELECT count(*) FROM turns t
    JOIN scopes c ON c.id = t.scope_id JOIN agents a ON a.id = c.agent_id
    WHERE t.tenant_id = :tenant AND t.extracted_at >= now() - CAST(:within AS interval)
      AND a.policy ->> 'extraction' = '{ExtractionMode.LLM}'
    """
)


def newest(
    connection: Connection, tenant_id: int, agent: str, *, sessions: int, turns: int
) -> tuple[SampleTurn, ...]:
    """Turns of the agent's latest sessions with anybody, by session and in order."""
    values = {"tenant": tenant_id, "agent": agent, "sessions": sessions, "turns": turns}
    return tuple(
        SampleTurn(
            Turn(
                id=UUID(str(row.id)),
                session=str(row.session_id),
                seq=row.seq,
                role=Role(row.role),
                speaker=row.role,
                text=row.text,
                at=row.at,
            ),
            scope_id=row.scope_id,
            accepted_at=row.accepted_at,
        )
        for row in connection.execute(_NEWEST, values)
    )


def read_by_model(connection: Connection, tenant_id: int, *, within: timedelta) -> int:
    """Turns that were extracted lately, of agents that ask a model now."""
    return int(connection.execute(_READ_BY_MODEL, {"tenant": tenant_id, "within": within}).scalar_one())
