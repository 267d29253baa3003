"""Lists of the agents and users of a tenant, by name, and how much there is of each."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, text

from memory_app.tenancy.rows.names import ZONE


@dataclass(frozen=True, slots=True)
class ListedAgent:
    """``users`` counts the people it knows, up to a limit."""

    name: str
    created_at: datetime
    users: int


@dataclass(frozen=True, slots=True)
class ListedUser:
    """A user without counts; ``shard`` holds their rows."""

    name: str
    label: str | None
    time_zone: str
    created_at: datetime
    shard: int


@dataclass(frozen=True, slots=True)
class UserCounts:
    """What is stored of a user with all agents. ``last_activity_at`` None: no session."""

    agents: int
    sessions: int
    turns: int
    memories: int
    last_activity_at: datetime | None


# Where users are spread over shards, each shard has the scopes of its own: the caller sums up.
_AGENTS = text(
    """
    SELECT a.name, a.created_at FROM public.agents a
    WHERE a.tenant_id = :tenant AND a.name > :after ORDER BY a.name LIMIT :limit
    """
)
_USERS_OF_AGENTS = text(
    """
    SELECT n.name, (SELECT count(*) FROM (
        SELECT FROM scopes c WHERE c.tenant_id = :tenant AND c.user_id IS NOT NULL
            AND c.agent_id = (SELECT a.id FROM agents a WHERE a.tenant_id = :tenant AND a.name = n.name)
        LIMIT :most) known) AS users
    FROM unnest(CAST(:names AS text[])) n(name)
    """
)
_USERS = text(
    f"""
    SELECT u.name, u.label, {ZONE} AS time_zone, u.created_at, u.shard FROM public.users u
    WHERE u.tenant_id = :tenant AND u.name > :after ORDER BY u.name LIMIT :limit
    """
)
_COUNTS = text(
    """
    SELECT u.name, count(c.id) AS agents,
        coalesce(sum(s.sessions), 0) AS sessions, coalesce(sum(s.turns), 0) AS turns,
        coalesce(sum(m.memories), 0) AS memories, max(s.last_activity_at) AS last_activity_at
    FROM users u
    LEFT JOIN scopes c ON c.tenant_id = u.tenant_id AND c.user_id = u.id
    LEFT JOIN LATERAL (
        SELECT count(*) AS sessions, sum(e.next_seq - 1) AS turns, max(e.last_activity_at) AS last_activity_at
        FROM sessions e WHERE e.scope_id = c.id) s ON true
    LEFT JOIN LATERAL (
        SELECT count(*) AS memories FROM memories h WHERE h.scope_id = c.id AND h.retired_at IS NULL) m ON true
    WHERE u.tenant_id = :tenant AND u.name = ANY(:names)
    GROUP BY u.name
    """
)


def agents(connection: Connection, tenant_id: int, *, after: str, limit: int) -> dict[str, datetime]:
    """When each agent was made, in the order of names, from the directory."""
    rows = connection.execute(_AGENTS, {"tenant": tenant_id, "after": after, "limit": limit})
    return {row.name: row.created_at for row in rows}


def users_of_agents(
    connection: Connection, tenant_id: int, names: Collection[str], *, most: int
) -> dict[str, int]:
    """How many users of this shard each agent knows; counting stops at ``most``."""
    values = {"tenant": tenant_id, "names": list(names), "most": most}
    return {row.name: row.users for row in connection.execute(_USERS_OF_AGENTS, values)}


def users(connection: Connection, tenant_id: int, *, after: str, limit: int) -> tuple[ListedUser, ...]:
    """Users in the order of names, from the directory."""
    rows = connection.execute(_USERS, {"tenant": tenant_id, "after": after, "limit": limit})
    return tuple(ListedUser(**row._mapping) for row in rows)


def counts(connection: Connection, tenant_id: int, names: Collection[str]) -> dict[str, UserCounts]:
    """What this shard holds of the users; reads an index entry for each of their memories and sessions."""
    rows = connection.execute(_COUNTS, {"tenant": tenant_id, "names": list(names)})
    return {
        row.name: UserCounts(
            agents=row.agents,
            sessions=row.sessions,
            turns=int(row.turns),
            memories=int(row.memories),
            last_activity_at=row.last_activity_at,
        )
        for row in rows
    }
