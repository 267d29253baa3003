"""Carry the retention of an agent's policy out: delete what is older than its limits, batch by batch.

What a batch deleted is counted in the run, in the same transaction, so that a worker which takes over goes on from
there. Where a policy is changed, a run of its own makes decay due in every scope of the agent.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from uuid import UUID

import structlog
from sqlalchemy import Connection

from memory_app import failpoint, metrics
from memory_app.db import clock
from memory_app.db.db import transaction
from memory_app.db.shards import at_home
from memory_app.errors import NotFound
from memory_app.forget import retention
from memory_app.forget.carry_out import drop_hot
from memory_app.forget.rows import retention as rows
from memory_app.forget.settlement import Forgotten
from memory_app.jobs import jobs
from memory_app.jobs.jobs import Fenced
from memory_app.jobs.rows import runs, schedules
from memory_app.jobs.rows.runs import RunClaim, RunLease
from memory_app.records.audit import DONE, Action, Event
from memory_app.records.reports import RetentionProgress, WakeReport
from memory_app.records.retention import TURNS, memory_days
from memory_app.records.run import RunName
from memory_app.runtime import Runtime
from memory_app.tenancy.digests import USER, digests_of
from memory_app.tenancy.policy import ExtractionMode, Policy, parse_policy
from memory_app.tenancy.rows import audit, names
from memory_app.tenancy.rows.names import ScopeRow
from memory_app.tenancy.shards import in_each

log = structlog.get_logger(__name__)

AT_ONCE = 200
"""Turns or memories of one transaction, which holds the scope."""

SCOPES_AT_ONCE = 1_000


def delete_old(runtime: Runtime, claimed: RunClaim) -> Counter[str]:
    """Delete what the scope's agent keeps no longer; the rows by class, with those that an earlier worker of the run
    deleted. Raises `Fenced`, and `NotFound` where the person was erased meanwhile."""
    with transaction(runtime.engine, claimed.tenant_id) as connection:
        run = runs.read(connection, claimed.run_id)
        row = names.read_scope(connection, claimed.scope_id)
        deleted = Counter((run.report or {}).get("deleted", {}) if run is not None else {})
        days = {} if row is None else parse_policy(row.policy).retention
        old = rows.old_memories(connection, claimed.scope_id, days=memory_days(days))
    if TURNS in days:
        while _delete_batch(runtime, claimed, deleted, ids=()):
            pass
    for start in range(0, len(old), AT_ONCE):
        _delete_batch(runtime, claimed, deleted, ids=old[start : start + AT_ONCE])
    # Also what an earlier worker deleted, which may have died before it came to this.
    if deleted:
        drop_hot(runtime, Forgotten({}, frozenset({claimed.scope_id})))
        log.info("retention_applied", scope=claimed.scope_id, deleted=dict(deleted))
    return deleted


def _delete_batch(runtime: Runtime, claimed: RunClaim, deleted: Counter[str], *, ids: Sequence[UUID]) -> bool:
    """Delete these memories as far as they are too old; without ``ids`` the next turns. False: that was the last."""
    tenant_id, scope_id = claimed.tenant_id, claimed.scope_id
    with transaction(runtime.engine, tenant_id) as connection:
        if not names.lock_scope(connection, tenant_id, scope_id):
            raise NotFound("the person was erased while this ran")
        # Read under the lock, and for each batch: whoever makes a limit longer saves what is left.
        row = names.read_scope(connection, scope_id)
        policy = Policy() if row is None else parse_policy(row.policy)
        counts = _deleted(connection, runtime, claimed, policy=policy, ids=ids)
        if not runs.extend(connection, claimed, jobs.LEASE):
            raise Fenced
        runs.note_progress(connection, claimed, RetentionProgress(deleted=dict(deleted + counts)))
    failpoint.reach("retention.after_batch")
    deleted.update(counts)
    for name, count in counts.items():
        metrics.retention_rows.labels(name).inc(count)
    return counts.total() >= AT_ONCE


def _deleted(
    connection: Connection, runtime: Runtime, claimed: RunClaim, *, policy: Policy, ids: Sequence[UUID]
) -> Counter[str]:
    tenant_id, scope_id = claimed.tenant_id, claimed.scope_id
    if ids:
        days = memory_days(policy.retention)
        return retention.delete_memories(connection, tenant_id, scope_id, ids=ids, days=days)
    if TURNS not in policy.retention:
        return Counter()
    count = retention.delete_words(
        connection,
        tenant_id,
        scope_id,
        days=policy.retention[TURNS],
        extracting=policy.memory and policy.extraction is not ExtractionMode.OFF,
        made=digests_of(runtime.settings),
        limit=AT_ONCE,
    )
    return Counter({TURNS: count} if count else {})


def note_deletions(
    connection: Connection, runtime: Runtime, claimed: RunClaim, *, row: ScopeRow, deleted: Mapping[str, int]
) -> None:
    """Write into the audit log what a run deleted, in the transaction that completes it: a line for each class."""
    subject = (
        None if row.user is None else digests_of(runtime.settings).new(claimed.tenant_id, USER, row.user)
    )
    with at_home(connection, writes=True) as home:
        for name, count in sorted(deleted.items()):
            event = Event(
                Action.RETENTION,
                agent=row.agent,
                subject=subject,
                target=f"{name}: {count} of run {claimed.run_id}",
            )
            audit.add(home, event, outcome=DONE)


def next_deletion(connection: Connection, scope_id: int, policy: Policy) -> datetime | None:
    """When something of the scope is as old as its limit; None where nothing of a limited class is there."""
    times = [rows.next_memory(connection, scope_id, days=memory_days(policy.retention))]
    if TURNS in policy.retention:
        times.append(rows.next_turn(connection, scope_id, age=timedelta(days=policy.retention[TURNS])))
    return min((at for at in times if at is not None), default=None)


def latest_look(connection: Connection, policy: Policy) -> datetime | None:
    """When decay has to look again at the latest: what comes in after this is at its limit then, and not before."""
    if not policy.retention:
        return None
    return clock.now(connection) + timedelta(days=min(policy.retention.values()))


def wake_scopes(runtime: Runtime, claimed: RunLease) -> None:
    """The job of a run of `RunName.APPLY_RETENTION`: make decay due now in all scopes of the agent that it names."""
    with transaction(runtime.engine, claimed.tenant_id) as connection:
        run = runs.read(connection, claimed.run_id)
    if run is None:
        raise NotFound(f"no run {claimed.run_id}")
    counts = in_each(runtime, partial(_wake_here, tenant_id=claimed.tenant_id, agent=run.options["target"]))
    with transaction(runtime.engine, claimed.tenant_id) as connection:
        jobs.complete(connection, claimed, WakeReport(scopes=sum(counts)))


def _wake_here(runtime: Runtime, *, tenant_id: int, agent: str) -> int:
    with transaction(runtime.engine, tenant_id) as connection:
        ids = schedules.scopes_of(connection, tenant_id, agent)
    for start in range(0, len(ids), SCOPES_AT_ONCE):
        with transaction(runtime.engine, tenant_id) as connection:
            schedules.make_due(connection, ids[start : start + SCOPES_AT_ONCE], job=RunName.DECAY)
    return len(ids)
