"""Runs: the one record of background work on a scope, with the answer it waits to apply and its report."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import (
    Connection,
    Interval,
    Row,
    Text,
    Uuid,
    and_,
    bindparam,
    cast,
    func,
    insert,
    literal_column,
    null,
    select,
    text,
    update,
)
from sqlalchemy.dialects.postgresql import JSONB

from memory_app import correlation
from memory_app.db.expressions import column_list, columns_of
from memory_app.db.locks import locking
from memory_app.db.tables.jobs import runs
from memory_app.records.reports import Report
from memory_app.records.run import OPEN, RunName, RunState


@dataclass(frozen=True, slots=True)
class Run:
    """One background job. ``answer`` is what an extractor said and is dropped once it took effect."""

    id: UUID
    name: str
    state: RunState
    scope_id: int | None
    session_id: int | None
    from_seq: int | None
    to_seq: int | None
    answer: Any
    report: Any
    reason: str | None
    attempts: int
    options: dict[str, Any]
    created_at: datetime
    finished_at: datetime | None


@dataclass(frozen=True, slots=True)
class ScopeRun(Run):
    """A run on what a scope holds, which is every run but one that forgets."""

    scope_id: int


@dataclass(frozen=True, slots=True)
class RunLease:
    """A run lent to this worker. ``starts`` counts this start; more than the limit means: fail it, do not run it."""

    run_id: UUID
    tenant_id: int
    name: str
    fence: int
    starts: int


@dataclass(frozen=True, slots=True)
class RunClaim(RunLease):
    """A lent run on a scope, as a job gets it."""

    scope_id: int
    session_id: int | None


@dataclass(frozen=True, slots=True)
class DueRun:
    """A run that waits. ``is_suspect``: a worker began it and never said how it ended."""

    run_id: UUID
    name: str
    is_suspect: bool


_COLUMNS = columns_of(runs, Run)
_IS_RUN = runs.c.id == bindparam("run")
_IS_RUNNING = and_(_IS_RUN, runs.c.state == RunState.RUNNING)
_IS_CLAIMED = and_(_IS_RUNNING, runs.c.fence == bindparam("claimed_fence"))
# A report is JSON already: it writes ids and instants in its own way.
_REPORT = cast(bindparam("report_json", type_=Text), JSONB)
# What an erasure is of, or whose retention was changed, stands in its run only until then.
_FINISHED: dict[str, Any] = {
    "finished_at": func.now(),
    "answer": null(),
    "options": runs.c.options.op("-")(literal_column("'target'")),
}
_FREE: dict[str, Any] = {"lease_until": null(), "due_at": null()}
_BY_TASK: dict[str, Any] = {"task_id": bindparam("by_task", type_=Uuid)}

_BEGIN_EXTRACT = text(
    f"""
    INSERT INTO runs AS r (tenant_id, scope_id, session_id, name, state, from_seq, to_seq, attempts, started_at,
        task_id)
    VALUES (:tenant, :scope, :session, '{RunName.EXTRACT}', '{RunState.RUNNING}', :from_seq, :to_seq, 1, now(),
        CAST(:task AS uuid))
    ON CONFLICT (session_id, from_seq) WHERE name = '{RunName.EXTRACT}' AND state = '{RunState.RUNNING}'
    DO UPDATE SET attempts = r.attempts + 1, started_at = now(), task_id = excluded.task_id,
        to_seq = CASE WHEN r.answer IS NULL THEN excluded.to_seq ELSE r.to_seq END
    RETURNING {column_list(_COLUMNS, "r")}
    """
)
_KEEP_ANSWER = update(runs).where(_IS_RUNNING, runs.c.answer.is_(None))
_FINISH = (
    update(runs)
    .where(_IS_RUNNING)
    .values(
        **_FINISHED,
        state=RunState.DONE,
        report=_REPORT,
        model=func.coalesce(runs.c.model, bindparam("asked_model", type_=Text)),
    )
)
_FAIL = update(runs).where(_IS_RUN, runs.c.state.in_(OPEN)).values(**_FINISHED, state=RunState.FAILED)
# DO UPDATE changes nothing, but unlike DO NOTHING it returns the existing run.
_ENQUEUE = text(
    f"""
    INSERT INTO runs AS r (tenant_id, scope_id, session_id, name, period, state, options, due_at, request_id)
    VALUES (:tenant, :scope, :session, :name, :period, '{RunState.QUEUED}', CAST(:options AS jsonb), now(),
        CAST(:request AS uuid))
    ON CONFLICT (tenant_id, name, scope_id, period) WHERE period IS NOT NULL
    DO UPDATE SET period = r.period
    RETURNING {column_list(_COLUMNS, "r")}
    """
)
_CLAIM = text(
    "SELECT tenant_id, scope_id, session_id, name, fence, starts FROM claim_run(:run, :lease, :shared)"
)
_DUE = text("SELECT run_id, name, is_suspect FROM due_runs(:most)")
_COMPLETE = (
    update(runs)
    .where(_IS_CLAIMED)
    .values(**_FINISHED, **_FREE, **_BY_TASK, state=RunState.DONE, report=_REPORT)
)
_ABANDON = update(runs).where(_IS_CLAIMED).values(**_FINISHED, **_FREE, **_BY_TASK, state=RunState.FAILED)
# Only what is still on loan: nobody knows of a commit that broke off whether it was made, and this may come late.
# The starts go back to 0, since this worker lived to say what happened. `due_at` is by the database's clock.
_POSTPONE = (
    update(runs)
    .where(_IS_CLAIMED, runs.c.lease_until.is_not(None))
    .values(
        **_BY_TASK,
        attempts=runs.c.attempts + 1,
        starts=0,
        lease_until=null(),
        due_at=func.now() + bindparam("wait", type_=Interval),
        failing_since=func.coalesce(runs.c.failing_since, func.now()),
    )
    .returning(runs.c.attempts, (func.now() - runs.c.failing_since).label("failing_for"))
)
# No attempt and no failure: nothing was asked.
_DEFER = (
    update(runs)
    .where(_IS_CLAIMED, runs.c.lease_until.is_not(None))
    .values(
        **_BY_TASK,
        starts=0,
        lease_until=null(),
        due_at=func.now() + bindparam("wait", type_=Interval),
        waits_for_cap=True,
    )
)
_GIVE_BACK = (
    update(runs)
    .where(_IS_CLAIMED, runs.c.lease_until.is_not(None))
    .values(**_BY_TASK, starts=0, lease_until=null(), due_at=func.now() + bindparam("wait", type_=Interval))
)
_FREE_CAPPED = (
    update(runs)
    .where(runs.c.tenant_id == bindparam("tenant"), runs.c.waits_for_cap)
    .values(waits_for_cap=False, due_at=func.least(runs.c.due_at, func.now()))
)
# Each claim adds one to the fence and to the starts: the starts after this one are as many as the fences. Where no more
# are counted, somebody explained this one already.
_EXPLAIN = (
    update(runs)
    .where(
        _IS_RUNNING,
        runs.c.fence > bindparam("claimed_fence"),
        runs.c.starts > runs.c.fence - bindparam("claimed_fence"),
    )
    .values(
        starts=runs.c.fence - bindparam("claimed_fence"),
        attempts=runs.c.attempts + 1,
        failing_since=func.coalesce(runs.c.failing_since, func.now()),
    )
)
_NOTE_PROGRESS = update(runs).where(_IS_CLAIMED).values(report=_REPORT)
_FIND_OPEN = (
    select(*_COLUMNS)
    .where(
        runs.c.tenant_id == bindparam("tenant"),
        # By the index of what is due, which holds all that is open.
        runs.c.due_at.is_not(None),
        runs.c.name == bindparam("name"),
        runs.c.state.in_(OPEN),
        runs.c.options == bindparam("options", type_=JSONB),
    )
    .order_by(runs.c.due_at)
    .limit(1)
)
_EXTEND = update(runs).where(_IS_CLAIMED).values(lease_until=func.now() + bindparam("lease", type_=Interval))
_READ = select(*_COLUMNS).where(_IS_RUN)
_RECORD = (
    insert(runs)
    .values(state=RunState.DONE, report=_REPORT, attempts=1, started_at=func.now(), finished_at=func.now())
    .returning(runs.c.id)
)
_NOTE_UNDO = update(runs).where(_IS_RUN, runs.c.state == RunState.DONE)
# NO KEY UPDATE: rows that refer to the run can still be inserted meanwhile.
_LOCK = locking("run", _READ.with_for_update(key_share=True))
_OLD = text("SELECT tenant_id, run_id FROM old_runs(:age, :most)")
# Rows of another call are skipped and ids locked in one order, so that two calls never wait for each other.
_DROP = text(
    """
    WITH looked AS MATERIALIZED (
        SELECT r.id, r.name, r.report, coalesce(r.report #>> '{made,model}', r.model) AS model
        FROM runs r WHERE r.id = ANY(:ids) AND r.finished_at IS NOT NULL ORDER BY r.id FOR UPDATE SKIP LOCKED
    ), kept AS MATERIALIZED (
        SELECT l.id FROM looked l
        WHERE EXISTS (SELECT FROM images i WHERE i.run_id = l.id)
           OR (l.name = ANY(:undone_any_time) AND l.report ->> 'undone_at' IS NULL)
           OR (l.model <> :no_model AND EXISTS (SELECT FROM memories m WHERE m.run_id = l.id))
    ), stamped AS (
        UPDATE runs r SET kept_at = now() FROM kept k WHERE r.id = k.id
    )
    DELETE FROM runs r USING looked l WHERE r.id = l.id AND r.id NOT IN (SELECT id FROM kept)
    """
)


def begin_extract(
    connection: Connection, tenant_id: int, scope_id: int, *, session_id: int, from_seq: int, to_seq: int
) -> Run:
    """The open run on this place of the session: a new one, or that of a worker which died, with its answer."""
    values = {
        "tenant": tenant_id,
        "scope": scope_id,
        "session": session_id,
        "from_seq": from_seq,
        "to_seq": to_seq,
        "task": correlation.task_id(),
    }
    return _run(connection.execute(_BEGIN_EXTRACT, values).one())


def keep_answer(
    connection: Connection,
    run_id: UUID,
    answer: Any,
    *,
    to_seq: int,
    model: str,
    prompt_version: str | None = None,
) -> None:
    """Keep what the extractor said about the turns up to ``to_seq``, so that a retry applies the same answer to the
    same turns instead of asking again; another worker may have begun a shorter piece meanwhile."""
    values = {
        "run": run_id,
        "answer": answer,
        "to_seq": to_seq,
        "model": model,
        "prompt_version": prompt_version,
    }
    connection.execute(_KEEP_ANSWER, values)


def finish(connection: Connection, run_id: UUID, report: Report, *, model: str | None = None) -> None:
    """Mark the run as done: the answer is dropped, the report (ids and counts) stays. ``model``: that was asked, if it
    is not written down yet."""
    connection.execute(_FINISH, {"run": run_id, "report_json": report.as_json(), "asked_model": model})


def fail(connection: Connection, run_id: UUID, reason: str) -> None:
    connection.execute(_FAIL, {"run": run_id, "reason": reason})


def enqueue(
    connection: Connection,
    tenant_id: int,
    name: str,
    *,
    scope_id: int | None,
    session_id: int | None = None,
    options: dict[str, Any] | None = None,
    period: str | None = None,
) -> Run:
    """Write down that a job is to be done; with ``period`` once per (name, scope, period), however often asked."""
    values = {
        "tenant": tenant_id,
        "scope": scope_id,
        "session": session_id,
        "name": name,
        "period": period,
        "options": json.dumps(options or {}),
        "request": correlation.request_id(),
    }
    run = _run(connection.execute(_ENQUEUE, values).one())
    correlation.note(correlation.RUNS, [run.id])
    return run


def find_open(
    connection: Connection, tenant_id: int, name: RunName, *, options: dict[str, Any]
) -> Run | None:
    """A run with just these options that is still to be done."""
    values = {"tenant": tenant_id, "name": name, "options": options}
    row = connection.execute(_FIND_OPEN, values).one_or_none()
    return None if row is None else _run(row)


def claim(connection: Connection, run_id: UUID, lease: timedelta, *, shared: bool = False) -> RunLease | None:
    """Take a run if it is due and free; counts the start. Needs no tenant. A run on a scope comes as a `RunClaim`.

    ``shared``: for a process that does other work meanwhile, which gets no run that may kill it.
    """
    values = {"run": run_id, "lease": lease, "shared": shared}
    row = connection.execute(_CLAIM, values).one_or_none()
    if row is None:
        return None
    if row.scope_id is None:
        return RunLease(
            run_id=run_id, tenant_id=row.tenant_id, name=row.name, fence=row.fence, starts=row.starts
        )
    return RunClaim(run_id=run_id, **row._mapping)


def due(connection: Connection, *, most: int) -> tuple[DueRun, ...]:
    """Due, free runs over all tenants, fair across them."""
    return tuple(DueRun(**row._mapping) for row in connection.execute(_DUE, {"most": most}))


@dataclass(frozen=True, slots=True)
class OldRun:
    """A run that ended long ago, and whose it is."""

    tenant_id: int
    run_id: UUID


def old(connection: Connection, *, age: timedelta, most: int) -> tuple[OldRun, ...]:
    """Runs of any tenant that ended, or were looked at and kept, longer ago than ``age``; the oldest first."""
    rows = connection.execute(_OLD, {"age": age, "most": most})
    return tuple(OldRun(**row._mapping) for row in rows)


def drop(
    connection: Connection,
    ids: Sequence[UUID],
    *,
    undone_any_time: Sequence[str],
    no_model: str,
) -> int:
    """Delete those of the runs that nothing rests on; how many went. The others are looked at again a while later.

    Kept are runs whose changes can be put back, runs named ``undone_any_time``, and those of another model than
    ``no_model`` while a memory of theirs is there.
    """
    values = {
        "ids": list(ids),
        "undone_any_time": list(undone_any_time),
        "no_model": no_model,
    }
    return connection.execute(_DROP, values).rowcount


def complete(connection: Connection, claimed: RunLease, report: Report) -> bool:
    """Done, in the transaction of the effects. False when another worker holds a newer fence: roll back then."""
    values = {**_last(claimed), "report_json": report.as_json()}
    return connection.execute(_COMPLETE, values).rowcount == 1


def abandon(connection: Connection, claimed: RunLease, reason: str) -> None:
    """Mark the run as failed for good, with the reason."""
    connection.execute(_ABANDON, {**_last(claimed), "reason": reason})


def postpone(connection: Connection, claimed: RunLease, wait: timedelta) -> tuple[int, timedelta] | None:
    """Give the run back until ``wait`` has passed; how often and for how long it has been failing.

    None when another worker holds a newer fence: then only the starts up to this one are explained.
    """
    values = {**_last(claimed), "wait": wait}
    row = connection.execute(_POSTPONE, values).one_or_none()
    if row is None:
        connection.execute(_EXPLAIN, _keys(claimed))
        return None
    return row.attempts, row.failing_for


def defer(connection: Connection, claimed: RunLease, wait: timedelta) -> None:
    """Give the run back until ``wait`` has passed or the tenant's cap is lifted: nothing failed."""
    connection.execute(_DEFER, {**_last(claimed), "wait": wait})


def give_back(connection: Connection, claimed: RunLease, wait: timedelta) -> None:
    """Give a run back that has done a piece of its work: the next one is due when ``wait`` has passed."""
    connection.execute(_GIVE_BACK, {**_last(claimed), "wait": wait})


def free_capped(connection: Connection, tenant_id: int) -> int:
    """Make the runs due that wait for the tenant's cap; how many."""
    return connection.execute(_FREE_CAPPED, {"tenant": tenant_id}).rowcount


def extend(connection: Connection, claimed: RunLease, lease: timedelta) -> bool:
    """Extend the lease of a long run; False when it was taken over."""
    values = {**_keys(claimed), "lease": lease}
    return connection.execute(_EXTEND, values).rowcount == 1


def note_progress(connection: Connection, claimed: RunLease, report: Report) -> None:
    """Show how far a lent run is, until its own report takes the place."""
    connection.execute(_NOTE_PROGRESS, {**_keys(claimed), "report_json": report.as_json()})


def record(
    connection: Connection,
    tenant_id: int,
    name: RunName,
    *,
    scope_id: int | None,
    report: Report,
    options: dict[str, Any] | None = None,
) -> UUID:
    """Record work that was done at once, in the transaction of its effects; returns the run's id."""
    values = {
        "tenant_id": tenant_id,
        "scope_id": scope_id,
        "name": name,
        "options": options or {},
        "report_json": report.as_json(),
        "request_id": correlation.request_id(),
        "task_id": correlation.task_id(),
    }
    run_id: UUID = connection.execute(_RECORD, values).scalar_one()
    correlation.note(correlation.RUNS, [run_id])
    return run_id


def amend(connection: Connection, run_id: UUID, report: Mapping[str, Any]) -> None:
    """Put a new report in place of that of a finished run, such as one that says it was undone."""
    connection.execute(_NOTE_UNDO, {"run": run_id, "report": report})


def lock(connection: Connection, run_id: UUID) -> Run | None:
    """Read the run and lock it until the end of the transaction."""
    row = connection.execute(_LOCK, {"run": run_id}).one_or_none()
    return None if row is None else _run(row)


def read(connection: Connection, run_id: UUID) -> Run | None:
    row = connection.execute(_READ, {"run": run_id}).one_or_none()
    return None if row is None else _run(row)


def _keys(claimed: RunLease) -> dict[str, Any]:
    return {"run": claimed.run_id, "claimed_fence": claimed.fence}


def _last(claimed: RunLease) -> dict[str, Any]:
    """The keys, and the task that says how the run ended."""
    return {**_keys(claimed), "by_task": correlation.task_id()}


def _run(row: Row[*tuple[Any, ...]]) -> Run:
    fields = {**row._mapping, "state": RunState(row.state)}
    return Run(**fields) if row.scope_id is None else ScopeRun(**fields)
