"""Capacity: how much a scope may hold, and what goes when it holds more. Called under the lock on the scope's row.

The ceiling is kept in the transactions that write, not by a job that comes later: nobody ever sees it passed. Counting
reads all of an index, and weighing everything costs more. So a bound is kept with the scope, to which each write adds
what it stored; only when that passes the ceiling is anything counted, and what gives way then makes room for many.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy import Connection

from memory_app.db import clock
from memory_app.jobs.rows import runs
from memory_app.memories.fading import Held, hubs, weakest
from memory_app.memories.rows import fading, memories
from memory_app.memories.rows.fading import Weighed
from memory_app.recall.scoring import strength
from memory_app.records.kinds import half_life_of
from memory_app.records.records import Memory, Retirement
from memory_app.records.run import RunName
from memory_app.runtime import Runtime
from memory_app.sleep.rules import Trigger
from memory_app.tenancy.policy import Policy

BIG = 1_000
"""From this limit on more gives way than has to."""

SLACK = 0.02
"""Share of a big limit that is freed at a time."""

SHORTEST_PAUSE = 60.0
"""Seconds for which one cycle serves all that is evicted, even where the settings ask for no pause."""


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


def strength_of(runtime: Runtime, memory: Memory, now: datetime) -> float:
    """See `scoring.strength`, with the half-life of its kind."""
    return strength(memory, now, half_life(runtime, memory.kind))


def held(runtime: Runtime, weighed: Collection[Weighed], now: datetime) -> list[Held]:
    """Memories with their strength at ``now``."""
    return [
        Held(
            one.memory.id,
            strength_of(runtime, one.memory, now),
            one.degree,
            one.memory.pinned,
            fades=half_life(runtime, one.memory.kind) is not None,
        )
        for one in weighed
    ]


def keep_ceiling(
    connection: Connection,
    runtime: Runtime,
    tenant_id: int,
    scope_id: int,
    policy: Policy,
    *,
    written: Sequence[UUID],
    recount: bool = False,
) -> tuple[UUID, ...]:
    """After all writes of a transaction: cut the weakest links and evict the weakest memories where there are too many.

    The ids of the evicted. What was ``written`` last stays, as do pinned ones: only with more of these than the ceiling
    is it passed. Where something had to go, the scope is to sleep, once in a cool-down: uniting repeats frees room that
    nobody misses. ``recount``: the transaction did more than store memories and link those.
    """
    ceiling = ceiling_of(runtime, policy)
    if recount:
        fading.forget_bounds(connection, scope_id)
    most = fading.note_written(connection, scope_id)
    if most.links is None or most.links > ceiling.links:
        _cut_links(connection, scope_id, ceiling.links)
    if most.memories is not None and most.memories <= ceiling.memories:
        return ()
    gone = _make_room(connection, runtime, scope_id, ceiling.memories, spared=written[-1:])
    if gone:
        _sleep_soon(connection, runtime, tenant_id, scope_id)
    return gone


def _cut_links(connection: Connection, scope_id: int, limit: int) -> None:
    """Count the links, and cut the weakest where the limit is near."""
    count = fading.link_count(connection, scope_id)
    if count > _near(limit):
        down_to = limit - _slack(limit)
        count = max(count - fading.trim_links(connection, scope_id, most=down_to), 0)
        # More than may be are left where none of them may be cut: not to be counted again at every write.
        count = min(count, down_to) if _slack(limit) else count
    fading.note_links(connection, scope_id, count)


def _make_room(
    connection: Connection, runtime: Runtime, scope_id: int, limit: int, *, spared: Collection[UUID]
) -> tuple[UUID, ...]:
    """Count the current memories, and evict the weakest where the limit is near; their ids."""
    count = fading.current_count(connection, scope_id, most=2 * limit + BIG)
    gone: tuple[UUID, ...] = ()
    if count > _near(limit):
        down_to = limit - _slack(limit)
        gone = evict(connection, runtime, scope_id, down_to=down_to, spared=spared)
        count = min(count - len(gone), down_to) if _slack(limit) else count - len(gone)
    fading.note_memories(connection, scope_id, count)
    return gone


def _slack(limit: int) -> int:
    return int(limit * SLACK) if limit >= BIG else 0


def _near(limit: int) -> int:
    """Above this something gives way once it was counted; below, there is room for some more writes without."""
    return limit - _slack(limit) // 2


def _sleep_soon(connection: Connection, runtime: Runtime, tenant_id: int, scope_id: int) -> None:
    """Write down a cycle, the same one for all that is evicted within a cool-down; a finder says "look"."""
    pause = max(runtime.settings.sleep.cool_down_seconds, SHORTEST_PAUSE)
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
    """Retire the weakest memories above ``down_to``, never pinned ones nor hubs; their ids.

    ``among`` names the only ones that may go, where given.
    """
    own = held(runtime, fading.held(connection, scope_id), clock.now(connection))
    over = len(own) - down_to
    if over <= 0:
        return ()
    kept = hubs(own, degree=runtime.settings.decay.hub_degree, capacity=down_to) | frozenset(spared)
    movable = own if among is None else [one for one in own if one.id in frozenset(among)]
    gone = weakest(movable, most=over, spared=kept)
    return memories.retire(connection, scope_id, gone, reason=Retirement.EVICTED)
