"""Who is remembered by whom: the pairs of a user and an agent."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, text


@dataclass(frozen=True, slots=True)
class Person:
    """A user and an agent that remembers them. ``number`` counts users in the order in which they came; each agent of
    one user has the same."""

    number: int
    user: str
    label: str | None
    agent: str
    since: datetime
    last_activity_at: datetime | None


# Users page by page first, by the index of their numbers; then the agents of these few.
_PEOPLE = text(
    """
    WITH page AS MATERIALIZED (
        SELECT u.id, u.name, u.label FROM users u
        WHERE u.tenant_id = :tenant AND (CAST(:user AS text) IS NULL OR u.name = :user)
          AND (CAST(:before AS bigint) IS NULL OR u.id < :before)
          AND EXISTS (SELECT FROM scopes c WHERE c.tenant_id = u.tenant_id AND c.user_id = u.id)
        ORDER BY u.id DESC LIMIT :limit)
    SELECT p.id AS number, p.name AS user, p.label, a.name AS agent, c.created_at AS since,
           (SELECT max(s.last_activity_at) FROM sessions s WHERE s.scope_id = c.id) AS last_activity_at
    FROM page p JOIN scopes c ON c.tenant_id = :tenant AND c.user_id = p.id JOIN agents a ON a.id = c.agent_id
    ORDER BY p.id DESC, a.name
    """
)


def listed(
    connection: Connection, tenant_id: int, *, user: str | None, limit: int, before: int | None
) -> tuple[Person, ...]:
    """All agents of ``limit`` users, the newest user first; ``user`` is the one that is looked for."""
    values = {"tenant": tenant_id, "user": user, "limit": limit, "before": before}
    return tuple(Person(**row._mapping) for row in connection.execute(_PEOPLE, values))
