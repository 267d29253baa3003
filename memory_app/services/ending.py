"""The end of a session: a sleep pass over it, what proved itself is promoted, the best is kept in a checkpoint, and the
rest of its graph goes, through the stage from which it can be brought back."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import structlog
from sqlalchemy import Connection

from memory_app import failpoint, queue
from memory_app.domain.policy import ExtractionMode, Policy, parse_policy
from memory_app.domain.scope import Scope
from memory_app.domain.slumber import Trigger
from memory_app.errors import InvalidInput, NotFound, Transient
from memory_app.runtime import Runtime
from memory_app.services import jobs, promotion, sleep, synthesis, transfer
from memory_app.services.promotion import Promotable
from memory_app.services.remember import Place, drop_context
from memory_app.services.sleep_plan import chosen, make_plan
from memory_app.store import clock, fading, images, memories, merges, names, runs, sessions, sleeping
from memory_app.store.db import transaction
from memory_app.store.names import ScopeRow
from memory_app.store.runs import Run, RunClaim
from memory_app.store.sessions import SessionRow

log = structlog.get_logger(__name__)

END = "end_session"

EXTRACTION_PAUSE_SECONDS = 2.0
"""Pause before looking again whether the session's last turns are extracted."""


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
            synthesis.SESSION,
            scope_id=scope_id,
            session_id=session.id,
            period=period_of(session),
        )
    return runs.enqueue(
        connection,
        tenant_id,
        END,
        scope_id=scope_id,
        session_id=session.id,
        options=asdict(options),
        period=period_of(session),
    )


def period_of(session: SessionRow) -> str:
    """The same until another turn is said in the session."""
    return f"{session.id}:{session.next_seq - 1}"


def end(runtime: Runtime, claimed: RunClaim) -> None:
    """Do one run. Raises `Transient` while turns of the session wait to be extracted."""
    run, row, session = _read(runtime, claimed)
    given = {name: value for name, value in run.options.items() if name in EndOptions.__slots__}
    options = EndOptions(**given)
    report = _sleep(runtime, claimed, row, session)
    failpoint.reach("end_session.after_sleep")
    promotable = _promotable(runtime, claimed, row, session, options)
    with transaction(runtime.engine, claimed.tenant_id) as connection:
        if not names.lock_scope(connection, claimed.tenant_id, row.id):
            raise NotFound("the person was forgotten while this was under way")
        report |= _settle(connection, runtime, claimed, row, session, options, promotable)
        jobs.complete(connection, claimed, report)
    drop_context(runtime, row.id)
    log.info("session_ended", session=session.id, promoted=len(report["promoted"]), dropped=report["dropped"])


def _read(runtime: Runtime, claimed: RunClaim) -> tuple[Run, ScopeRow, SessionRow]:
    assert claimed.scope_id is not None
    assert claimed.session_id is not None
    with transaction(runtime.engine, claimed.tenant_id) as connection:
        run = runs.read(connection, claimed.run_id)
        row = names.read_scope(connection, claimed.scope_id)
        session = sessions.read(connection, claimed.scope_id, claimed.session_id)
    if run is None or row is None or session is None:
        raise NotFound("the session was forgotten while this was under way")
    policy = parse_policy(row.policy)
    extracting = (
        policy.memory and policy.extraction is not ExtractionMode.OFF and session.parked_reason is None
    )
    if extracting and session.extracted_seq < session.next_seq - 1:
        runtime.hint(queue.EXTRACT_SESSION, session_id=session.id)
        raise Transient("turns of the session are not extracted yet", retry_after=EXTRACTION_PAUSE_SECONDS)
    return run, row, session


def _sleep(runtime: Runtime, claimed: RunClaim, row: ScopeRow, session: SessionRow) -> dict[str, Any]:
    """A sleep pass over what belongs to the session alone."""
    options = replace(sleep.defaults(runtime, manual=True), trigger=Trigger.SESSION_END, force=True)
    plan = make_plan(runtime, claimed.tenant_id, row, options, session_id=session.id)
    with transaction(runtime.engine, claimed.tenant_id) as connection:
        if not names.lock_scope(connection, claimed.tenant_id, row.id):
            raise NotFound("the person was forgotten while this was under way")
        if not runs.extend(connection, claimed, jobs.LEASE):
            raise jobs.Fenced
        images.begin(connection, claimed.run_id)
        return sleep.apply(connection, runtime, claimed, plan)


def _promotable(
    runtime: Runtime, claimed: RunClaim, row: ScopeRow, session: SessionRow, options: EndOptions
) -> tuple[Promotable, ...]:
    with transaction(runtime.engine, claimed.tenant_id) as connection:
        weighed = fading.held(connection, row.id, session_id=session.id)
        best = chosen(
            runtime,
            weighed,
            clock.now(connection),
            most=options.promote_most if options.promote else 0,
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
) -> dict[str, Any]:
    """Checkpoint, promotion, and the end of the rest; in this order, so that the checkpoint shows the whole session."""
    kept = None
    if options.checkpoint and sleeping.session_memories(connection, row.id, session_id=session.id):
        kept = transfer.checkpoint(
            connection, runtime, claimed.tenant_id, row, session=session.name, session_id=session.id
        )
    images.begin(connection, claimed.run_id)
    place = Place(claimed.tenant_id, row.id, run_id=claimed.run_id, turn_scopes=row.visible)
    there = set(sleeping.session_memories(connection, row.id, session_id=session.id))
    risen = [one for one in promotable if one.stored.memory.id in there]
    promotion.promote(connection, runtime, place, risen, carry=options.carry)
    rest = sleeping.session_memories(connection, row.id, session_id=session.id)
    dropped = memories.retire(connection, row.id, rest, reason="evicted")
    images.end(connection)
    promoted = [str(one.stored.memory.id) for one in risen]
    return {
        "applied": True,
        "checkpoint": None if kept is None else str(kept),
        "promoted": promoted,
        "dropped": len(dropped),
        "changes": len(promoted) + len(dropped),
    }


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
