"""Who waits for whom in the database at this moment, as the server sees it: of all parts, and of other programs too."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, text


@dataclass(frozen=True, slots=True)
class LockWaits:
    """Sessions of this database that wait for a lock now, and how long the first of them has."""

    count: int
    longest_seconds: float


@dataclass(frozen=True, slots=True)
class Blocker:
    """A session that others wait for and that waits for none itself.

    ``waiting`` sessions wait for it, the longest for ``longest_seconds``. Of a session of another role the server says
    neither ``state`` nor ``open_seconds``, for how long its transaction has been open.
    """

    pid: int
    role: str
    application: str
    state: str | None
    open_seconds: float | None
    waiting: int
    longest_seconds: float


@dataclass(frozen=True, slots=True)
class IdleTransaction:
    """A session that has had a transaction open for ``open_seconds`` and does nothing with it."""

    pid: int
    role: str
    application: str
    open_seconds: float


# `pg_locks` shows every role all locks; those of rows name no database there, so it is that of the session.
_WAITS = text(
    """
    SELECT count(DISTINCT l.pid) AS count,
           coalesce(extract(epoch FROM max(clock_timestamp() - l.waitstart)), 0)::float AS longest_seconds
    FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
    WHERE NOT l.granted AND a.datname = current_database()
    """
)
_BLOCKERS = text(
    """
    WITH waiting AS MATERIALIZED (
        SELECT l.pid, pg_blocking_pids(l.pid) AS blockers, max(clock_timestamp() - l.waitstart) AS waited
        FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
        WHERE NOT l.granted AND a.datname = current_database() GROUP BY l.pid)
    SELECT b.pid, coalesce(b.usename, 'unknown') AS role, coalesce(b.application_name, '') AS application, b.state,
           extract(epoch FROM clock_timestamp() - b.xact_start)::float AS open_seconds,
           count(*) AS waiting, extract(epoch FROM max(w.waited))::float AS longest_seconds
    FROM waiting w JOIN pg_stat_activity b ON b.pid = ANY(w.blockers)
    WHERE b.pid NOT IN (SELECT pid FROM waiting)
    GROUP BY b.pid, b.usename, b.application_name, b.state, b.xact_start
    ORDER BY longest_seconds DESC NULLS LAST, b.pid LIMIT :limit
    """
)


_IDLE = text(
    """
    SELECT pid, coalesce(usename, 'unknown') AS role, coalesce(application_name, '') AS application,
           extract(epoch FROM clock_timestamp() - xact_start)::float AS open_seconds
    FROM pg_stat_activity
    WHERE datname = current_database() AND state LIKE 'idle in transaction%'
      AND xact_start < clock_timestamp() - make_interval(secs => :seconds)
    ORDER BY xact_start LIMIT :limit
    """
)


def waits(connection: Connection) -> LockWaits:
    """Who waits now. Cheap enough to ask every few seconds."""
    return LockWaits(**connection.execute(_WAITS).one()._mapping)


def blockers(connection: Connection, *, limit: int) -> tuple[Blocker, ...]:
    """Who is waited for, the longest wait first. Asks the server more than `waits` does; for persons who look."""
    return tuple(Blocker(**row._mapping) for row in connection.execute(_BLOCKERS, {"limit": limit}))


def idle_transactions(connection: Connection, *, seconds: float, limit: int) -> tuple[IdleTransaction, ...]:
    """Transactions that have been open for longer than ``seconds`` and wait for their program, the oldest first.

    A role sees those of its own sessions; a superuser and a member of ``pg_monitor`` see all.
    """
    rows = connection.execute(_IDLE, {"seconds": seconds, "limit": limit})
    return tuple(IdleTransaction(**row._mapping) for row in rows)
