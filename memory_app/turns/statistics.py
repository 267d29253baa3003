"""Count what a scope holds, and say how much it may hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from memory_app.db.db import transaction
from memory_app.memories import capacity
from memory_app.memories.rows import memories
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.tenancy.policy import parse_policy
from memory_app.tenancy.rows import names
from memory_app.tenancy.shards import in_scopes_shard
from memory_app.turns.rows import counts
from memory_app.turns.rows.counts import ScopeCounts


@dataclass(frozen=True, slots=True)
class Stats:
    """Counts of a scope, and its ceiling: most memories and most links."""

    memories: Mapping[str, int]
    rows: ScopeCounts
    max_memories: int
    max_links: int


@in_scopes_shard
def stats(runtime: Runtime, tenant_id: int, scope: Scope) -> Stats:
    """How much the scope holds and how much it may hold."""
    with transaction(runtime.engine, tenant_id) as connection:
        row = names.need_scope(connection, tenant_id, scope)
        kinds = memories.counts(connection, [row.id])
        rows = counts.of_scopes(connection, [row.id])
    ceiling = capacity.ceiling_of(runtime, parse_policy(row.policy))
    return Stats(
        memories=kinds,
        rows=rows,
        max_memories=ceiling.memories,
        max_links=ceiling.links,
    )
