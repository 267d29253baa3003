"""How much there is of what: for statistics, and the list of turns that failed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import Connection, text


@dataclass(frozen=True, slots=True)
class ScopeCounts:
    """Rows of a scope, besides its memories."""

    turns: int
    failed_turns: int
    sessions: int
    links: int
    entities: int
    retired_memories: int


@dataclass(frozen=True, slots=True)
class FailedTurn:
    """A turn that was set aside: where it stands and why, never what was said."""

    id: UUID
    agent: str
    user: str | None
    session: str
    seq: int
    accepted_at: datetime
    failed_at: datetime
    reason: str
    attempts: int


_COUNTS = text(
    """
    SELECT
        (SELECT count(*) FROM turns WHERE scope_id = ANY(:scopes)) AS turns,
        (SELECT count(*) FROM turns WHERE scope_id = ANY(:scopes) AND failed_at IS NOT NULL) AS failed_turns,
        (SELECT count(*) FROM sessions WHERE scope_id = ANY(:scopes)) AS sessions,
        (SELECT count(*) FROM links WHERE scope_id = ANY(:scopes)) AS links,
        (SELECT count(*) FROM entities WHERE scope_id = ANY(:scopes) AND merged_into IS NULL) AS entities,
        (SELECT count(*) FROM memories WHERE scope_id = ANY(:scopes) AND retired_at IS NOT NULL)
            AS retired_memories
    """
)
_FAILED = text(
    """
    SELECT t.id, a.name AS agent, u.name AS user, s.name AS session, t.seq, t.accepted_at, t.failed_at,
           t.failed_reason, t.starts + t.failures AS attempts
    FROM turns t
    JOIN scopes c ON c.id = t.scope_id
    JOIN agents a ON a.id = c.agent_id
    LEFT JOIN users u ON u.id = c.user_id
    JOIN sessions s ON s.scope_id = t.scope_id AND s.id = t.session_id
    WHERE t.tenant_id = :tenant AND t.failed_at IS NOT NULL
      AND (CAST(:before AS uuid) IS NULL OR t.id < :before)
    ORDER BY t.id DESC LIMIT :limit
    """
)


def of_scopes(connection: Connection, scope_ids: Sequence[int]) -> ScopeCounts:
    return ScopeCounts(*connection.execute(_COUNTS, {"scopes": list(scope_ids)}).one())


def failed(
    connection: Connection, tenant_id: int, *, limit: int, before: UUID | None
) -> tuple[FailedTurn, ...]:
    """Turns of this tenant that failed, newest first; ``before`` is the last id of the page before."""
    values = {"tenant": tenant_id, "limit": limit, "before": before}
    return tuple(FailedTurn(*row) for row in connection.execute(_FAILED, values))
