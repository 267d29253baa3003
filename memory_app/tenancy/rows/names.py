"""From the names a caller gives to the compact keys that rows carry. The only place that resolves a scope."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any, TypeVar

from sqlalchemy import (
    Connection,
    Row,
    Table,
    TextClause,
    bindparam,
    func,
    select,
    text,
    update,
)

from memory_app.db.expressions import among, column_list
from memory_app.db.locks import locking
from memory_app.db.shards import HOME, at_home, directory_of, home_engine_of, shard_of
from memory_app.db.tables.tenancy import agents, scopes, users
from memory_app.db.tables.turns import sessions
from memory_app.errors import Moved, NotFound
from memory_app.records.scope import Scope

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class ScopeRow:
    """Keys and what else is read with them. ``visible`` are the ids of the scopes of this shard that a question in this
    scope may look at, and ``shared`` those of the home shard, where that is another one."""

    id: int
    agent_id: int
    user_id: int | None
    time_zone: str
    agent: str
    user: str | None
    label: str | None
    """What the app calls the user."""
    aliases: tuple[str, ...]
    policy: dict[str, Any]
    persona: dict[str, Any] | None
    default_memories: list[dict[str, Any]]
    seeded_at: datetime | None
    """When the agent's default memories were stored in it; None: not yet."""
    now: datetime
    """The database's clock when the row was read."""
    visible: tuple[int, ...]
    shared: tuple[int, ...]

    @property
    def is_seeded(self) -> bool:
        return self.seeded_at is not None

    @property
    def own_first(self) -> tuple[int, ...]:
        """All of them, with this scope before the wider ones."""
        return (self.id, *(scope for scope in (*self.visible, *self.shared) if scope != self.id))


ZONE = """CASE WHEN u.zone_is_set OR u.time_zone <> 'UTC' THEN u.time_zone
         ELSE coalesce(u.utc_offset, 'UTC') END"""
"""The zone that is set for the user ``u``, else the offset of their newest turn that has one; UTC without a user."""

_COLUMNS = f"""c.id, c.agent_id, c.user_id, {ZONE} AS time_zone, a.name AS agent,
    u.name AS user, u.label, coalesce(u.aliases, '{{}}') AS aliases,
    a.policy, a.persona, a.default_memories, c.seeded_at, now() AS now,
    ARRAY(SELECT c.id UNION
          SELECT v.id FROM scopes v
          WHERE v.tenant_id = c.tenant_id AND v.agent_id = c.agent_id AND v.user_id IS NULL ORDER BY 1) AS visible,
    {{shared}} AS shared"""
_SHARED = """ARRAY(SELECT v.id FROM public.scopes v
          WHERE current_schema() <> 'public'
            AND v.tenant_id = c.tenant_id AND v.agent_id = c.agent_id AND v.user_id IS NULL ORDER BY 1)"""
# Asked of the directory, where that is on another server.
_SHARED_OF_AGENT = text(
    "SELECT v.id FROM public.scopes v WHERE v.agent_id = :agent AND v.user_id IS NULL ORDER BY 1"
)

# An agent may know a million people. Names become keys before the scope is looked for, so that no plan, however old
# the statistics, can come by way of all of them.
AGENT_ID = "(SELECT id FROM agents WHERE tenant_id = :tenant AND name = :agent)"
USER_ID = "(SELECT id FROM users WHERE tenant_id = :tenant AND name = :user)"
_SESSION_ID = select(sessions.c.id).where(
    sessions.c.scope_id == bindparam("scope"), sessions.c.name == bindparam("name")
)
_FIND = f"""
    SELECT {_COLUMNS}
    FROM scopes c JOIN agents a ON a.id = c.agent_id JOIN users u ON u.id = c.user_id
    WHERE c.tenant_id = :tenant AND c.agent_id = {AGENT_ID} AND c.user_id = {USER_ID}
    """
_FIND_OF_AGENT = f"""
    SELECT {_COLUMNS}
    FROM scopes c JOIN agents a ON a.id = c.agent_id LEFT JOIN users u ON u.id = c.user_id
    WHERE c.tenant_id = :tenant AND c.agent_id = {AGENT_ID} AND c.user_id IS NULL
    """
_READ = f"""
    SELECT {_COLUMNS}
    FROM scopes c JOIN agents a ON a.id = c.agent_id LEFT JOIN users u ON u.id = c.user_id
    WHERE c.id = :scope
    """

