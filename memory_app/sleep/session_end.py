"""End a session: run a sleep cycle over it, save a checkpoint, promote its strongest memories, and evict the rest.

Evicted memories can be revived for some days. The quality gate checks the cycle like any other; where it refuses, the
rest of the ending goes on. A session in which another turn was said meanwhile is left open: ending it again is another
run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
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
from memory_app.records.run import RunName, Trigger
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.sleep import cycle, promotion
from memory_app.sleep.plan import CyclePlan, make_plan, start_of_hour, strongest
from memory_app.sleep.promotion import Promotable
from memory_app.sleep.report import CycleReport, SessionEndReport, empty_report, end_report
from memory_app.sleep.rows import images, sleeping
from memory_app.sleep.rules import SESSION_STEPS, SleepOptions
from memory_app.tenancy.policy import ExtractionMode, Policy, parse_policy
from memory_app.tenancy.rows import names
from memory_app.tenancy.rows.names import ScopeRow
from memory_app.tenancy.shards import in_scopes_shard
from memory_app.transfer import snapshots
from memory_app.turns.rows import sessions
from memory_app.turns.rows.sessions import SessionRow

log = structlog.get_logger(__name__)

EXTRACTION_PAUSE_SECONDS = 2.0
"""Pause before looking again whether the session's last turns are extracted."""

REOPENED = "another turn was said since the end was asked for, so the session was left open"


@dataclass(frozen=True, slots=True)
class EndOptions:
    """What the end of a session does. ``carry``: promoted memories keep their repeat and recall counts."""

    promote: bool = True
    checkpoint: bool = True
    carry: bool = True
    promote_most: int = 20
    promote_strength: float = 0.3
    promote_degree: int = 0


@dataclass(frozen=True, slots=True)
class _Ending:
    """A session that a run ends, as it was when the run began."""

    runtime: Runtime
    claimed: RunClaim
    run: Run
    row: ScopeRow
    session: SessionRow
    options: EndOptions

    @property
    def tenant_id(self) -> int:
        return self.claimed.tenant_id

    def transaction(self) -> AbstractContextManager[Connection]:
        return transaction(self.runtime.engine, self.tenant_id)


@in_scopes_shard
def ask(
    runtime: Runtime,
    tenant_id: int,
    scope: Scope,
    *,
    promote: bool = True,
    checkpoint: bool = True,
    carry: bool = True,
) -> Run:
    """Enqueue the end of the scope's session; its run. Ending it again, with no turn in between, gives the same run.

    Raises `NotFound` for an unknown scope or session.
    """
    if scope.session is None:
        raise InvalidInput("session: name the session to end", field="session")
    settings = runtime.settings.ending
    options = EndOptions(
        promote=promote,
        checkpoint=checkpoint,
        carry=carry,
        promote_most=settings.promote_most,
        promote_strength=settings.promote_strength,
        promote_degree=settings.promote_degree,
    )
    with transaction(runtime.engine, tenant_id) as connection:
        row = names.need_scope(connection, tenant_id, Scope(scope.agent, scope.user))
        session = sessions.find(connection, row.id, scope.session)
        if session is None:
            raise NotFound(f"session: no session {scope.session!r} here", field="session")
        run = end_in(
            connection, tenant_id, row.id, session=session, options=options, policy=parse_policy(row.policy)
        )
    runtime.hint(queue.SLEEP, run_id=str(run.id))
    return run


def end_in(
    connection: Connection,
    tenant_id: int,
    scope_id: int,
    *,
    session: SessionRow,
    options: EndOptions,
    policy: Policy,
) -> Run:
    """Mark the session as ended and enqueue its runs, in the caller's transaction; the run that ends it.

    For an agent with a language model there is a synthesis of the session besides.
    """
    sessions.end(connection, scope_id, session.id)
    if policy.extraction is ExtractionMode.LLM and policy.memory:
        # The same period as that of the finder: whoever is faster, there is one run.
        runs.enqueue(
            connection,
            tenant_id,
            RunName.SYNTHESIZE_SESSION,
            scope_id=scope_id,
            session_id=session.id,
            period=period_of(session),
        )
    # The finder must not ask again for the synthesis of a session that is silent from now on.
    sessions.note_asked(connection, scope_id, session.id, to_seq=session.next_seq - 1)
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
    """Return the period for the unique key of runs: it is the same until another turn is said in the session."""
    return f"{session.id}:{session.next_seq - 1}"


