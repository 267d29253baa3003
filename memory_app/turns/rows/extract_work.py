"""Rows of sessions that are due for extraction, with what decides about their queue."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import Connection, text


@dataclass(frozen=True, slots=True)
class DueSession:
    """A session that waits to be extracted. ``is_suspect``: a worker began and never said how it ended."""

    id: int
    asks_model: bool
    is_suspect: bool


# A function with rights of its own: a finder looks over all tenants, which row-level security would not let it do.
_DUE = text("SELECT session_id AS id, asks_model, is_suspect FROM due_sessions(:most)")
_CAPPED = text("SELECT capped_tenants FROM capped_tenants(:most)")
_DUE_HERE = """
    SELECT s.id, coalesce(a.policy ->> 'extraction' = 'llm', false) AS asks_model, s.starts > 0 AS is_suspect
    FROM sessions s JOIN scopes c ON c.id = s.scope_id JOIN agents a ON a.id = c.agent_id
    WHERE s.due_at <= now() AND (s.lease_until IS NULL OR s.lease_until <= now())
    """
_DUE_OF = text(
    f"""{_DUE_HERE}
      AND (s.scope_id, s.id) IN (
          SELECT t.scope_id, t.session_id FROM turns t WHERE t.scope_id = ANY(:scopes) AND t.id = ANY(:turns))
    ORDER BY s.id
    """
)
_STILL_DUE = text(f"{_DUE_HERE} AND s.scope_id = :scope AND s.id = :session")


def due_sessions(connection: Connection, *, most: int) -> tuple[DueSession, ...]:
    """Due, free sessions over all tenants, fair across them."""
    return tuple(DueSession(**row._mapping) for row in connection.execute(_DUE, {"most": most}))


def capped_tenants(connection: Connection, *, most: int) -> tuple[int, ...]:
    """Tenants with work that waits for their cap, from a random one on: up to ``most`` with sessions and with runs."""
    return tuple(connection.execute(_CAPPED, {"most": most}).scalars())


def due_sessions_of(
    connection: Connection, scope_ids: Sequence[int], turn_ids: Sequence[UUID]
) -> tuple[DueSession, ...]:
    """Sessions of these turns that are due and free."""
    values = {"scopes": list(scope_ids), "turns": list(turn_ids)}
    return tuple(DueSession(**row._mapping) for row in connection.execute(_DUE_OF, values))


def due_session(connection: Connection, scope_id: int, session_id: int) -> DueSession | None:
    """The session, if it is due and free."""
    row = connection.execute(_STILL_DUE, {"scope": scope_id, "session": session_id}).one_or_none()
    return None if row is None else DueSession(**row._mapping)
