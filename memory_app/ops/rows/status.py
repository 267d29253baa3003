"""Queries of `memory status`: sessions that wait and why, and the runs of the last day. No content."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import Connection, text

from memory_app.records.run import RunName, RunState

SHOWN = 10
"""Most sessions of a tenant."""


@dataclass(frozen=True, slots=True)
class WaitingSession:
    """A session with turns that are not extracted. ``waited_seconds`` counts from the first of them; ``why`` is
    ``stopped: REASON``, ``in hand``, ``after N failures``, ``due`` or ``until it falls silent``."""

    agent: str
    user: str
    session: str
    turns: int
    waited_seconds: float
    why: str


@dataclass(frozen=True, slots=True)
class JobOfDay:
    """The runs of one job that ended within a day: how many ended well and how many failed, and the last."""

    job: str
    done: int
    failed: int
    last_at: datetime

    def __add__(self, other: JobOfDay) -> JobOfDay:
        """Of two tenants or shards together."""
        return JobOfDay(
            self.job, self.done + other.done, self.failed + other.failed, max(self.last_at, other.last_at)
        )


@dataclass(frozen=True, slots=True)
class RunLine:
    """A run and whom it is about; neither for one that forgets."""

    id: UUID
    job: str
    state: RunState
    agent: str | None
    user: str | None
    reason: str | None
    attempts: int
    created_at: datetime
    finished_at: datetime | None


# From both ends of what waits: what is due by its index, and what was stopped, which has no time.
_WAITING = text(
    f"""
    SELECT a.name AS agent, u.name AS user, s.name AS session, s.next_seq - 1 - s.extracted_seq AS turns,
           extract(epoch FROM now() - coalesce(s.pending_since, s.due_at, s.last_activity_at))::float AS waited_seconds,
           CASE WHEN s.parked_reason IS NOT NULL THEN 'stopped: ' || s.parked_reason
                WHEN s.lease_until > now() THEN 'in hand'
                WHEN s.failures > 0 THEN 'after ' || s.failures || ' failures'
                WHEN s.due_at <= now() THEN 'due'
                ELSE 'until it falls silent' END AS why
    FROM (
        (SELECT * FROM sessions WHERE due_at IS NOT NULL ORDER BY due_at LIMIT {SHOWN})
        UNION
        (SELECT * FROM sessions WHERE parked_reason IS NOT NULL LIMIT {SHOWN})
    ) s
    JOIN scopes c ON c.id = s.scope_id JOIN agents a ON a.id = c.agent_id JOIN users u ON u.id = c.user_id
    WHERE s.next_seq - 1 > s.extracted_seq
    ORDER BY waited_seconds DESC LIMIT {SHOWN}
    """
)
_JOBS = text(
    f"""
    SELECT name AS job, count(*) FILTER (WHERE state = 'done') AS done,
           count(*) FILTER (WHERE state = 'failed') AS failed, max(finished_at) AS last_at
    FROM runs
    WHERE coalesce(kept_at, finished_at) > now() - interval '1 day' AND finished_at > now() - interval '1 day'
      AND name <> '{RunName.EXTRACT}'
    GROUP BY name ORDER BY name
    """
)


_RUN_LINES = """
    SELECT r.id, r.name AS job, r.state, a.name AS agent, u.name AS user, r.reason, r.attempts, r.created_at,
           r.finished_at
    FROM runs r LEFT JOIN scopes c ON c.id = r.scope_id
    LEFT JOIN agents a ON a.id = c.agent_id LEFT JOIN users u ON u.id = c.user_id
    WHERE {which} LIMIT {shown}
"""
_OPEN_RUNS = text(_RUN_LINES.format(which="r.due_at IS NOT NULL ORDER BY r.due_at", shown=SHOWN))
_FAILED_RUNS = text(
    _RUN_LINES.format(
        which=f"""coalesce(r.kept_at, r.finished_at) > now() - interval '1 day'
        AND r.finished_at > now() - interval '1 day' AND r.state = '{RunState.FAILED}' AND r.name <> '{RunName.EXTRACT}'
        ORDER BY r.finished_at DESC""",
        shown=SHOWN,
    )
)


def waiting_sessions(connection: Connection) -> tuple[WaitingSession, ...]:
    """Sessions of the tenant that wait, the longest first; at most `SHOWN`."""
    return tuple(WaitingSession(**row._mapping) for row in connection.execute(_WAITING))


def jobs_of_day(connection: Connection) -> tuple[JobOfDay, ...]:
    """Runs of the tenant that ended within a day, by job; extractions are counted by their turns."""
    return tuple(JobOfDay(**row._mapping) for row in connection.execute(_JOBS))


def open_runs(connection: Connection) -> tuple[RunLine, ...]:
    """Runs of the tenant that wait or are at work, the first that is due first; at most `SHOWN`."""
    return tuple(RunLine(**row._mapping) for row in connection.execute(_OPEN_RUNS))


def failed_runs(connection: Connection) -> tuple[RunLine, ...]:
    """Runs of the tenant that failed within a day, the latest first; at most `SHOWN`."""
    return tuple(RunLine(**row._mapping) for row in connection.execute(_FAILED_RUNS))


def united(jobs: Sequence[JobOfDay]) -> tuple[JobOfDay, ...]:
    """One for each job."""
    by_name: dict[str, JobOfDay] = {}
    for job in jobs:
        by_name[job.job] = by_name[job.job] + job if job.job in by_name else job
    return tuple(by_name[name] for name in sorted(by_name))
