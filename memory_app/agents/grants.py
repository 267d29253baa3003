"""Sharing by consent: a person lets one agent recall part of what another agent knows of them.

Nothing is shared without a grant. A grant reaches memories of kinds that say something of the person, and only reads:
the other agent's rows are never counted, merged, rated or slept over for it.

A grant is about two agents, so it is read and set past the bounds of a key for one agent: after the agent whose
memories they are was looked up within them, and in a listing only as far as it is about that agent. The bounds of a key
for one person hold throughout.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from uuid import UUID

from sqlalchemy import Connection

from memory_app.agents.rows import grants as rows
from memory_app.agents.rows.grants import Grant
from memory_app.db import clock
from memory_app.db.db import transaction
from memory_app.db.shards import bound_of, bound_to_grant, of_any_agent
from memory_app.errors import Conflict, InvalidInput, NotFound
from memory_app.memories.rows import memories
from memory_app.records.kinds import shareable_kinds
from memory_app.records.records import Memory
from memory_app.records.scope import Scope, check_name
from memory_app.runtime import Runtime
from memory_app.tenancy.rows import names
from memory_app.tenancy.rows.names import ScopeRow
from memory_app.tenancy.shards import in_scopes_shard, in_users_shard

AGENTS_LIMIT = 20
"""Most agents whose memories of a person another agent may recall: each is one more search."""


@dataclass(frozen=True, slots=True)
class GrantedMemory:
    """A memory of another agent that may be recalled, and that agent."""

    memory: Memory
    agent: str


def grant(
    runtime: Runtime,
    tenant_id: int,
    user: str,
    agent: str,
    *,
    to: str,
    kinds: Sequence[str],
    until: datetime | None = None,
) -> Grant:
    """Let ``to`` recall memories of ``kinds`` that ``agent`` has of the user, before ``until`` or until it is revoked.

    A grant between the two is replaced. Raises `InvalidInput` naming the field, `NotFound` where ``agent`` knows
    nothing of the user or ``to`` is unknown, `Conflict` where ``to`` may recall of `AGENTS_LIMIT` others already.
    """
    scope, to_scope = Scope(agent, user), Scope(check_name(to, field="to"), user)
    if to == agent:
        raise InvalidInput("to: an agent recalls its own memories anyway; name another one", field="to")
    kinds = _checked_kinds(kinds)
    if until is not None and until.utcoffset() is None:
        raise InvalidInput("until: a time needs its zone, as in 2026-01-31T09:00:00+01:00", field="until")
    act = partial(_grant, tenant_id=tenant_id, scope=scope, to_scope=to_scope, kinds=kinds, until=until)
    return in_users_shard(runtime, tenant_id, user, act)


def list_grants(
    runtime: Runtime, tenant_id: int, user: str, *, agent: str | None = None
) -> tuple[Grant, ...]:
    """All grants of a person, or those from and to one agent; those that have run out, too.

    A runtime that is bound to an agent sees those from and to that one only. Raises `NotFound` for a person or an agent
    of whom nothing is stored.
    """
    check_name(user, field="user")
    if agent is not None:
        check_name(agent, field="agent")

    def act(here: Runtime) -> tuple[Grant, ...]:
        bound = bound_of(here.engine)
        with transaction(of_any_agent(here.engine), tenant_id) as connection:
            names.need_user(connection, tenant_id, user)
            if agent is not None:
                _need_agent(connection, tenant_id, agent, field="agent")
            listed = rows.listed(connection, tenant_id, user, agent=agent)
        if bound is None or bound.agent is None:
            return listed
        return tuple(row for row in listed if bound.agent in (row.agent, row.to))

    return in_users_shard(runtime, tenant_id, user, act)


def revoke(runtime: Runtime, tenant_id: int, user: str, agent: str, *, to: str | None = None) -> int:
    """Take back what ``to``, or every agent, may recall of what ``agent`` knows of the user; how many grants.

    Calls that begin afterwards find nothing of it. Raises `NotFound` where there is no such grant.
    """
    scope = Scope(agent, check_name(user, field="user"))
    if to is not None:
        check_name(to, field="to")

    def act(here: Runtime) -> int:
        row = _need_own_scope(here, tenant_id, scope)
        with transaction(of_any_agent(here.engine), tenant_id) as connection:
            return rows.delete(connection, tenant_id, scope_id=row.id, to=to)

    count = in_users_shard(runtime, tenant_id, user, act)
    if not count:
        whom = "any other agent" if to is None else f"agent {to!r}"
        raise NotFound(f"user {user!r} lets {whom} recall nothing of agent {agent!r}", field="to")
    return count


@in_scopes_shard
def need_granted(runtime: Runtime, tenant_id: int, scope: Scope, memory_id: UUID) -> GrantedMemory:
    """The current memory of another agent, if the scope may recall it now. Raises `NotFound` as if there were none."""
    if scope.user is not None:
        with transaction(runtime.engine, tenant_id) as connection:
            row = names.need_scope(connection, tenant_id, scope)
            with bound_to_grant(connection, scope.user):
                agent = rows.source(connection, tenant_id, to_scope_id=row.id, memory_id=memory_id)
                stored = None if agent is None else memories.read(connection, memory_id)
        if agent is not None and stored is not None:
            return GrantedMemory(stored.memory, agent)
    raise NotFound(f"no memory {memory_id}", field="id")


def _checked_kinds(kinds: Sequence[str]) -> tuple[str, ...]:
    shareable = shareable_kinds()
    if isinstance(kinds, str) or not kinds or any(kind not in shareable for kind in kinds):
        raise InvalidInput(
            f"kinds: one or more of {', '.join(shareable)}; what an agent is stays its own", field="kinds"
        )
    return tuple(kind for kind in shareable if kind in kinds)


def _grant(
    here: Runtime,
    *,
    tenant_id: int,
    scope: Scope,
    to_scope: Scope,
    kinds: tuple[str, ...],
    until: datetime | None,
) -> Grant:
    assert scope.user is not None
    row = _need_own_scope(here, tenant_id, scope)
    engine = of_any_agent(here.engine)
    # In a transaction of its own: the entries that it makes must not be held while the scope below is waited for, which
    # an erasure may hold.
    with transaction(engine, tenant_id) as connection:
        _need_agent(connection, tenant_id, to_scope.agent, field="to")
        to_row = names.ensure_scope(connection, tenant_id, to_scope)
    with transaction(engine, tenant_id) as connection:
        if until is not None and until <= clock.now(connection):
            raise InvalidInput("until: must lie in the future", field="until")
        # The one that is counted: of two grants to it at the same time, one waits for the other.
        names.hold_scope(connection, tenant_id, to_scope, to_row.id)
        others = rows.count_others(connection, tenant_id, scope_id=row.id, to_scope_id=to_row.id)
        if others >= AGENTS_LIMIT:
            raise Conflict(
                f"to: agent {to_scope.agent!r} may recall of {AGENTS_LIMIT} other agents already; revoke one",
                field="to",
            )
        is_stored = rows.put(
            connection, tenant_id, scope_id=row.id, to_scope_id=to_row.id, kinds=kinds, until=until
        )
        if not is_stored:
            raise NotFound("the person was erased while this ran; nothing was stored", field="user")
        stored = rows.listed(connection, tenant_id, scope.user, agent=scope.agent)
    return next(row for row in stored if (row.agent, row.to) == (scope.agent, to_scope.agent))


def _need_own_scope(here: Runtime, tenant_id: int, scope: Scope) -> ScopeRow:
    """The scope whose memories are given, within the bounds of the call: nobody gives away what they may not see."""
    with transaction(here.engine, tenant_id) as connection:
        return names.need_scope(connection, tenant_id, scope)


def _need_agent(connection: Connection, tenant_id: int, agent: str, *, field: str) -> None:
    if names.agent_start(connection, tenant_id, agent) is None:
        raise NotFound(f"{field}: no agent {agent!r}", field=field)
