"""When a scope's periodic jobs are next due. A row without a time waits until something happens in the scope."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection, bindparam, null, text, update
from sqlalchemy.dialects.postgresql import insert

from memory_app.db.tables.jobs import schedules
from memory_app.records.kinds import material_kinds
from memory_app.records.run import RunState

# ORDER BY: without one order two calls that wake the same scopes could deadlock.
_WAKE = text(
    """
    INSERT INTO schedules (tenant_id, scope_id, job, due_at)
    SELECT c.tenant_id, c.id, j.name,
           CASE WHEN j.aligned THEN to_timestamp(
                    (floor((extract(epoch FROM t.at) - p.phase) / j.seconds) + 1) * j.seconds + p.phase)
                ELSE t.at + make_interval(secs => j.seconds) END
    FROM scopes c
    CROSS JOIN unnest(CAST(:jobs AS text[]), CAST(:seconds AS double precision[]), CAST(:aligned AS boolean[]))
        AS j(name, seconds, aligned)
    CROSS JOIN LATERAL (SELECT coalesce(CAST(:at AS timestamptz), now()) AS at) t
    CROSS JOIN LATERAL (
        SELECT floor(j.seconds * (c.id % 4294967296 * 2654435761 % 4294967296) / 4294967296) AS phase) p
    WHERE c.id = ANY(:scopes) AND NOT EXISTS (
        SELECT FROM schedules s WHERE s.scope_id = c.id AND s.job = j.name AND s.due_at IS NOT NULL)
    ORDER BY c.id, j.name
    ON CONFLICT (scope_id, job) DO UPDATE SET due_at = excluded.due_at WHERE schedules.due_at IS NULL
    """
)
"""What is due already is neither written nor locked: nearly every call finds nothing to do."""

_DUE = text(
    "SELECT tenant_id, scope_id, job, due_at FROM due_scopes(coalesce(CAST(:at AS timestamptz), now()), :most)"
)
_TAKE = (
    update(schedules)
    .where(
        schedules.c.scope_id == bindparam("scope"),
        schedules.c.job == bindparam("name"),
        schedules.c.due_at == bindparam("due"),
    )
    .values(due_at=null(), missed=schedules.c.missed + bindparam("periods"))
)
_NEW = insert(schedules)
# Only where no time is planned: something may have made the job due before.
_PLAN = _NEW.on_conflict_do_update(
    index_elements=[schedules.c.scope_id, schedules.c.job],
    set_={"due_at": _NEW.excluded.due_at},
    where=schedules.c.due_at.is_(None),
).inline()
_SCOPES_OF = text(
    """
    SELECT c.id FROM scopes c JOIN agents a ON a.tenant_id = c.tenant_id AND a.id = c.agent_id
    WHERE c.tenant_id = :tenant AND a.name = :agent ORDER BY c.id
    """
)
# A scope that is erased meanwhile is waited for, and then is none any more.
_MAKE_DUE = text(
    """
    WITH held AS MATERIALIZED (
        SELECT c.tenant_id, c.id FROM scopes c WHERE c.id = ANY(:scopes) ORDER BY c.id FOR KEY SHARE)
    INSERT INTO schedules (tenant_id, scope_id, job, due_at) SELECT h.tenant_id, h.id, :job, now() FROM held h
    ON CONFLICT (scope_id, job) DO UPDATE SET due_at = excluded.due_at
    WHERE schedules.due_at IS NULL OR schedules.due_at > excluded.due_at
    """
)
_HAS_NEWS = text(
    f"""
    SELECT EXISTS (
        SELECT FROM memories m WHERE m.scope_id = :scope AND m.retired_at IS NULL AND m.session_id IS NULL
          AND m.kind = ANY(:kinds)
          AND NOT EXISTS (SELECT FROM runs r WHERE r.id = m.run_id AND r.name = :job)
          AND m.created_at > coalesce(
              (SELECT max(r.started_at) FROM runs r
               WHERE r.scope_id = :scope AND r.name = :job AND r.state = '{RunState.DONE}'), '-infinity'))
    """
)


@dataclass(frozen=True, slots=True)
class PeriodicJob:
    """A periodic job. ``aligned``: due once in each period, at the scope's own place in it; else that long after the
    first thing that happens."""

    job: str
    every: timedelta
    aligned: bool = True


@dataclass(frozen=True, slots=True)
class DueJob:
    """A periodic job of a scope whose time has come."""

    tenant_id: int
    scope_id: int
    job: str
    due_at: datetime


def wake(
    connection: Connection,
    scope_ids: Sequence[int],
    jobs: Sequence[PeriodicJob],
    *,
    at: datetime | None = None,
) -> None:
    """Plan the jobs of scopes in which something happened, unless they are planned. ``at`` None: now."""
    if scope_ids and jobs:
        values = {
            "scopes": sorted(set(scope_ids)),
            "jobs": [job.job for job in jobs],
            "seconds": [job.every.total_seconds() for job in jobs],
            "aligned": [job.aligned for job in jobs],
            "at": at,
        }
        connection.execute(_WAKE, values)


def due(connection: Connection, *, most: int, at: datetime | None = None) -> tuple[DueJob, ...]:
    """Read the jobs that are due over all tenants, fair across them."""
    rows = connection.execute(_DUE, {"at": at, "most": most})
    return tuple(DueJob(**row._mapping) for row in rows)


def take(connection: Connection, job: DueJob, *, missed: int) -> bool:
    """Take a due job; False when another was faster. ``missed`` periods are counted."""
    values = {"scope": job.scope_id, "name": job.job, "due": job.due_at, "periods": missed}
    return connection.execute(_TAKE, values).rowcount == 1


def has_news(connection: Connection, scope_id: int, job: str) -> bool:
    """Whether the scope has a memory that is newer than the last run of the job, and not of the job's own making."""
    values = {"scope": scope_id, "job": job, "kinds": list(material_kinds())}
    return bool(connection.execute(_HAS_NEWS, values).scalar_one())


def plan(connection: Connection, tenant_id: int, scope_id: int, *, job: str, at: datetime) -> None:
    """Plan the job for ``at``, unless a time is planned already."""
    connection.execute(_PLAN, {"tenant_id": tenant_id, "scope_id": scope_id, "job": job, "due_at": at})


def scopes_of(connection: Connection, tenant_id: int, agent: str) -> tuple[int, ...]:
    """All scopes of an agent in this shard."""
    return tuple(connection.execute(_SCOPES_OF, {"tenant": tenant_id, "agent": agent}).scalars())


def make_due(connection: Connection, scope_ids: Sequence[int], *, job: str) -> None:
    """Make the job due now in these scopes, whether or not it was planned for later."""
    connection.execute(_MAKE_DUE, {"scopes": list(scope_ids), "job": job})
