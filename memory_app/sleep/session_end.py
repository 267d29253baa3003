"""The end of a session: a sleep pass over it, what proved itself is promoted, the best is kept in a checkpoint, and the
rest of its graph goes, through the stage from which it can be brought back.

The sleep pass is checked like any other and taken back where it would lower recall; the rest of the ending goes on. A
session that goes on meanwhile is left open: ending it anew is another run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import structlog
from sqlalchemy import Connection

from memory_app import failpoint, queue
from memory_app.db import clock
from memory_app.db.db import transaction
from memory_app.errors import InvalidInput, NotFound, Transient
from memory_app.jobs import jobs
from memory_app.jobs.rows import runs
from memory_app.jobs.rows.runs import Run, RunClaim
from memory_app.memories import capacity
from memory_app.memories.remember import Place, drop_context
from memory_app.memories.rows import fading, memories, merges
from memory_app.records.records import Retirement
from memory_app.records.run import RunName
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.sleep import cycle, promotion
from memory_app.sleep.plan import CyclePlan, make_plan, start_of_hour, strongest
from memory_app.sleep.promotion import Promotable
from memory_app.sleep.report import empty_report
from memory_app.sleep.rows import images, sleeping
from memory_app.sleep.rules import SESSION_STEPS, SleepOptions, Trigger
from memory_app.tenancy.policy import ExtractionMode, Policy, parse_policy
from memory_app.tenancy.rows import names
from memory_app.tenancy.rows.names import ScopeRow
from memory_app.transfer import snapshots
from memory_app.turns.rows import sessions
from memory_app.turns.rows.sessions import SessionRow

log = structlog.get_logger(__name__)

EXTRACTION_PAUSE_SECONDS = 2.0
"""Pause before looking again whether the session's last turns are extracted."""

REOPENED = "another turn was said since the end was asked for, so the session was left open"


@dataclass(frozen=True, slots=True)
class EndOptions:
    """What the end of a session does. ``carry``: promoted memories keep how often they were said and recalled."""

    promote: bool = True
    checkpoint: bool = True
    carry: bool = True
    promote_most: int = 20
    promote_strength: float = 0.3
    promote_degree: int = 0


def ask(
    runtime: Runtime,
    tenant_id: int,
    scope: Scope,
    *,
    promote: bool = True,
    checkpoint: bool = True,
    carry: bool = True,
) -> Run:
    """End the scope's session; its run. Ending it again, with no turn in between, gives the same run.

    Raises `NotFound` for an unknown scope or session.
    """
    if scope.session is None:
        raise InvalidInput("session: name the session to end", field="session")
    settings = runtime.settings.ending
    options = EndOptions(
        promote, checkpoint, carry, settings.promote_most, settings.promote_strength, settings.promote_degree
    )
    with transaction(runtime.engine, tenant_id) as connection:
        row = names.need_scope(connection, tenant_id, Scope(scope.agent, scope.user))
        session = sessions.find(connection, row.id, scope.session)
        if session is None:
            raise NotFound(f"session: no session {scope.session!r} here", field="session")
        run = end_in(connection, tenant_id, row.id, session, options, policy=parse_policy(row.policy))
    runtime.hint(queue.SLEEP, run_id=str(run.id))
    return run


def end_in(
    connection: Connection,
    tenant_id: int,
    scope_id: int,
    session: SessionRow,
    options: EndOptions,
    *,
    policy: Policy,
) -> Run:
    """Note the end and the work it brings, in the caller's transaction. An agent's model sums the session up."""
    sessions.end(connection, scope_id, session.id)
    if policy.extraction is ExtractionMode.LLM and policy.memory:
        runs.enqueue(
            connection,
            tenant_id,
            RunName.SYNTHESIZE_SESSION,
            scope_id=scope_id,
            session_id=session.id,
            period=period_of(session),
        )
    sessions.note_asked(connection, scope_id, session.id, session.next_seq - 1)
    return runs.enqueue(
        connection,
        tenant_id,
        RunName.END_SESSION,
        scope_id=scope_id,
        session_id=session.id,
        options=asdict(options),
        period=period_of(session),
    )


