"""Jobs: background work on a scope, each recorded as a run. One way to ask for it, to do it, and to fail.

A run is claimed with a lease and a fence like a session. The job reads, calls models with no transaction open, and
commits its effects together with `runs.complete`; if that says False, another worker was faster and all rolls back.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any
from uuid import UUID

import structlog
from sqlalchemy import Connection

from memory_app import correlation, metrics
from memory_app.db.db import transaction, wait_briefly
from memory_app.errors import CapReached, NotFound, Permanent, StoreUnavailable, Transient
from memory_app.jobs.rows import runs
from memory_app.jobs.rows.runs import Run, RunClaim, RunLease
from memory_app.records.reports import Report
from memory_app.records.run import OPEN, RunName
from memory_app.runtime import Runtime
from memory_app.tenancy.shards import where_stored

log = structlog.get_logger(__name__)

LEASE = timedelta(minutes=11)
"""Longer than the hard time limit of a maintenance task, so that a living worker is never overtaken."""

STARTS_LIMIT = 3

PATIENCE_SECONDS = 30.0
"""How long a worker tries to give a run back before it does something else; most restarts of a database are over."""

RETRY_BASE_SECONDS = 5.0
RETRY_MOST_SECONDS = 900.0
RETRY_AGE = timedelta(hours=24)
POLL_SECONDS = 0.1


class Fenced(Exception):
    """Another worker holds the run now; nothing of ours may be committed."""


@dataclass(frozen=True, slots=True)
class Job:
    """What a run of some name does. ``task`` is the message that says "look"; ``call`` does the work and completes
    the run itself, in the transaction of its effects. It gets a `RunClaim`, or where the run is not ``of_scope`` a
    `RunLease`."""

    task: str
    call: Callable[[Runtime, Any], None]
    of_scope: bool = True
    end: Callable[[Connection, RunLease], None] | None = None
    """Deletes what the run would still have needed, where it fails for good; in the same transaction."""


def ask(
    runtime: Runtime,
    tenant_id: int,
    job: RunName,
    *,
    task: str,
    scope_id: int,
    session_id: int | None = None,
    options: Mapping[str, Any] | None = None,
    period: str | None = None,
) -> Run:
    """Enqueue a run and send a hint to the workers of its task; once per period where one is given."""
    with transaction(runtime.engine, tenant_id) as connection:
        run = runs.enqueue(
            connection,
            tenant_id,
            job,
            scope_id=scope_id,
            session_id=session_id,
            options=dict(options or {}),
            period=period,
        )
    # After the commit: a worker must find the run.
    runtime.hint(task, run_id=str(run.id))
    return run


def perform(runtime: Runtime, run_id: UUID, jobs: Mapping[str, Job], *, shared: bool = False) -> None:
    """Do one run, if it is due and free. Errors that pass are tried again with back-off; others fail it, with why.

    ``shared``: other tasks run in this process at the same time, so a run that may have killed its worker is left to
    another.
    """
    runtime.returns.try_again()
    # Without a tenant, because a message has only the id; a forged one can only start work that is due anyway.
    with transaction(runtime.engine, None) as connection:
        claimed = runs.claim(connection, run_id, LEASE, shared=shared)
    if claimed is None:
        return
    job = jobs.get(claimed.name)
    if job is None or job.of_scope != isinstance(claimed, RunClaim):
        _fail(runtime, claimed, f"this version knows no job called {claimed.name}")
    elif claimed.starts > STARTS_LIMIT:
        # Starts are counted before the work, since nothing runs after SIGKILL; `postpone` sets them back.
        _fail(runtime, claimed, f"its worker died {STARTS_LIMIT} times", job)
    else:
        _call(runtime, claimed, job)


def _call(runtime: Runtime, claimed: RunLease, job: Job) -> None:
    try:
        _try(runtime, claimed, job)
    except StoreUnavailable:
        runtime.returns.give_back(partial(_free, runtime, claimed), within_seconds=PATIENCE_SECONDS)
        raise


def _free(runtime: Runtime, claimed: RunLease, *, briefly: bool) -> None:
    with transaction(runtime.engine, claimed.tenant_id) as connection:
        if briefly:
            wait_briefly(connection)
        runs.postpone(connection, claimed, timedelta(seconds=RETRY_BASE_SECONDS))


def _try(runtime: Runtime, claimed: RunLease, job: Job) -> None:
    started = time.monotonic()
    correlation.note(correlation.RUNS, [claimed.run_id])
    # With the ids of task and run: a worker that dies writes no other line.
    log.info("run_started", job=claimed.name, run=str(claimed.run_id), start=claimed.starts)
    try:
        with metrics.timed(metrics.run_seconds, claimed.name):
            job.call(runtime, claimed)
    except Fenced:
        # Not failed: the other worker decides now what becomes of the run.
        metrics.fenced.labels("run").inc()
        log.warning("run_fenced", run=str(claimed.run_id), fence=claimed.fence)
    except CapReached as error:
        _wait_for_cap(runtime, claimed, error)
    except Transient as error:
        _postpone(runtime, claimed, error)
    except (Permanent, NotFound) as error:
        _fail(runtime, claimed, error.message, job)
    else:
        metrics.runs.labels(claimed.name, "done").inc()
        seconds = round(time.monotonic() - started, 3)
        log.info("run_done", job=claimed.name, run=str(claimed.run_id), seconds=seconds)


def complete(connection: Connection, claimed: RunLease, report: Report) -> None:
    """The run is done with this report; raises `Fenced`, which rolls the effects back, if it was taken over."""
    if not runs.complete(connection, claimed, report):
        raise Fenced


@where_stored
def read(runtime: Runtime, tenant_id: int, run_id: UUID, *, wait_seconds: float = 0) -> Run:
    """The run, after waiting until it is done or failed for ``wait_seconds`` at most. `NotFound` for an unknown one."""
    deadline = time.monotonic() + wait_seconds
    while True:
        # One transaction for each look, so that no connection is held while waiting.
        with transaction(runtime.engine, tenant_id) as connection:
            run = runs.read(connection, run_id)
        if run is None:
            raise NotFound(f"run {run_id}: no such run")
        is_over = run.state not in OPEN
        if is_over or time.monotonic() >= deadline:
            return run
        time.sleep(POLL_SECONDS)


def _wait_for_cap(runtime: Runtime, claimed: RunLease, error: CapReached) -> None:
    # Spread a little, so that not all runs of a tenant come back in the same second of the new day.
    wait = (error.retry_after or RETRY_MOST_SECONDS) * random.uniform(1, 1.01)
    with transaction(runtime.engine, claimed.tenant_id) as connection:
        runs.defer(connection, claimed, timedelta(seconds=wait))
    metrics.runs.labels(claimed.name, "postponed").inc()
    log.warning("run_waits", run=str(claimed.run_id), job=claimed.name, seconds=wait, error=error.kind)


def _postpone(runtime: Runtime, claimed: RunLease, error: Transient) -> None:
    with transaction(runtime.engine, claimed.tenant_id) as connection:
        run = runs.read(connection, claimed.run_id)
        attempts = 0 if run is None else run.attempts
        # The exponent is bounded, because the power would overflow for a run that fails for weeks.
        doubled = min(RETRY_BASE_SECONDS * 2 ** min(attempts, 16), RETRY_MOST_SECONDS)
        # Jitter, so that runs that failed in one outage do not all come back at once.
        wait = max(doubled * random.uniform(0.7, 1.3), error.retry_after or 0)
        failing = runs.postpone(connection, claimed, timedelta(seconds=wait))
    metrics.runs.labels(claimed.name, "postponed").inc()
    # Logged, not given up: a model may be away for days.
    if failing is not None and failing[1] > RETRY_AGE:
        log.error("run_failing_too_long", run=str(claimed.run_id), error=error.kind)
    log.warning("run_postponed", run=str(claimed.run_id), job=claimed.name, seconds=wait, error=error.kind)


def _fail(runtime: Runtime, claimed: RunLease, reason: str, job: Job | None = None) -> None:
    with transaction(runtime.engine, claimed.tenant_id) as connection:
        if job is not None and job.end is not None:
            job.end(connection, claimed)
        runs.abandon(connection, claimed, reason)
    metrics.runs.labels(_known(claimed.name), "failed").inc()
    log.error("run_failed", run=str(claimed.run_id), job=claimed.name, reason=reason)


def _known(name: str) -> str:
    """The name for a label: a newer release may have enqueued any."""
    return name if name in set(RunName) else "unknown"