# First in the directory. Another shard then gets a copy of the rows, for its foreign keys. The agent FOR SHARE, so
# that a change of it either comes before the copy or changes it, too.
_ENTER_AGENT = text(
    "INSERT INTO public.agents (tenant_id, name) VALUES (:tenant, :agent) ON CONFLICT DO NOTHING"
)
_ENTER_USER = text(
    "INSERT INTO public.users (tenant_id, name, shard) VALUES (:tenant, :user, :shard) ON CONFLICT DO NOTHING"
)
_ENTRY_OF_AGENT = locking(
    "agent",
    text("SELECT to_jsonb(a) FROM public.agents a WHERE tenant_id = :tenant AND name = :agent FOR SHARE"),
)
_ENTRY_OF_USER = text("SELECT to_jsonb(u) FROM public.users u WHERE tenant_id = :tenant AND name = :user")
_ENTRY_OF_TENANT = text("SELECT to_jsonb(t) FROM public.tenants t WHERE id = :tenant")
_COPY_TENANT = text("SELECT copy_tenant(CAST(:entry AS jsonb))")
_USERS_SHARD = text("SELECT shard FROM public.users WHERE tenant_id = :tenant AND name = :user")
# Held until the end of the transaction, so that nobody moves or erases the user meanwhile.
_HELD_USERS_SHARD = locking("user", text(f"{_USERS_SHARD} FOR KEY SHARE"))
_ENSURE_SCOPE = text(
    """
    INSERT INTO scopes (tenant_id, agent_id, user_id)
    SELECT a.tenant_id, a.id, u.id
    FROM agents a LEFT JOIN users u ON u.tenant_id = a.tenant_id AND u.name = :user
    WHERE a.tenant_id = :tenant AND a.name = :agent
    ON CONFLICT DO NOTHING
    """
)
_LOCK = locking(
    "scope",
    select(scopes.c.id)
    .where(scopes.c.tenant_id == bindparam("tenant"), scopes.c.id == bindparam("scope"))
    # NO KEY UPDATE: rows that refer to the scope can still be inserted by others meanwhile.
    .with_for_update(key_share=True),
)
_SHARE = locking(
    "scope",
    select(scopes.c.id)
    .where(among(scopes.c.id, "scopes"))
    .order_by(scopes.c.id)
    .with_for_update(read=True, key_share=True),
)
# From the directory: a shard has a copy of an agent only once a user of it has met the agent.
_AGENT_START = text(
    """
    SELECT a.persona, a.policy, a.default_memories, now() AS now,
        ARRAY(SELECT v.id FROM public.scopes v
              WHERE v.tenant_id = a.tenant_id AND v.agent_id = a.id AND v.user_id IS NULL ORDER BY 1) AS scopes
    FROM public.agents a WHERE a.tenant_id = :tenant AND a.name = :agent
    """
)
_UNSEEDED = (
    select(scopes.c.id)
    .where(among(scopes.c.id, "scopes"), scopes.c.seeded_at.is_(None))
    .order_by(scopes.c.id)
)
_POLICIES = (
    select(scopes.c.id, agents.c.policy)
    .join(agents, agents.c.id == scopes.c.agent_id)
    .where(among(scopes.c.id, "scopes"))
)
_MARK_SEEDED = update(scopes).where(scopes.c.id == bindparam("scope")).values(seeded_at=func.now())


def find_scope(connection: Connection, tenant_id: int, scope: Scope) -> ScopeRow | None:
    """The scope of an agent and a user (or of the agent alone), or None when nothing was ever stored for it.

    Raises `Moved` where the user is in another shard than that of the connection.
    """
    names = {"tenant": tenant_id, "agent": scope.agent}
    # Two statements: one for both would need IS NOT DISTINCT FROM, which no index serves.
    if scope.user is None:
        row = _read_row(connection, _FIND_OF_AGENT, names)
    else:
        row = _read_row(connection, _FIND, {**names, "user": scope.user})
    if row is not None:
        return row
    check_users_shard(connection, tenant_id, scope.user)
    return None


def check_users_shard(
    connection: Connection, tenant_id: int, user: str | None, *, hold: bool = False
) -> None:
    """Raise `Moved` where the user is known and is in another shard than that of the connection.

    ``hold``: nobody moves or erases the user until the end of the transaction.
    """
    if user is None:
        return
    statement = _HELD_USERS_SHARD if hold else _USERS_SHARD
    directory = directory_of(connection)
    shard = directory.execute(statement, {"tenant": tenant_id, "user": user}).scalar_one_or_none()
    if shard is not None and shard != shard_of(connection):
        raise Moved(shard)