def end(
    runtime: Runtime, claimed: RunClaim, *, revise: Callable[[CyclePlan], CyclePlan] = lambda plan: plan
) -> None:
    """Do one run. ``revise`` may change the plan of the sleep cycle before it is carried out.

    Raises `Transient` while turns of the session wait to be extracted.
    """
    ending = _read(runtime, claimed)
    if _is_reopened(ending.session, ending.run):
        _leave_open(ending)
        return
    _check_extracted(ending)
    cycle_report = _sleep(ending, revise=revise)
    failpoint.reach("end_session.after_sleep")
    promotable = _promotable(ending)
    with ending.transaction() as connection:
        if not names.lock_scope(connection, ending.tenant_id, ending.row.id):
            raise NotFound("the person was erased while this ran")
        # Read again under the lock: a turn may have come in while the cycle ran.
        session = sessions.read(connection, ending.row.id, ending.session.id)
        if session is None:
            raise NotFound("the session was erased while this ran")
        is_reopened = _is_reopened(session, ending.run)
        if is_reopened:
            report = _left_open(cycle_report)
        else:
            report = _settle(connection, ending, promotable, cycle_report=cycle_report)
        jobs.complete(connection, claimed, report)
    drop_context(runtime, ending.row.id)
    event = "session_left_open" if is_reopened else "session_ended"
    log.info(event, session=session.id, promoted=len(report.promoted), dropped=report.dropped)


def _read(runtime: Runtime, claimed: RunClaim) -> _Ending:
    assert claimed.session_id is not None
    with transaction(runtime.engine, claimed.tenant_id) as connection:
        run = runs.read(connection, claimed.run_id)
        row = names.read_scope(connection, claimed.scope_id)
        session = sessions.read(connection, claimed.scope_id, claimed.session_id)
    if run is None or row is None or session is None:
        raise NotFound("the session was erased while this ran")
    # A run may carry options of another version; an unknown one must not fail it.
    options = {name: value for name, value in run.options.items() if name in EndOptions.__slots__}
    return _Ending(
        runtime=runtime,
        claimed=claimed,
        run=run,
        row=row,
        session=session,
        options=EndOptions(**options),
    )


def _is_reopened(session: SessionRow, run: Run) -> bool:
    """Return whether another turn was said since the run was enqueued, even if the session was ended again since."""
    return session.ended_at is None or session.ended_at > run.created_at


def _leave_open(ending: _Ending) -> None:
    report = empty_report(
        _sleep_options(ending.runtime),
        start_of_hour(ending.session.now),
        floor=ending.runtime.settings.sleep.recall_floor,
    )
    with ending.transaction() as connection:
        jobs.complete(connection, ending.claimed, _left_open(report))
    log.info("session_left_open", session=ending.session.id)


def _left_open(cycle_report: CycleReport) -> SessionEndReport:
    """Return the report of an ending of which at most the sleep cycle took effect."""
    return replace(end_report(cycle_report), applied=cycle_report.changes > 0, reason=REOPENED)


def _check_extracted(ending: _Ending) -> None:
    """Raise `Transient` while turns wait to be extracted: their memories belong to the session, too."""
    policy, session = parse_policy(ending.row.policy), ending.session
    has_extraction = policy.memory and policy.extraction is not ExtractionMode.OFF
    # A parked session is not extracted until somebody mends it, which may be never.
    if not has_extraction or session.parked_reason is not None:
        return
    if session.extracted_seq < session.next_seq - 1:
        # Instead of waiting for the next look of the finder.
        ending.runtime.hint(queue.EXTRACT_SESSION, session_id=session.id)
        raise Transient("turns of the session are not extracted yet", retry_after=EXTRACTION_PAUSE_SECONDS)


def _sleep_options(runtime: Runtime) -> SleepOptions:
    return replace(cycle.defaults(runtime, manual=True), trigger=Trigger.SESSION_END, force=True)


def _sleep(ending: _Ending, *, revise: Callable[[CyclePlan], CyclePlan]) -> CycleReport:
    """Run a cycle over the memories of the session alone. Where the gate refuses it, the report says only why."""
    options = _sleep_options(ending.runtime)
    plan = make_plan(
        ending.runtime,
        tenant_id=ending.tenant_id,
        row=ending.row,
        options=options,
        steps=SESSION_STEPS,
        session_id=ending.session.id,
    )
    plan = revise(plan)
    report = cycle.carry_out(ending.runtime, ending.claimed, plan, note=_extend_lease)
    if report.applied:
        return report
    return replace(
        empty_report(options, plan.at, floor=ending.runtime.settings.sleep.recall_floor),
        reason=report.reason,
        inspected=report.inspected,
        gate=report.gate,
        refused=report.refused,
    )


