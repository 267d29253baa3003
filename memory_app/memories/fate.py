"""What becomes of a memory that fades: when it goes, what spares it, and how it is brought back."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy import Connection

from memory_app.db import clock
from memory_app.db.db import transaction
from memory_app.errors import Conflict, NotFound
from memory_app.memories import capacity
from memory_app.memories.capacity import Ceiling
from memory_app.memories.fading import MemoryStrength, hubs
from memory_app.memories.remember import drop_context
from memory_app.memories.rows import fading, links, memories, merges
from memory_app.memories.vital import is_vital
from memory_app.records.kinds import kind_of
from memory_app.records.records import RECOVERABLE, Memory
from memory_app.runtime import Runtime
from memory_app.tenancy.policy import parse_policy
from memory_app.tenancy.rows import names
from memory_app.tenancy.shards import where_stored

EARLIER = "or less long where more are retired after it than the scope may hold"
"""No more retired memories can be revived than the scope may hold: the oldest are deleted early."""


def ceiling_of_scope(connection: Connection, runtime: Runtime, scope_id: int) -> Ceiling:
    """How much the scope may hold, by its agent's policy. The scope must exist."""
    row = names.read_scope(connection, scope_id)
    assert row is not None
    return capacity.ceiling_of(runtime, parse_policy(row.policy))


def hubs_among(runtime: Runtime, strengths: Sequence[MemoryStrength], ceiling: Ceiling) -> frozenset[UUID]:
    """Ids of the memories that are spared for their links."""
    return hubs(strengths, degree=runtime.settings.decay.hub_degree, capacity=ceiling.memories)


@where_stored
def revive(runtime: Runtime, tenant_id: int, memory_id: UUID) -> Memory:
    """Bring back an expired or evicted memory, as if just seen; repeating it changes nothing.

    `NotFound` for one that is unknown or deleted; `Conflict` for one that was retired for another reason, or whose
    statement is stored again.
    """
    with transaction(runtime.engine, tenant_id) as connection:
        stored = memories.read(connection, memory_id)
        if stored is None or not names.lock_scope(connection, tenant_id, stored.scope_id):
            raise NotFound(f"no memory {memory_id}", field="id")
        revive_row(connection, stored.scope_id, stored.memory)
        revived = memories.read(connection, memory_id)
    drop_context(runtime, stored.scope_id)
    assert revived is not None
    return revived.memory


def revive_row(connection: Connection, scope_id: int, memory: Memory) -> None:
    """Make the row current if it is in its recoverable stage. The scope must be locked."""
    if memory.retired_at is None:
        return
    # What was merged or superseded lives on in its successor; reviving it would say the same twice.
    if memory.retired_reason not in RECOVERABLE:
        after = f"; {memory.successor} took its place" if memory.successor else ""
        raise Conflict(
            f"memory {memory.id} was {memory.retired_reason}, which reviving does not mend{after}", field="id"
        )
    twins = merges.twins(connection, scope_id, [memory.id], besides=[memory.id])
    if twins:
        raise Conflict(f"memory {memory.id} was stored again as {twins[0][1]}", field="id")
    fading.revive(connection, scope_id, memory.id)
    # The bound counts what is written, and this row was written long ago.
    fading.forget_bounds(connection, scope_id)


def is_hub(connection: Connection, runtime: Runtime, scope_id: int, *, memory_id: UUID) -> bool:
    """Is the memory never retired for its links? Computes the strengths of the scope where it has links enough."""
    if links.degree(connection, scope_id, memory_id) < runtime.settings.decay.hub_degree:
        return False
    # Few memories have so many links, so the strengths of a whole scope are seldom computed for one question.
    strengths = capacity.strengths(runtime, fading.current(connection, scope_id), clock.now(connection))
    return memory_id in hubs_among(runtime, strengths, ceiling_of_scope(connection, runtime, scope_id))


def describe(runtime: Runtime, memory: Memory, *, fading_at: datetime | None, is_hub: bool) -> str:
    """When and why a memory fades or is deleted, and what prevents that, in one sentence."""
    days = runtime.settings.decay.recoverable_days
    if memory.retired_at is not None:
        return _fate_of_retired(memory, until=memory.retired_at + timedelta(days=days))
    # The strongest protection first: a pinned hub is described as pinned.
    if memory.pinned:
        return "it is pinned: it never fades and is never evicted"
    if is_hub:
        return (
            "it is a hub, which holds many others together: it neither expires nor is evicted while it is one"
        )
    if is_vital(memory):
        return "it is about health, a name or a standing instruction: it never expires and is never evicted"
    half = capacity.half_life(runtime, memory.kind)
    if half is None:
        return f"memories of kind {memory.kind} never fade; it may still be evicted where there are too many"
    halving = f"its strength halves every {_span(half)} since it was last seen or recalled"
    if not kind_of(memory.kind).expires:
        return f"{halving}; memories of kind {memory.kind} never expire, and go only where there are too many"
    if fading_at is None:
        return halving
    return (
        f"{halving}; it expires on {_day(fading_at)} unless it is recalled, repeated, rated up or pinned before, "
        f"and can be revived for {days:g} days after that, {EARLIER}"
    )


def _fate_of_retired(memory: Memory, *, until: datetime) -> str:
    assert memory.retired_at is not None
    retirement = f"it was {memory.retired_reason} on {_day(memory.retired_at)}"
    if memory.retired_reason in RECOVERABLE:
        return f"{retirement} and can be revived until {_day(until)}, {EARLIER}; then it is deleted for good"
    return f"{retirement} in favour of {memory.successor}" if memory.successor else retirement


def _day(at: datetime) -> str:
    return at.strftime("%Y-%m-%d")


def _span(half: timedelta) -> str:
    minutes = half.total_seconds() / 60
    return f"{minutes:g} minutes" if minutes < 2_880 else f"{minutes / 1_440:g} days"