def read_scope(connection: Connection, scope_id: int) -> ScopeRow | None:
    """The scope by its key, or None when the person was forgotten."""
    return _read_row(connection, _READ, {"scope": scope_id})


def over_visible(
    connection: Connection,
    row: ScopeRow,
    read: Callable[[Connection, tuple[int, ...]], Sequence[Item]],
    *,
    order: Callable[[Item], Any] | None = None,
) -> tuple[Item, ...]:
    """What ``read`` finds in the scopes that a question may look at: in this shard, and where they are apart also in
    the home shard, over the connection that ``read`` gets. Each part comes in its own order; ``order`` is the key of
    both together."""
    items = tuple(read(connection, row.visible))
    if not row.shared:
        return items
    with at_home(connection) as home:
        items = (*items, *read(home, row.shared))
    return items if order is None else tuple(sorted(items, key=order))


def need_scope(connection: Connection, tenant_id: int, scope: Scope) -> ScopeRow:
    """Like `find_scope`; `NotFound` naming the agent or user instead of None."""
    row = find_scope(connection, tenant_id, scope)
    if row is None:
        about = f"agent {scope.agent!r}" + (f" and user {scope.user!r}" if scope.user else "")
        raise NotFound(
            f"nothing is stored for {about}; record a turn or remember a statement first", field="agent"
        )
    return row


def ensure_scope(connection: Connection, tenant_id: int, scope: Scope) -> ScopeRow:
    """The scope, made when it is new."""
    row = find_scope(connection, tenant_id, scope)
    if row is not None:
        return row
    shard = shard_of(connection)
    names = {"tenant": tenant_id, "agent": scope.agent, "user": scope.user, "shard": shard}
    # Each row in its own statement, and each may be there already: somebody else may be making the same scope.
    directory = directory_of(connection, writes=True)
    directory.execute(_ENTER_AGENT, names)
    if scope.user is not None:
        directory.execute(_ENTER_USER, names)
    if shard != HOME:
        copy_tenant(connection, directory, tenant_id)
        copy_entries(connection, agents, directory.execute(_ENTRY_OF_AGENT, names).scalars().all())
        copy_entries(connection, users, directory.execute(_ENTRY_OF_USER, names).scalars().all())
    is_new = bool(connection.execute(_ENSURE_SCOPE, names).rowcount)
    # The directory decides: another process may have put the same user elsewhere, or be moving the user. A user whose
    # scope was there is not held: an erasure has the scope and waits for the user, and we shall wait for the scope.
    check_users_shard(connection, tenant_id, scope.user, hold=is_new)
    return need_scope(connection, tenant_id, scope)


def ensure_user(connection: Connection, tenant_id: int, user: str) -> None:
    """Enter the user, who may be new, and hold the entry until the end of the transaction.

    Raises `Moved` where the user is in another shard than that of the connection.
    """
    names = {"tenant": tenant_id, "user": user, "shard": shard_of(connection)}
    directory = directory_of(connection, writes=True)
    directory.execute(_ENTER_USER, names)
    if shard_of(connection) != HOME:
        copy_tenant(connection, directory, tenant_id)
        copy_entries(connection, users, directory.execute(_ENTRY_OF_USER, names).scalars().all())
    check_users_shard(connection, tenant_id, user, hold=True)


def copy_tenant(connection: Connection, directory: Connection, tenant_id: int) -> None:
    """What foreign keys of the connection's shard refer to; on the server of the home shard the tenant's first key
    brought it."""
    if connection is not directory:
        entry = directory.execute(_ENTRY_OF_TENANT, {"tenant": tenant_id}).scalar_one()
        connection.execute(_COPY_TENANT, {"entry": json.dumps(entry)})


def copy_entries(
    connection: Connection, table: Table, entries: Sequence[Mapping[str, Any]], *, schema: str | None = None
) -> None:
    """Copy entries of the directory, as JSON has their rows, to a shard: that of the connection, or of a ``schema``."""
    values = {"entries": json.dumps(list(entries))}
    connection.execute(_insertion(table.name if schema is None else f"{schema}.{table.name}", table), values)


@cache
def _insertion(name: str, table: Table) -> TextClause:
    columns = column_list(table.c)
    return text(
        f"""INSERT INTO {name} ({columns}) OVERRIDING SYSTEM VALUE
        SELECT {columns} FROM jsonb_populate_recordset(CAST(NULL AS {name}), CAST(:entries AS jsonb))
        ON CONFLICT DO NOTHING"""
    )


