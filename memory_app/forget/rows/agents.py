"""Lock and delete what is stored about one agent: its scopes, one by one, and then its entry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, DateTime, and_, bindparam, delete, func, or_, select, text

from memory_app.db.locks import locking
from memory_app.db.tables.events import webhooks
from memory_app.db.tables.tenancy import agents, scopes, users
from memory_app.db.tables.turns import sessions
from memory_app.forget.rows.persons import COUNTS_ELSEWHERE, DELETE_ROWS, DELETE_SCOPES, TABLES
from memory_app.tenancy.rows import keys
from memory_app.tenancy.shards import Place

_BEFORE = bindparam("before", type_=DateTime(timezone=True))
_IS_AGENT = and_(agents.c.tenant_id == bindparam("tenant"), agents.c.name == bindparam("agent"))
_AGENT_ID = select(agents.c.id).where(_IS_AGENT).scalar_subquery()
_OF_AGENT = and_(scopes.c.tenant_id == bindparam("tenant"), scopes.c.agent_id == _AGENT_ID)


@dataclass(frozen=True, slots=True)
class AgentScope:
    """A scope of the agent. ``user`` None: that of the agent alone."""

    id: int
    user: str | None


# The agent's own first: what it shares with all users may rest on what one of them said.
_SCOPES = (
    select(scopes.c.id, users.c.name.label("user"))
    .outerjoin_from(scopes, users, users.c.id == scopes.c.user_id)
    .where(_OF_AGENT)
    .order_by(scopes.c.user_id.is_not(None), scopes.c.id)
    .limit(bindparam("limit"))
)
_IS_SCOPE = and_(scopes.c.tenant_id == bindparam("tenant"), scopes.c.id == bindparam("scope"))
_HOLD = locking("scope", select(scopes.c.id).where(_IS_SCOPE).with_for_update(key_share=True))
_HOLD_SESSIONS = locking(
    "session",
    select(sessions.c.id)
    .where(sessions.c.scope_id == bindparam("scope"))
    .order_by(sessions.c.id)
    .with_for_update(),
)
_CLOSE = locking("scope", select(scopes.c.id).where(_IS_SCOPE).with_for_update())
_LOCK_AGENT = locking("agent", select(agents.c.id, agents.c.created_at).where(_IS_AGENT).with_for_update())
_HAS_SCOPES = select(func.count() > 0).select_from(scopes).where(_OF_AGENT)
# Those that hear of this agent only. They are in the home shard, as the directory is.
_DELETE_WEBHOOKS = delete(webhooks).where(
    webhooks.c.tenant_id == bindparam("tenant"),
    webhooks.c.agent_name == bindparam("agent"),
    or_(_BEFORE.is_(None), webhooks.c.created_at < _BEFORE),
)
_DELETE_AGENT = delete(agents).where(_IS_AGENT, or_(_BEFORE.is_(None), agents.c.created_at < _BEFORE))


def listed(
    connection: Connection, tenant_id: int, agent: str, *, limit: int | None
) -> tuple[AgentScope, ...]:
    """Scopes of the agent in this shard; ``limit`` None: all."""
    rows = connection.execute(_SCOPES, {"tenant": tenant_id, "agent": agent, "limit": limit})
    return tuple(AgentScope(row.id, row.user) for row in rows)


def close(connection: Connection, tenant_id: int, scope_id: int) -> bool:
    """Take the scope from everybody who writes to it, until the end of the transaction; False: it is gone.

    In the order in which the erasure of a person does: the sessions before the scope is closed.
    """
    values = {"tenant": tenant_id, "scope": scope_id}
    if connection.execute(_HOLD, values).one_or_none() is None:
        return False
    connection.execute(_HOLD_SESSIONS, values)
    return connection.execute(_CLOSE, values).one_or_none() is not None


def delete_scope(connection: Connection, tenant_id: int, scope_id: int) -> dict[str, int]:
    """Delete everything in a closed scope, and the scope; rows by table."""
    values = {"tenant": tenant_id, "scopes": [scope_id]}
    counts = {"evidence elsewhere": connection.execute(COUNTS_ELSEWHERE, values).rowcount}
    for table, statement in DELETE_ROWS.items():
        counts[table] = connection.execute(statement, values).rowcount
    counts["scopes"] = connection.execute(DELETE_SCOPES, values).rowcount
    return {table: count for table, count in counts.items() if count}


def delete_entry(
    connection: Connection, tenant_id: int, agent: str, *, copies: Sequence[Place]
) -> dict[str, int] | None:
    """Delete the agent in the directory and its copies in other shards; None where it has a scope again.

    The connection works in the home shard. From here on to the end of the transaction no scope of it is made.
    """
    values = {"tenant": tenant_id, "agent": agent, "before": None}
    if connection.execute(_LOCK_AGENT, values).one_or_none() is None:
        return delete_named(connection, tenant_id, agent)
    for place in copies:
        is_used = text(
            f"""SELECT EXISTS (SELECT FROM {place.schema}.scopes c JOIN {place.schema}.agents a ON a.id = c.agent_id
            WHERE a.tenant_id = :tenant AND a.name = :agent)"""
        )
        place.connection.execute(
            text(f"SELECT FROM {place.schema}.agents WHERE tenant_id = :tenant AND name = :agent FOR UPDATE"),
            values,
        )
        if place.connection.execute(is_used, values).scalar_one():
            return None
    if connection.execute(_HAS_SCOPES, values).scalar_one():
        return None
    for place in copies:
        place.connection.execute(
            text(f"DELETE FROM {place.schema}.agents WHERE tenant_id = :tenant AND name = :agent"), values
        )
    named = delete_named(connection, tenant_id, agent)
    return {**named, "agents": connection.execute(_DELETE_AGENT, values).rowcount}


def delete_named(
    connection: Connection, tenant_id: int, agent: str, *, before: datetime | None = None
) -> dict[str, int]:
    """Delete the keys and webhooks that are for this agent alone, and so name it; rows by table. In the home shard."""
    values = {"tenant": tenant_id, "agent": agent, "before": before}
    counts = {
        "api_keys": keys.delete_named(connection, agent=agent, before=before),
        "webhooks": connection.execute(_DELETE_WEBHOOKS, values).rowcount,
    }
    return {table: count for table, count in counts.items() if count}


def delete_if_old(connection: Connection, tenant_id: int, agent: str, *, before: datetime) -> int:
    """Delete the entry of an agent without scopes in this shard that was made before that instant."""
    values = {"tenant": tenant_id, "agent": agent, "before": before}
    if connection.execute(_LOCK_AGENT, values).one_or_none() is None:
        return 0
    if connection.execute(_HAS_SCOPES, values).scalar_one():
        return 0
    return connection.execute(_DELETE_AGENT, values).rowcount


def counts(connection: Connection, tenant_id: int, agent: str) -> Mapping[str, int]:
    """Rows by table that an erasure would delete in this shard."""
    return {
        name: count
        for name, statement in _COUNTS.items()
        if (count := connection.execute(statement, {"tenant": tenant_id, "agent": agent}).scalar_one())
    }


_COUNTS = {
    name: text(
        f"""SELECT count(*) FROM {name} t WHERE t.tenant_id = :tenant AND t.scope_id IN (
            SELECT c.id FROM scopes c JOIN agents a ON a.id = c.agent_id
            WHERE a.tenant_id = :tenant AND a.name = :agent)"""
    )
    for name in TABLES
} | {
    "scopes": select(func.count()).select_from(scopes).where(_OF_AGENT),
}
