"""Enqueue periodic jobs: one run per job, scope and period, for scopes in which something happened.

The database holds when each is due. A call takes a limited number of due jobs, fairly across tenants; two calls at once
take different rows. A period in which nobody called is not made up for, but counted and logged.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import structlog
from sqlalchemy import Connection

from memory_app.db import clock
from memory_app.db.db import transaction
from memory_app.dispatch.job_table import JOBS
from memory_app.jobs.rows import runs, schedules
from memory_app.jobs.rows.runs import Run
from memory_app.jobs.rows.schedules import DueJob
from memory_app.jobs.schedule import END_SESSIONS, periodic_jobs
from memory_app.records.run import RunName
from memory_app.runtime import Runtime
from memory_app.sleep import session_end
from memory_app.tenancy import shards
from memory_app.tenancy.policy import ExtractionMode, parse_policy
from memory_app.tenancy.rows import names
from memory_app.tenancy.rows.names import ScopeRow
from memory_app.turns.rows import sessions

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class PeriodicRuns:
    """How many runs were enqueued, and how many periods had passed without one."""

    runs: int = 0
    missed: int = 0

    def __add__(self, other: PeriodicRuns) -> PeriodicRuns:
        return PeriodicRuns(self.runs + other.runs, self.missed + other.missed)


_OPTIONS: dict[str, dict[str, Any]] = {RunName.SLEEP: {"trigger": "interval"}}


def enqueue_due(runtime: Runtime, *, now: datetime | None = None) -> PeriodicRuns:
    """Enqueue a run for every periodic job that is due at ``now`` (None: the database's clock), and hint workers."""
    return sum(shards.in_usable(runtime, lambda here: _enqueue_due(here, now)), PeriodicRuns())


def _enqueue_due(runtime: Runtime, now: datetime | None) -> PeriodicRuns:
    with transaction(runtime.engine, None) as connection:
        # The database's clock, because those of several machines differ.
        at = now or clock.now(connection)
        due = schedules.due(connection, most=runtime.settings.schedule.batch, at=at)
    by_tenant: dict[int, list[DueJob]] = defaultdict(list)
    for job in due:
        by_tenant[job.tenant_id].append(job)
    total = PeriodicRuns()
    for tenant_id, jobs in by_tenant.items():
        with transaction(runtime.engine, tenant_id) as connection:
            enqueued, missed = _enqueue(connection, runtime, jobs, at=at)
        # After the commit: a worker must find the run.
        for run in enqueued:
            runtime.hint(JOBS[run.name].task, run_id=str(run.id))
        total = PeriodicRuns(total.runs + len(enqueued), total.missed + missed)
    if total.missed:
        log.warning("periods_missed", periods=total.missed)
    return total


def _enqueue(
    connection: Connection, runtime: Runtime, due: Sequence[DueJob], *, at: datetime
) -> tuple[list[Run], int]:
    """Take the due jobs of a tenant and enqueue their runs; the runs, and how many periods were missed."""
    enqueued: list[Run] = []
    missed = 0
    intervals = {periodic.job: periodic.every for periodic in periodic_jobs(runtime)}
    # In one order for everybody: two processes that take the same rows must not block each other.
    for job in sorted(due, key=lambda job: (job.scope_id, job.job)):
        row = names.read_scope(connection, job.scope_id)
        if row is None:
            continue
        interval = intervals.get(job.job)
        periods = _missed_periods(job, row, interval=interval, at=at)
        # Another process was faster and enqueues the run.
        if not schedules.take(connection, job, missed=periods):
            continue
        missed += periods
        # A job of a version that is gone is taken too, or it would be due for ever.
        if interval is not None:
            enqueue = _end_sessions if job.job == END_SESSIONS else _enqueue_job
            enqueued += enqueue(connection, runtime, job, row=row)
    return enqueued, missed


def _missed_periods(job: DueJob, row: ScopeRow, *, interval: timedelta | None, at: datetime) -> int:
    """Return the whole periods since the job was due. The look for silent sessions has no periods."""
    if interval is None or job.job == END_SESSIONS:
        return 0
    # Periods of a job that the agent's policy leaves out are not missed.
    if not _is_enabled(job.job, row):
        return 0
    return int((at - job.due_at) / interval)


def _enqueue_job(connection: Connection, runtime: Runtime, job: DueJob, *, row: ScopeRow) -> list[Run]:
    """Enqueue one run of the job for this period."""
    if not _is_enabled(job.job, row):
        return []
    # It costs money, and without a new memory the model would be asked about the same ones again.
    if job.job == RunName.SYNTHESIZE_DEEP and not schedules.has_news(connection, job.scope_id, job.job):
        return []
    run = runs.enqueue(
        connection,
        job.tenant_id,
        job.job,
        scope_id=job.scope_id,
        options=_OPTIONS.get(job.job),
        period=job.due_at.isoformat(),
    )
    return [run]


def _is_enabled(job: str, row: ScopeRow) -> bool:
    """Return whether the agent's policy includes the job: deep synthesis requires a language model."""
    policy = parse_policy(row.policy)
    # A limit holds, too, while nothing new is recorded.
    if job == RunName.DECAY and policy.retention:
        return True
    if job == RunName.SYNTHESIZE_DEEP and policy.extraction is not ExtractionMode.LLM:
        return False
    return policy.memory


def _end_sessions(connection: Connection, runtime: Runtime, job: DueJob, *, row: ScopeRow) -> list[Run]:
    """End the sessions that have been silent for too long, and plan the next look for when another may be."""
    ended = session_end.collect(
        connection,
        runtime,
        tenant_id=job.tenant_id,
        scope_id=job.scope_id,
        policy=parse_policy(row.policy),
    )
    oldest = sessions.oldest_activity(connection, job.scope_id)
    if oldest is not None:
        due_at = oldest + timedelta(hours=runtime.settings.ending.idle_hours)
        schedules.plan(connection, job.tenant_id, job.scope_id, job=END_SESSIONS, at=due_at)
    return list(ended)