def need_user(connection: Connection, tenant_id: int, user: str) -> None:
    """Raise `NotFound` for a user who is not in the directory, `Moved` for one who is in another shard."""
    directory = directory_of(connection)
    shard = directory.execute(_USERS_SHARD, {"tenant": tenant_id, "user": user}).scalar_one_or_none()
    if shard is None:
        raise NotFound(f"no user {user!r}", field="user")
    check_users_shard(connection, tenant_id, user)


def lock_scope(connection: Connection, tenant_id: int, scope_id: int) -> bool:
    """Hold the scope's row until the end of the transaction: one writer of memories at a time.

    False when the scope is gone, which is how a late worker learns that the person was forgotten.
    """
    return connection.execute(_LOCK, {"tenant": tenant_id, "scope": scope_id}).one_or_none() is not None


def share_scopes(connection: Connection, scope_ids: Collection[int]) -> None:
    """Keep the scopes from being erased until the end of the transaction; any number may do so at a time."""
    connection.execute(_SHARE, {"scopes": list(scope_ids)})


def hold_scope(connection: Connection, tenant_id: int, scope: Scope, scope_id: int) -> None:
    """Like `lock_scope`, for a scope that was just found. Raises `Moved` or `NotFound` when it is gone meanwhile."""
    if not lock_scope(connection, tenant_id, scope_id):
        check_users_shard(connection, tenant_id, scope.user)
        raise NotFound("the person was erased while this ran; nothing was stored", field="user")


@dataclass(frozen=True, slots=True)
class AgentStart:
    """What a new user of an agent finds. ``scopes`` of the home shard hold the memories that all of its users share."""

    persona: dict[str, Any] | None
    policy: dict[str, Any]
    default_memories: list[dict[str, Any]]
    now: datetime
    scopes: list[int]


def agent_start(connection: Connection, tenant_id: int, agent: str) -> AgentStart | None:
    """Read an agent that may not have met anybody yet; None when nothing is stored of it."""
    row = directory_of(connection).execute(_AGENT_START, {"tenant": tenant_id, "agent": agent}).one_or_none()
    return None if row is None else AgentStart(**row._mapping)


def policies(connection: Connection, scope_ids: Collection[int]) -> dict[int, dict[str, Any]]:
    """The policy of the agent of each scope, by the scope's id."""
    rows = connection.execute(_POLICIES, {"scopes": list(scope_ids)})
    return {row.id: row.policy for row in rows}


def unseeded(connection: Connection, scope_ids: Sequence[int]) -> tuple[int, ...]:
    """Those of the scopes whose agent's default memories were not stored yet."""
    return tuple(connection.execute(_UNSEEDED, {"scopes": list(scope_ids)}).scalars())


def mark_seeded(connection: Connection, scope_id: int) -> None:
    """Note that the agent's default memories were stored, so that they are stored once."""
    connection.execute(_MARK_SEEDED, {"scope": scope_id})


def _read_row(connection: Connection, statement: str, values: Mapping[str, Any]) -> ScopeRow | None:
    is_apart = home_engine_of(connection) is not None
    row = connection.execute(_statement(statement, is_apart=is_apart), values).one_or_none()
    if row is None:
        return None
    shared = row.shared
    if is_apart:
        shared = directory_of(connection).execute(_SHARED_OF_AGENT, {"agent": row.agent_id}).scalars()
    return _scope_row(row, tuple(shared))


@cache
def _statement(statement: str, *, is_apart: bool) -> TextClause:
    return text(statement.replace("{shared}", "CAST(NULL AS bigint[])" if is_apart else _SHARED))


def _scope_row(row: Row[Any], shared: tuple[int, ...]) -> ScopeRow:
    return ScopeRow(
        id=row.id,
        agent_id=row.agent_id,
        user_id=row.user_id,
        time_zone=row.time_zone,
        agent=row.agent,
        user=row.user,
        label=row.label,
        aliases=tuple(row.aliases),
        policy=dict(row.policy),
        persona=row.persona,
        default_memories=list(row.default_memories),
        seeded_at=row.seeded_at,
        now=row.now,
        visible=tuple(row.visible),
        shared=shared,
    )


def find_session(connection: Connection, scope_id: int, name: str) -> int | None:
    """The key of a session that the scope has."""
    return connection.execute(_SESSION_ID, {"scope": scope_id, "name": name}).scalar_one_or_none()
