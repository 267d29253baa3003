"""Keep a scope below its most memories and links. Called under the lock on the scope's row.

The ceiling is kept in the transactions that write, not by a later job, so that nobody ever sees it passed. Counting
reads a whole index, and computing every strength costs more. So the scope's row has an upper bound, to which each
write adds what it stored; only when the bound passes the ceiling is anything counted, and what is evicted then makes
room for many more writes.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy import Connection

from memory_app.db import clock
from memory_app.jobs.rows import runs
from memory_app.memories.fading import MemoryStrength, hubs, weakest
from memory_app.memories.rows import fading, memories
from memory_app.memories.rows.fading import LinkedMemory
from memory_app.memories.strength import strength
from memory_app.records.kinds import KINDS, half_life_of
from memory_app.records.records import Memory, Retirement
from memory_app.records.run import RunName, Trigger
from memory_app.runtime import Runtime
from memory_app.tenancy.policy import Policy

BIG = 1_000
"""From this limit on more is evicted than has to be, so that not every write counts."""

SLACK = 0.02
"""Share of a big limit that is freed at a time."""

SHORTEST_PAUSE = 60.0
"""Seconds for which one sleep cycle serves every eviction, even where the settings ask for no pause."""


@dataclass(frozen=True, slots=True)
class Ceiling:
    """Most current memories and most links of a scope."""

    memories: int
    links: int


def ceiling_of(runtime: Runtime, policy: Policy) -> Ceiling:
    """The agent's own limits, else those of the settings."""
    settings = runtime.settings.decay
    return Ceiling(
        settings.max_memories if policy.max_memories is None else policy.max_memories,
        settings.max_links if policy.max_links is None else policy.max_links,
    )


def half_life(runtime: Runtime, kind: str) -> timedelta | None:
    """How long memories of the kind take to lose half their strength; None: they never fade."""
    return half_life_of(kind, of_queries=timedelta(minutes=runtime.settings.queries.half_life_minutes))


def expiry_half_life(runtime: Runtime, item: LinkedMemory) -> timedelta | None:
    """The half-life by which a memory expires; None: it never does, however weak it becomes."""
    if item.is_vital or not KINDS[item.memory.kind].expires:
        return None
    return half_life(runtime, item.memory.kind)


def strength_of(runtime: Runtime, memory: Memory, now: datetime) -> float:
    """See `strength.strength`, with the half-life of its kind."""
    return strength(memory, now, half_life(runtime, memory.kind))


def strengths(runtime: Runtime, linked: Collection[LinkedMemory], now: datetime) -> list[MemoryStrength]:
    """The strength of each memory at ``now``."""
    return [
        MemoryStrength(
            id=item.memory.id,
            strength=strength_of(runtime, item.memory, now),
            degree=item.degree,
            pinned=item.memory.pinned,
            expires=expiry_half_life(runtime, item) is not None,
            vital=item.is_vital,
        )
        for item in linked
    ]


def keep_ceiling(
    connection: Connection,
    runtime: Runtime,
    tenant_id: int,
    *,
    scope_id: int,
    policy: Policy,
    written: Sequence[UUID],
    recount: bool = False,
) -> tuple[UUID, ...]:
    """Delete the weakest links and evict the weakest memories above the ceiling, after all writes of a transaction.

    Returns the ids of the evicted. What was ``written`` last stays, as do pinned and vital memories: only with more of
    these than the ceiling allows is it passed. An eviction enqueues a sleep cycle, one in each cool-down: merging
    repeats makes room at no loss. ``recount``: the transaction did more than store memories and link those.
    """
    ceiling = ceiling_of(runtime, policy)
    if recount:
        fading.forget_bounds(connection, scope_id)
    bounds = fading.note_written(connection, scope_id)
    # Links first, since the number of its links may spare a memory from eviction.
    if bounds.links is None or bounds.links > ceiling.links:
        _cut_links(connection, scope_id, ceiling.links)
    if bounds.memories is not None and bounds.memories <= ceiling.memories:
        return ()
    evicted = _make_room(connection, runtime, scope_id, limit=ceiling.memories, spared=written[-1:])
    if evicted:
        _sleep_soon(connection, runtime, tenant_id=tenant_id, scope_id=scope_id)
    return evicted


def _cut_links(connection: Connection, scope_id: int, limit: int) -> None:
    """Count the links, and delete the weakest where the limit is near."""
    count = fading.link_count(connection, scope_id)
    if count > _near(limit):
        down_to = limit - _slack(limit)
        count = max(count - fading.trim_links(connection, scope_id, limit=down_to), 0)
        if _slack(limit):
            # Some links are never deleted, so more than allowed may remain. They must not be counted at every write.
            count = min(count, down_to)
    fading.note_links(connection, scope_id, count)


def _make_room(
    connection: Connection, runtime: Runtime, scope_id: int, *, limit: int, spared: Collection[UUID]
) -> tuple[UUID, ...]:
    """Count the current memories, and evict the weakest where the limit is near; their ids."""
    # A scope far above its limit (the limit was lowered) need not be counted to the end.
    count = fading.current_count(connection, scope_id, limit=2 * limit + BIG)
    evicted: tuple[UUID, ...] = ()
    if count > _near(limit):
        down_to = limit - _slack(limit)
        evicted = evict(connection, runtime, scope_id, down_to=down_to, spared=spared)
        count -= len(evicted)
        if _slack(limit):
            # Pinned memories and hubs stay, so here too more may remain than is noted.
            count = min(count, down_to)
    fading.note_memories(connection, scope_id, count)
    return evicted


def _slack(limit: int) -> int:
    return int(limit * SLACK) if limit >= BIG else 0


def _near(limit: int) -> int:
    """Evict above this count; below it there is room for some more writes without counting."""
    return limit - _slack(limit) // 2


def _sleep_soon(connection: Connection, runtime: Runtime, tenant_id: int, scope_id: int) -> None:
    """Enqueue a cycle, the same one for every eviction within a cool-down; a finder brings it to a worker."""
    pause = max(runtime.settings.sleep.cool_down_seconds, SHORTEST_PAUSE)
    # The period is part of the run's unique key: all evictions of one cool-down give the same run.
    began = int(clock.now(connection).timestamp() // pause * pause)
    options = {"trigger": Trigger.EVICTION.value}
    runs.enqueue(
        connection, tenant_id, RunName.SLEEP, scope_id=scope_id, options=options, period=f"eviction {began}"
    )


def evict(
    connection: Connection,
    runtime: Runtime,
    scope_id: int,
    *,
    down_to: int,
    spared: Collection[UUID] = (),
    among: Collection[UUID] | None = None,
) -> tuple[UUID, ...]:
    """Retire the weakest memories above ``down_to``, never pinned or vital ones nor hubs; their ids.

    With ``among``, only those may be retired.
    """
    current = strengths(runtime, fading.current(connection, scope_id), clock.now(connection))
    over = len(current) - down_to
    if over <= 0:
        return ()
    # Hubs are chosen among all memories, not only those that may go.
    hub_ids = hubs(current, degree=runtime.settings.decay.hub_degree, capacity=down_to)
    allowed = None if among is None else frozenset(among)
    movable = current if allowed is None else [memory for memory in current if memory.id in allowed]
    ids = weakest(movable, limit=over, spared=hub_ids | frozenset(spared))
    return memories.retire(connection, scope_id, ids, reason=Retirement.EVICTED)
