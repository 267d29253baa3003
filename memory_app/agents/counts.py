"""List the agents and the users of a tenant with how much there is of each, a page at a time."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from memory_app.agents.rows import counts as count_rows
from memory_app.agents.rows.counts import ListedAgent, ListedUser, UserCounts
from memory_app.db.db import transaction
from memory_app.db.shards import HOME
from memory_app.errors import InvalidInput, StoreUnavailable
from memory_app.records.scope import check_name
from memory_app.runtime import Runtime
from memory_app.tenancy.shards import in_usable

PAGE_MOST = 200
USERS_COUNTED = 1_000
"""People of one agent who are counted in each shard: an agent may know a million."""


@dataclass(frozen=True, slots=True)
class UserEntry:
    """A user of the list. ``counts`` None: the shard that holds their rows cannot be used now."""

    name: str
    label: str | None
    time_zone: str
    created_at: datetime
    counts: UserCounts | None


def list_agents(
    runtime: Runtime, tenant_id: int, *, limit: int = 50, cursor: str | None = None
) -> tuple[ListedAgent, ...]:
    """Agents in the order of their names; ``cursor`` is the last name of the page before."""
    limit, after = _page(limit, cursor)
    with transaction(runtime.at(HOME).engine, tenant_id) as connection:
        agents = count_rows.agents(connection, tenant_id, after=after, limit=limit)
    if not agents:
        return ()
    totals: Counter[str] = Counter()
    for counted in in_usable(runtime, partial(_users_of, tenant_id=tenant_id, names=list(agents))):
        totals.update(counted)
    return tuple(ListedAgent(name, created_at, totals[name]) for name, created_at in agents.items())


def list_users(
    runtime: Runtime, tenant_id: int, *, limit: int = 50, cursor: str | None = None
) -> tuple[UserEntry, ...]:
    """Users in the order of their names; ``cursor`` is the last name of the page before."""
    limit, after = _page(limit, cursor)
    with transaction(runtime.at(HOME).engine, tenant_id) as connection:
        users = count_rows.users(connection, tenant_id, after=after, limit=limit)
    by_shard: defaultdict[int, list[ListedUser]] = defaultdict(list)
    for user in users:
        by_shard[user.shard].append(user)
    counts: dict[str, UserCounts] = {}
    for shard, members in by_shard.items():
        counts |= _counts(runtime, tenant_id, shard=shard, names=[user.name for user in members])
    return tuple(
        UserEntry(user.name, user.label, user.time_zone, user.created_at, counts.get(user.name))
        for user in users
    )


def _page(limit: int, cursor: str | None) -> tuple[int, str]:
    if not 1 <= limit <= PAGE_MOST:
        raise InvalidInput(f"limit: 1 to {PAGE_MOST}", field="limit")
    # No name is empty, so that all stand behind that.
    return limit, "" if cursor is None else check_name(cursor, field="cursor")


def _users_of(runtime: Runtime, *, tenant_id: int, names: list[str]) -> dict[str, int]:
    with transaction(runtime.engine, tenant_id) as connection:
        return count_rows.users_of_agents(connection, tenant_id, names, most=USERS_COUNTED)


def _counts(runtime: Runtime, tenant_id: int, *, shard: int, names: list[str]) -> dict[str, UserCounts]:
    try:
        with transaction(runtime.at(shard).engine, tenant_id) as connection:
            return count_rows.counts(connection, tenant_id, names)
    except StoreUnavailable:
        # The list is for people who look for somebody: a shard that is away leaves their names.
        return {}