def period_of(session: SessionRow) -> str:
    """The same until another turn is said in the session."""
    return f"{session.id}:{session.next_seq - 1}"


def end(
    runtime: Runtime, claimed: RunClaim, *, revise: Callable[[CyclePlan], CyclePlan] = lambda plan: plan
) -> None:
    """Do one run. ``revise`` may change the plan of the sleep pass before it is carried out.

    Raises `Transient` while turns of the session wait to be extracted.
    """
    run, row, session = _read(runtime, claimed)
    if _is_reopened(session, run):
        _leave_open(runtime, claimed, session)
        return
    _check_extracted(runtime, row, session)
    given = {name: value for name, value in run.options.items() if name in EndOptions.__slots__}
    options = EndOptions(**given)
    report = _sleep(runtime, claimed, row, session, revise=revise)
    failpoint.reach("end_session.after_sleep")
    promotable = _promotable(runtime, claimed, row, session, options)
    with transaction(runtime.engine, claimed.tenant_id) as connection:
        if not names.lock_scope(connection, claimed.tenant_id, row.id):
            raise NotFound("the person was forgotten while this was under way")
        current = sessions.read(connection, row.id, session.id)
        if current is None:
            raise NotFound("the session was forgotten while this was under way")
        reopened = _is_reopened(current, run)
        if reopened:
            report = _left_open(report)
        else:
            report |= _settle(connection, runtime, claimed, row, session, options, promotable, report)
        jobs.complete(connection, claimed, report)
    drop_context(runtime, row.id)
    event = "session_left_open" if reopened else "session_ended"
    log.info(event, session=session.id, promoted=len(report["promoted"]), dropped=report["dropped"])


def _read(runtime: Runtime, claimed: RunClaim) -> tuple[Run, ScopeRow, SessionRow]:
    assert claimed.session_id is not None
    with transaction(runtime.engine, claimed.tenant_id) as connection:
        run = runs.read(connection, claimed.run_id)
        row = names.read_scope(connection, claimed.scope_id)
        session = sessions.read(connection, claimed.scope_id, claimed.session_id)
    if run is None or row is None or session is None:
        raise NotFound("the session was forgotten while this was under way")
    return run, row, session


def _is_reopened(session: SessionRow, run: Run) -> bool:
    """Was another turn said since the run was asked for, even if the session was ended anew since?"""
    return session.ended_at is None or session.ended_at > run.created_at


def _leave_open(runtime: Runtime, claimed: RunClaim, session: SessionRow) -> None:
    floor = runtime.settings.sleep.recall_floor
    report = empty_report(_sleep_options(runtime), start_of_hour(session.now), floor=floor)
    with transaction(runtime.engine, claimed.tenant_id) as connection:
        jobs.complete(connection, claimed, _left_open(report))
    log.info("session_left_open", session=session.id)


def _left_open(report: dict[str, Any]) -> dict[str, Any]:
    """The report where nothing but the sleep pass, if that, took effect."""
    return report | {
        "slept": report["applied"],
        "applied": report["changes"] > 0,
        "reason": REOPENED,
        "checkpoint": None,
        "dropped": 0,
    }


def _check_extracted(runtime: Runtime, row: ScopeRow, session: SessionRow) -> None:
    policy = parse_policy(row.policy)
    extracting = (
        policy.memory and policy.extraction is not ExtractionMode.OFF and session.parked_reason is None
    )
    if extracting and session.extracted_seq < session.next_seq - 1:
        runtime.hint(queue.EXTRACT_SESSION, session_id=session.id)
        raise Transient("turns of the session are not extracted yet", retry_after=EXTRACTION_PAUSE_SECONDS)


def _sleep_options(runtime: Runtime) -> SleepOptions:
    return replace(cycle.defaults(runtime, manual=True), trigger=Trigger.SESSION_END, force=True)


