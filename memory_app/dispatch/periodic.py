"""Periodic jobs: for each scope in which something happened, one run per job and period, however many ask.

When each is due stands in the database. A look takes what is due, capped and fair across tenants; two looks at once
take different rows. A period that nobody looked in is not made up for, but counted and logged.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import structlog
from sqlalchemy import Connection

from memory_app import queue
from memory_app.db import clock
from memory_app.db.db import transaction
from memory_app.jobs.rows import runs, schedules
from memory_app.jobs.rows.schedules import DueJob
from memory_app.jobs.schedule import END_SESSIONS, rhythms
from memory_app.records.run import RunName
from memory_app.runtime import Runtime
from memory_app.sleep import session_end
from memory_app.tenancy.policy import ExtractionMode, parse_policy
from memory_app.tenancy.rows import names
from memory_app.tenancy.rows.names import ScopeRow
from memory_app.turns.rows import sessions

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Asked:
    """Runs that were written down in one look, and periods that had gone by without one."""

    runs: int = 0
    missed: int = 0


_TASKS: Mapping[str, str] = {
    RunName.SLEEP: queue.SLEEP,
    RunName.DECAY: queue.DECAY,
    RunName.SYNTHESIZE_DEEP: queue.SYNTHESIZE_DEEP,
    RunName.END_SESSION: queue.SLEEP,
}
_OPTIONS: dict[str, dict[str, Any]] = {RunName.SLEEP: {"trigger": "interval"}}

_Written = tuple[str, UUID]
"""Name of a run and its id."""


def enqueue_due(runtime: Runtime, *, now: datetime | None = None) -> Asked:
    """Write down a run for every periodic job that is due at ``now`` (None: the database's clock) and say "look"."""
    with transaction(runtime.engine, None) as connection:
        at = now or clock.now(connection)
        found = schedules.due(connection, most=runtime.settings.schedule.batch, at=at)
    by_tenant: dict[int, list[DueJob]] = defaultdict(list)
    for job in found:
        by_tenant[job.tenant_id].append(job)
    asked = Asked()
    for tenant_id, some in by_tenant.items():
        with transaction(runtime.engine, tenant_id) as connection:
            written, missed = _write(connection, runtime, some, at)
        for name, run_id in written:
            runtime.hint(_TASKS[name], run_id=str(run_id))
        asked = Asked(asked.runs + len(written), asked.missed + missed)
    if asked.missed:
        log.warning("periods_missed", periods=asked.missed)
    return asked


def _write(
    connection: Connection, runtime: Runtime, some: Sequence[DueJob], at: datetime
) -> tuple[list[_Written], int]:
    """Take what is due and write its runs down; the runs, and how many periods were missed."""
    written: list[_Written] = []
    missed = 0
    every = {rhythm.job: rhythm.every for rhythm in rhythms(runtime)}
    for job in sorted(some, key=lambda job: (job.scope_id, job.job)):
        row = names.read_scope(connection, job.scope_id)
        if row is None:
            continue
        interval = every.get(job.job)
        is_missed = interval is not None and job.job != END_SESSIONS and _is_meant(job.job, row)
        late = int((at - job.due_at) / interval) if interval is not None and is_missed else 0
        if not schedules.take(connection, job, missed=late):
            continue
        missed += late
        if interval is not None:
            written += _AT_ITS_TIME.get(job.job, _once)(connection, runtime, job, row)
    return written, missed


def _once(connection: Connection, runtime: Runtime, job: DueJob, row: ScopeRow) -> list[_Written]:
    """One run of the job for this period."""
    if not _is_meant(job.job, row):
        return []
    if job.job == RunName.SYNTHESIZE_DEEP and not schedules.has_news(
        connection, job.scope_id, RunName.SYNTHESIZE_DEEP
    ):
        return []
    run = runs.enqueue(
        connection,
        job.tenant_id,
        RunName(job.job),
        scope_id=job.scope_id,
        options=_OPTIONS.get(job.job),
        period=job.due_at.isoformat(),
    )
    return [(job.job, run.id)]


def _is_meant(job: str, row: ScopeRow) -> bool:
    """Whether the agent's policy has the job done at all; deep synthesis asks a model, which not every agent has."""
    policy = parse_policy(row.policy)
    return policy.memory and (job != RunName.SYNTHESIZE_DEEP or policy.extraction is ExtractionMode.LLM)


def _end_sessions(connection: Connection, runtime: Runtime, job: DueJob, row: ScopeRow) -> list[_Written]:
    """End what has been silent for too long; look again when the next one may be."""
    ended = session_end.collect(connection, runtime, job.tenant_id, job.scope_id, parse_policy(row.policy))
    oldest = sessions.oldest_activity(connection, job.scope_id)
    if oldest is not None:
        again = oldest + timedelta(hours=runtime.settings.ending.idle_hours)
        schedules.plan(connection, job.tenant_id, job.scope_id, END_SESSIONS, again)
    return [(RunName.END_SESSION, run_id) for _, run_id in ended]


_AT_ITS_TIME: dict[str, Callable[[Connection, Runtime, DueJob, ScopeRow], list[_Written]]] = {
    END_SESSIONS: _end_sessions
}
