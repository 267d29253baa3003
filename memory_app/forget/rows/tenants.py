"""List and delete what a tenant has: people, agents, and what is of neither."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol
from uuid import UUID

from sqlalchemy import Connection, text

from memory_app.db.shards import HOME, schema_of
from memory_app.db.tables import metadata
from memory_app.records.run import RunName, RunState

KEPT = ("tenants", "api_keys", "audit", "erasures", "erased_turns")
"""Tables whose rows stay: the name, the keys, which are revoked, the log of who did what, and the receipts."""

_PEOPLE = text(
    "SELECT name FROM public.users WHERE tenant_id = :tenant AND name > :after ORDER BY name LIMIT :limit"
)
_AGENTS = text(
    "SELECT name FROM public.agents WHERE tenant_id = :tenant AND name > :after ORDER BY name LIMIT :limit"
)
# Children first. What is of people and agents is gone by then.
_REST = tuple(
    table.name
    for table in reversed(metadata.sorted_tables)
    if "tenant_id" in table.c and table.name not in (*KEPT, "users", "agents", "scopes", "runs")
)
# A run that has forgotten something says of what kind its receipt is, and names nobody.
_RUNS = text(
    f"""DELETE FROM runs WHERE tenant_id = :tenant AND id <> :run
    AND NOT (name = '{RunName.FORGET}' AND state = '{RunState.DONE}')"""
)

# The directory has a row of everybody, and the shard of each another one.
_ONCE = dict.fromkeys(("users", "agents"), f"AND current_schema() = '{schema_of(HOME)}'")


class Listed(Protocol):
    """Lists names of a tenant, in their order, behind ``after``."""

    def __call__(
        self, connection: Connection, tenant_id: int, /, *, after: str, limit: int
    ) -> tuple[str, ...]: ...


def people(connection: Connection, tenant_id: int, *, after: str, limit: int) -> tuple[str, ...]:
    """Names of the people in the directory, in their order, behind ``after``."""
    values = {"tenant": tenant_id, "after": after, "limit": limit}
    return tuple(connection.execute(_PEOPLE, values).scalars())


def agents(connection: Connection, tenant_id: int, *, after: str, limit: int) -> tuple[str, ...]:
    """Names of the agents in the directory, in their order, behind ``after``."""
    values = {"tenant": tenant_id, "after": after, "limit": limit}
    return tuple(connection.execute(_AGENTS, values).scalars())


def delete_rest(connection: Connection, tenant_id: int, *, besides: UUID) -> dict[str, int]:
    """Delete in this shard what is of no person and no agent, but for one run and those of receipts; rows by table."""
    counts = {
        name: connection.execute(
            text(f"DELETE FROM {name} WHERE tenant_id = :tenant"), {"tenant": tenant_id}
        ).rowcount
        for name in _REST
    }
    counts["runs"] = connection.execute(_RUNS, {"tenant": tenant_id, "run": besides}).rowcount
    return {name: count for name, count in counts.items() if count}


def counts(connection: Connection, tenant_id: int) -> Mapping[str, int]:
    """Rows by table that an erasure would delete in this shard."""
    names = [table.name for table in metadata.sorted_tables if "tenant_id" in table.c]
    found = {
        name: connection.execute(
            text(f"SELECT count(*) FROM {name} WHERE tenant_id = :tenant {_ONCE.get(name, '')}"),
            {"tenant": tenant_id},
        ).scalar_one()
        for name in names
        if name not in KEPT
    }
    return {name: count for name, count in found.items() if count}
