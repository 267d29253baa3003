"""The periodic jobs and their intervals. A change in a scope schedules them; `periodic` enqueues what is due."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta

from sqlalchemy import Connection

from memory_app.jobs.rows import schedules
from memory_app.jobs.rows.schedules import PeriodicJob
from memory_app.runtime import Runtime

END_SESSIONS = "end_sessions"
"""Not the name of a run: it enqueues an end for each session that has been silent for too long."""


def periodic_jobs(runtime: Runtime) -> tuple[PeriodicJob, ...]:
    """Every periodic job with its interval. Its name is that of its runs."""
    intervals = runtime.settings.schedule.intervals
    jobs = [PeriodicJob(name, timedelta(hours=hours)) for name, hours in intervals.items()]
    # Not aligned, because the time since the last turn counts, not the time of day.
    silence = timedelta(hours=runtime.settings.ending.idle_hours)
    return (*jobs, PeriodicJob(END_SESSIONS, silence, aligned=False))


def wake(
    connection: Connection, runtime: Runtime, scope_ids: Collection[int], *, at: datetime | None = None
) -> None:
    """Schedule the periodic jobs of scopes that changed, unless that was done before. In the caller's transaction."""
    schedules.wake(connection, sorted(scope_ids), periodic_jobs(runtime), at=at)
