"""Which jobs are periodic, and how often. What happens in a scope wakes them; see `periodic` for what follows."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta

from sqlalchemy import Connection

from memory_app.jobs.rows import schedules
from memory_app.jobs.rows.schedules import Rhythm
from memory_app.records.run import RunName
from memory_app.runtime import Runtime

END_SESSIONS = "end_sessions"
"""Not a run but a look: it ends the sessions that have been silent for too long."""


def rhythms(runtime: Runtime) -> tuple[Rhythm, ...]:
    """The names are those of the runs."""
    settings = runtime.settings.schedule
    return (
        Rhythm(RunName.SLEEP, timedelta(hours=settings.sleep_hours)),
        Rhythm(RunName.DECAY, timedelta(hours=settings.decay_hours)),
        Rhythm(RunName.SYNTHESIZE_DEEP, timedelta(hours=settings.deep_hours)),
        Rhythm(END_SESSIONS, timedelta(hours=runtime.settings.ending.idle_hours), aligned=False),
    )


def wake(
    connection: Connection, runtime: Runtime, scope_ids: Collection[int], *, at: datetime | None = None
) -> None:
    """Something happened in these scopes: their periodic jobs come round again. In the caller's transaction."""
    schedules.wake(connection, sorted(scope_ids), rhythms(runtime), at=at)