def _sleep(
    runtime: Runtime,
    claimed: RunClaim,
    row: ScopeRow,
    session: SessionRow,
    *,
    revise: Callable[[CyclePlan], CyclePlan],
) -> dict[str, Any]:
    """A sleep pass over what belongs to the session alone; of one that the gate refused, why, and nothing else."""
    options = _sleep_options(runtime)
    plan = revise(
        make_plan(
            runtime,
            tenant_id=claimed.tenant_id,
            row=row,
            options=options,
            steps=SESSION_STEPS,
            session_id=session.id,
        )
    )
    report = cycle.carry_out(runtime, claimed, plan, note=_hold_on)
    if report["applied"]:
        return report
    kept = {name: report[name] for name in ("reason", "inspected", "gate", "refused")}
    floor = runtime.settings.sleep.recall_floor
    return empty_report(options, plan.at, floor=floor) | kept


def _hold_on(connection: Connection, claimed: RunClaim, report: dict[str, Any]) -> None:
    """The ending goes on after its sleep pass, whatever became of that."""
    if not runs.extend(connection, claimed, jobs.LEASE):
        raise jobs.Fenced


def _promotable(
    runtime: Runtime, claimed: RunClaim, row: ScopeRow, session: SessionRow, options: EndOptions
) -> tuple[Promotable, ...]:
    with transaction(runtime.engine, claimed.tenant_id) as connection:
        weighed = fading.held(connection, row.id, session_id=session.id)
        best = strongest(
            runtime,
            weighed,
            clock.now(connection),
            limit=options.promote_most if options.promote else 0,
            strength=options.promote_strength,
            degree=options.promote_degree,
        )
        pinned = [one.memory.id for one in weighed if one.memory.pinned and one.memory.id not in best]
        stored = merges.rows(connection, row.id, [*best, *pinned])
    return promotion.prepare(runtime, stored, policy=parse_policy(row.policy))


def _settle(
    connection: Connection,
    runtime: Runtime,
    claimed: RunClaim,
    row: ScopeRow,
    session: SessionRow,
    options: EndOptions,
    promotable: tuple[Promotable, ...],
    slept: dict[str, Any],
) -> dict[str, Any]:
    """Checkpoint, promotion, and the end of the rest; in this order, so that the checkpoint shows the whole session."""
    kept = None
    if options.checkpoint and sleeping.session_memories(connection, row.id, session_id=session.id):
        kept = snapshots.checkpoint(
            connection, runtime, claimed.tenant_id, row, session=session.name, session_id=session.id
        )
    images.begin(connection, claimed.run_id)
    place = Place(claimed.tenant_id, row.id, run_id=claimed.run_id, turn_scopes=row.visible)
    there = set(sleeping.session_memories(connection, row.id, session_id=session.id))
    risen = [one for one in promotable if one.row.memory.id in there]
    written = promotion.promote(connection, runtime, place, risen, carry=options.carry)
    rest = sleeping.session_memories(connection, row.id, session_id=session.id)
    dropped = memories.retire(connection, row.id, rest, reason=Retirement.EVICTED)
    evicted = _keep_ceiling(connection, runtime, claimed.tenant_id, row, written)
    images.end(connection)
    promoted = [str(one.row.memory.id) for one in risen]
    return {
        "slept": slept["applied"],
        "applied": True,
        "checkpoint": None if kept is None else str(kept),
        "promoted": promoted,
        "dropped": len(dropped),
        "evicted": [*slept["evicted"], *evicted],
        "changes": slept["changes"] + len(promoted) + len(dropped) + len(evicted),
    }


def _keep_ceiling(
    connection: Connection, runtime: Runtime, tenant_id: int, row: ScopeRow, written: Sequence[UUID]
) -> list[str]:
    if not written:
        return []
    policy = parse_policy(row.policy)
    gone = capacity.keep_ceiling(connection, runtime, tenant_id, row.id, policy, written=written)
    return [str(id) for id in gone]


def collect(
    connection: Connection, runtime: Runtime, tenant_id: int, scope_id: int, policy: Policy
) -> tuple[tuple[SessionRow, UUID], ...]:
    """End the sessions of a scope that have been silent for too long; the sessions and their runs."""
    settings = runtime.settings.ending
    options = EndOptions(
        promote_most=settings.promote_most,
        promote_strength=settings.promote_strength,
        promote_degree=settings.promote_degree,
    )
    silent = sessions.silent(connection, scope_id, longer_than=timedelta(hours=settings.idle_hours))
    return tuple(
        (session, end_in(connection, tenant_id, scope_id, session, options, policy=policy).id)
        for session in silent
    )