def _extend_lease(connection: Connection, claimed: RunClaim, report: CycleReport) -> None:
    """Extend the lease in place of completing the run, which goes on after its cycle."""
    if not runs.extend(connection, claimed, jobs.LEASE):
        raise jobs.Fenced


def _promotable(ending: _Ending) -> tuple[Promotable, ...]:
    """Read the strongest memories of the session, and all that are pinned."""
    options, row = ending.options, ending.row
    with ending.transaction() as connection:
        linked = fading.current(connection, row.id, session_id=ending.session.id)
        strong = strongest(
            ending.runtime,
            linked,
            clock.now(connection),
            limit=options.promote_most if options.promote else 0,
            strength=options.promote_strength,
            degree=options.promote_degree,
        )
        # A pin is the user's word that the memory stays, whatever the options say.
        pinned = [item.memory.id for item in linked if item.memory.pinned and item.memory.id not in strong]
        stored = merges.rows(connection, row.id, [*strong, *pinned])
    return promotion.prepare(ending.runtime, stored, policy=parse_policy(row.policy))


def _settle(
    connection: Connection,
    ending: _Ending,
    promotable: Sequence[Promotable],
    *,
    cycle_report: CycleReport,
) -> SessionEndReport:
    """Save the checkpoint, promote, evict the rest; the report of all of the ending."""
    scope_id, session_id = ending.row.id, ending.session.id
    # First of all, so that the checkpoint shows the whole session.
    checkpoint_id = _save_checkpoint(connection, ending)
    images.begin(connection, ending.claimed.run_id)
    place = Place(ending.tenant_id, scope_id, run_id=ending.claimed.run_id, turn_scopes=ending.row.visible)
    # What was merged or retired since it was made ready is not current any more.
    current = set(sleeping.session_memories(connection, scope_id, session_id=session_id))
    promotable = [item for item in promotable if item.row.memory.id in current]
    # With images on, so that undoing the run takes back the promotion, too.
    written = promotion.promote(
        connection, ending.runtime, place, promotable=promotable, carry=ending.options.carry
    )
    rest = sleeping.session_memories(connection, scope_id, session_id=session_id)
    dropped = memories.retire(connection, scope_id, rest, reason=Retirement.EVICTED)
    evicted = _keep_ceiling(connection, ending, written)
    images.end(connection)
    return replace(
        end_report(cycle_report, checkpoint=checkpoint_id, dropped=len(dropped)),
        applied=True,
        promoted=tuple(item.row.memory.id for item in promotable),
        evicted=(*cycle_report.evicted, *evicted),
        changes=cycle_report.changes + len(promotable) + len(dropped) + len(evicted),
    )


def _save_checkpoint(connection: Connection, ending: _Ending) -> UUID | None:
    scope_id, session = ending.row.id, ending.session
    if not ending.options.checkpoint:
        return None
    if not sleeping.session_memories(connection, scope_id, session_id=session.id):
        return None
    return snapshots.checkpoint(
        connection,
        ending.runtime,
        tenant_id=ending.tenant_id,
        row=ending.row,
        session=session.name,
        session_id=session.id,
    )


def _keep_ceiling(connection: Connection, ending: _Ending, written: Sequence[UUID]) -> tuple[UUID, ...]:
    if not written:
        return ()
    return capacity.keep_ceiling(
        connection,
        ending.runtime,
        tenant_id=ending.tenant_id,
        scope_id=ending.row.id,
        policy=parse_policy(ending.row.policy),
        written=written,
    )


def collect(
    connection: Connection, runtime: Runtime, *, tenant_id: int, scope_id: int, policy: Policy
) -> tuple[Run, ...]:
    """End the sessions of a scope that have been silent for too long; the runs that end them."""
    settings = runtime.settings.ending
    options = EndOptions(
        promote_most=settings.promote_most,
        promote_strength=settings.promote_strength,
        promote_degree=settings.promote_degree,
    )
    silent = sessions.silent(connection, scope_id, longer_than=timedelta(hours=settings.idle_hours))
    return tuple(
        end_in(connection, tenant_id, scope_id, session=session, options=options, policy=policy)
        for session in silent
    )
