"""Decay a scope: retire faded memories, delete those retired long ago, and keep the ceilings.

Only kinds that expire are retired for their age: never facts, anchors, or what is vital. A memory that expired or was
evicted can be revived for some days. Pinned memories and hubs are never retired. Turns whose session a model has
curated lose their vectors and keywords when they are old, and keep their text. What the agent's retention limits goes
for good, whatever it is (`memory_app.sleep.retention`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

import structlog
from sqlalchemy import Connection

from memory_app import queue
from memory_app.db import clock
from memory_app.db.db import transaction
from memory_app.errors import NotFound
from memory_app.forget.rows import erase
from memory_app.jobs import jobs
from memory_app.jobs.rows import schedules
from memory_app.jobs.rows.runs import Run, RunClaim
from memory_app.memories import capacity
from memory_app.memories.capacity import Ceiling
from memory_app.memories.fading import faded
from memory_app.memories.fate import ceiling_of_scope, hubs_among
from memory_app.memories.remember import drop_context
from memory_app.memories.rows import fading, memories, merges, sources
from memory_app.memories.rows import terms as term_store
from memory_app.memories.rows.fading import LinkedMemory
from memory_app.memories.strength import fades_at
from memory_app.records.records import Retirement
from memory_app.records.reports import DecayReport
from memory_app.records.run import RunName
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.sleep import retention
from memory_app.tenancy.policy import Policy, parse_policy
from memory_app.tenancy.rows import names
from memory_app.tenancy.shards import in_scopes_shard
from memory_app.turns.rows import search_columns

log = structlog.get_logger(__name__)

IDS_SHOWN = 1_000
"""Most ids in each list of a report."""

TURNS_AT_ONCE = 500
"""Turns in one transaction, which locks the counts of their terms."""


@in_scopes_shard
def ask(runtime: Runtime, tenant_id: int, scope: Scope) -> Run:
    """Enqueue decay of the scope. `NotFound` for an unknown scope."""
    with transaction(runtime.engine, tenant_id) as connection:
        row = names.need_scope(connection, tenant_id, scope)
    return jobs.ask(runtime, tenant_id, RunName.DECAY, task=queue.DECAY, scope_id=row.id)


def decay(runtime: Runtime, claimed: RunClaim) -> None:
    """Do one run: retire what has faded and what is above the ceiling, delete what was retired long ago."""
    deleted = retention.delete_old(runtime, claimed)
    # In transactions of its own: it touches turns and their terms alone, and the scope is not locked for it.
    lapsed = _lapse(runtime, claimed.tenant_id, claimed.scope_id)
    with transaction(runtime.engine, claimed.tenant_id) as connection:
        locked = names.lock_scope(connection, claimed.tenant_id, claimed.scope_id)
        row = names.read_scope(connection, claimed.scope_id) if locked else None
        if row is None:
            raise NotFound("the person was erased while this ran")
        policy = parse_policy(row.policy)
        report = _decay(
            connection, runtime, claimed=claimed, policy=policy, turns_lapsed=lapsed, deleted=deleted
        )
        _plan_next(connection, runtime, claimed=claimed, policy=policy, report=report)
        jobs.complete(connection, claimed, report)
        # Last, since the next entry of the tenant waits until this commits.
        retention.note_deletions(connection, runtime, claimed, row=row, deleted=deleted)
    if report.retired:
        drop_context(runtime, claimed.scope_id)
    log.info("scope_decayed", scope=claimed.scope_id, purged=report.purged, current=report.current)


def _plan_next(
    connection: Connection, runtime: Runtime, *, claimed: RunClaim, policy: Policy, report: DecayReport
) -> None:
    """Plan the next run for the next time in the report: memories fade though nothing happens in the scope."""
    soonest = clock.now(connection) + timedelta(hours=runtime.settings.schedule.decay_hours)
    times = (report.next_purge_at, report.next_fades_at, report.next_lapse_at, report.next_deletion_at)
    ahead = [at for at in times if at is not None]
    # Where nothing is planned, whatever comes in makes decay due.
    latest = retention.latest_look(connection, policy)
    if ahead and latest is not None:
        ahead.append(latest)
    if ahead:
        # Not before the usual interval: many memories that fade within minutes are one run's work.
        due_at = max(min(ahead), soonest)
        schedules.plan(connection, claimed.tenant_id, claimed.scope_id, job=RunName.DECAY, at=due_at)


@dataclass(frozen=True, slots=True)
class _LogAges:
    """From which age on turns are not searched: once a model has curated them, and in any case (None: never)."""

    age: timedelta
    limit: timedelta | None


def _log_ages(connection: Connection, runtime: Runtime, scope_id: int) -> _LogAges:
    row = names.read_scope(connection, scope_id)
    days = None if row is None else parse_policy(row.policy).daily_log_limit_days
    return _LogAges(
        age=timedelta(days=runtime.settings.index.daily_log_days),
        limit=None if days is None else timedelta(days=days),
    )


def _lapse(runtime: Runtime, tenant_id: int, scope_id: int) -> int:
    """Delete vectors and keywords of turns that no search reaches any more; the number of turns."""
    count = 0
    while True:
        with transaction(runtime.engine, tenant_id) as connection:
            ages = _log_ages(connection, runtime, scope_id)
            lapsed = search_columns.lapse(
                connection, scope_id, age=ages.age, limit=ages.limit, most=TURNS_AT_ONCE
            )
            term_store.add(
                connection, tenant_id, [(scope_id, term_counts) for term_counts in lapsed], sign=-1
            )
        count += len(lapsed)
        if len(lapsed) < TURNS_AT_ONCE:
            return count


def _next_lapse(connection: Connection, runtime: Runtime, scope_id: int) -> datetime | None:
    ages = _log_ages(connection, runtime, scope_id)
    return search_columns.next_lapse(connection, scope_id, age=ages.age, limit=ages.limit)


def _decay(
    connection: Connection,
    runtime: Runtime,
    *,
    claimed: RunClaim,
    policy: Policy,
    turns_lapsed: int,
    deleted: Mapping[str, int],
) -> DecayReport:
    tenant_id, scope_id = claimed.tenant_id, claimed.scope_id
    ceiling = ceiling_of_scope(connection, runtime, scope_id)
    strengths = capacity.strengths(runtime, fading.current(connection, scope_id), clock.now(connection))
    # Hubs stay, because many other memories are linked with them.
    hub_ids = hubs_among(runtime, strengths, ceiling)
    faded_ids = faded(strengths, threshold=runtime.settings.decay.faded_strength, spared=hub_ids)
    expired = memories.retire(connection, scope_id, faded_ids, reason=Retirement.EXPIRED)
    # What expires makes room, so that as little as possible is evicted.
    evicted = capacity.evict(connection, runtime, scope_id, down_to=ceiling.memories)
    purged, unsupported = _purge(
        connection, runtime, tenant_id=tenant_id, scope_id=scope_id, limit=ceiling.memories
    )
    trimmed = fading.trim_links(connection, scope_id, limit=ceiling.links)
    next_purge = fading.next_overdue(connection, scope_id, **_stages(runtime))
    remaining = fading.current(connection, scope_id)
    fading.note_memories(connection, scope_id, len(remaining))
    # Links of the deleted rows went with them: the next write counts what is left.
    fading.note_links(connection, scope_id, None)
    return DecayReport(
        expired=expired[:IDS_SHOWN],
        evicted=evicted[:IDS_SHOWN],
        unsupported=unsupported[:IDS_SHOWN],
        retired=len(expired) + len(evicted) + len(unsupported),
        purged=len(purged),
        links_trimmed=trimmed,
        turns_lapsed=turns_lapsed,
        current=len(remaining),
        next_purge_at=next_purge,
        next_fades_at=_next_fading(runtime, remaining, ceiling, now=clock.now(connection)),
        next_lapse_at=_next_lapse(connection, runtime, scope_id),
        deleted=dict(deleted),
        next_deletion_at=retention.next_deletion(connection, scope_id, policy),
    )


def _purge(
    connection: Connection, runtime: Runtime, *, tenant_id: int, scope_id: int, limit: int
) -> tuple[tuple[UUID, ...], tuple[UUID, ...]]:
    """Delete the rows whose recoverable stage is over; their ids, and those of memories that lost their last source."""
    stages = _stages(runtime)
    # At most as many as a scope may hold; the next run deletes the rest.
    purged = fading.overdue(connection, scope_id, limit=limit, **stages)
    # Which memories rest on the rows must be read before these are deleted with their links.
    dependent = sources.resting(connection, scope_id, purged)
    sources.hand_to_heirs(connection, scope_id, purged)
    merges.remove(connection, tenant_id, scope_id, ids=purged)
    fading.drop_images(connection, scope_id, age=stages["recoverable"])
    unsupported = sources.unsupported(connection, scope_id, dependent)
    erase.retire_unsupported(connection, scope_id, unsupported)
    return purged, unsupported


def _stages(runtime: Runtime) -> dict[str, timedelta]:
    settings = runtime.settings.decay
    return {
        "recoverable": timedelta(days=settings.recoverable_days),
        "merged": timedelta(days=settings.merged_days),
    }


def _next_fading(
    runtime: Runtime, remaining: Sequence[LinkedMemory], ceiling: Ceiling, *, now: datetime
) -> datetime | None:
    """Return when the next memory will have faded if nothing happens. A hub never fades while it is one."""
    threshold = runtime.settings.decay.faded_strength
    hub_ids = hubs_among(runtime, capacity.strengths(runtime, remaining, now), ceiling)
    times = [
        fades_at(item.memory, threshold, capacity.expiry_half_life(runtime, item))
        for item in remaining
        if item.memory.id not in hub_ids
    ]
    return min((at for at in times if at is not None), default=None)
