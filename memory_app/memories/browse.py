"""Look through what is remembered of a person, page by page: facts in time, how firmly each memory stands, who and what
is talked about together, and how much came on each day."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from uuid import UUID

from sqlalchemy import Connection

from memory_app.db import clock
from memory_app.db.db import transaction
from memory_app.errors import InvalidInput
from memory_app.memories import capacity, fate
from memory_app.memories.lookup import MemoryFilter, list_memories
from memory_app.memories.rows import browse, entities
from memory_app.memories.rows.browse import Tie, ToldFact
from memory_app.memories.rows.entities import Entity
from memory_app.memories.rows.fading import LinkedMemory
from memory_app.memories.rows.memories import read
from memory_app.memories.strength import fades_at
from memory_app.memories.vital import is_vital
from memory_app.records.records import Memory
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.tenancy.rows import names
from memory_app.tenancy.shards import in_scopes_shard

PAGE_LIMIT = 500
TIES_LIMIT = 200
GROWTH_DAYS = 90


@dataclass(frozen=True, slots=True)
class Standing:
    """A memory with its strength now, 0–1, and when it fades; None: it does not."""

    memory: Memory
    strength: float
    fades_at: datetime | None


@dataclass(frozen=True, slots=True)
class Circle:
    """Entities that are talked about, most mentioned first, and which of them stand together."""

    entities: tuple[Entity, ...]
    ties: tuple[Tie, ...]


@in_scopes_shard
def told_facts(
    runtime: Runtime, tenant_id: int, scope: Scope, *, limit: int, before: UUID | None = None
) -> tuple[ToldFact, ...]:
    """Facts that hold or held, each with the turn that said it, the newest row first."""
    _check(limit)
    with transaction(runtime.engine, tenant_id) as connection:
        row = names.need_scope(connection, tenant_id, scope)
        facts = names.over_visible(
            connection,
            row,
            lambda place, scopes: browse.told_facts(place, scopes, limit=limit, before=before),
            order=lambda fact: -fact.memory.id.int,
        )
    return facts[:limit]


@in_scopes_shard
def list_standing(
    runtime: Runtime, tenant_id: int, scope: Scope, *, filters: MemoryFilter
) -> tuple[Standing, ...]:
    """A page of memories, each with its strength now and when it fades."""
    _check(filters.limit)
    rows = list_memories(runtime, tenant_id, scope, filters=filters)
    with transaction(runtime.engine, tenant_id) as connection:
        row = names.need_scope(connection, tenant_id, scope)
        now = clock.now(connection)
        degrees = browse.degrees(connection, row.visible, [memory.id for memory in rows])
        # Only few have so many links that they may be spared for them, so that looking at each costs little.
        many = runtime.settings.decay.hub_degree
        hubs = {
            memory.id
            for memory in rows
            if degrees.get(memory.id, 0) >= many and _is_hub(runtime, connection, memory.id)
        }
    return tuple(
        Standing(
            memory,
            capacity.strength_of(runtime, memory, now),
            None if memory.id in hubs or memory.retired_at is not None else _fades_at(runtime, memory),
        )
        for memory in rows
    )


def _is_hub(runtime: Runtime, connection: Connection, memory_id: UUID) -> bool:
    stored = read(connection, memory_id)
    return stored is not None and fate.is_hub(connection, runtime, stored.scope_id, memory_id=memory_id)


def _fades_at(runtime: Runtime, memory: Memory) -> datetime | None:
    expiry = capacity.expiry_half_life(runtime, LinkedMemory(memory, 0, is_vital(memory)))
    return fades_at(memory, runtime.settings.decay.faded_strength, expiry)


@in_scopes_shard
def circle(runtime: Runtime, tenant_id: int, scope: Scope, *, limit: int) -> Circle:
    """Who and what is talked about most, and what stands together."""
    _check(limit)
    with transaction(runtime.engine, tenant_id) as connection:
        row = names.need_scope(connection, tenant_id, scope)
        listed = entities.listed(connection, (row.id,), limit=limit)
        ties = browse.ties(connection, (row.id,), [entity.id for entity in listed], limit=TIES_LIMIT)
    return Circle(listed, ties)


@in_scopes_shard
def growth(runtime: Runtime, tenant_id: int, scope: Scope) -> Mapping[str, Mapping[date, int]]:
    """How many ``memories`` and ``turns`` of the person were stored on each of the last `GROWTH_DAYS` days (UTC)."""
    with transaction(runtime.engine, tenant_id) as connection:
        row = names.need_scope(connection, tenant_id, scope)
        return browse.growth(connection, row.id, days=GROWTH_DAYS)


def _check(limit: int) -> None:
    if not 1 <= limit <= PAGE_LIMIT:
        raise InvalidInput(f"limit: 1 to {PAGE_LIMIT}", field="limit")
