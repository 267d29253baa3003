"""Ask for syntheses, and synthesise a session with the agent's larger language model; `deep` looks through memories.

A job on a scope: it reads, calls the model with no transaction open, and commits effects and report together.
Statements go through the write path, so that a second run over the same material reinforces instead of doubling.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy import Connection

from memory_app import queue
from memory_app.db.db import transaction
from memory_app.errors import InvalidInput, NotFound
from memory_app.extraction import model_calls
from memory_app.extraction.llm import SessionSynthesis, Talk, synthesize_session
from memory_app.jobs import jobs
from memory_app.jobs.rows import runs
from memory_app.jobs.rows.runs import Run, RunClaim
from memory_app.language.zones import zone_of
from memory_app.memories import capacity, remember
from memory_app.memories.people import about_user, display_names
from memory_app.memories.rows import memories
from memory_app.recall.rows.always_shown import KindLimit, strongest
from memory_app.records.kinds import Section, kinds_of_section
from memory_app.records.records import Retirement, Turn
from memory_app.records.reports import SessionReport
from memory_app.records.run import RunName
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.sleep.model_scope import need_model
from memory_app.tenancy.policy import parse_policy
from memory_app.tenancy.rows import names
from memory_app.tenancy.rows.names import ScopeRow
from memory_app.tenancy.shards import in_scopes_shard, in_usable
from memory_app.turns.rows import sessions, turns


@in_scopes_shard
def ask_for(
    runtime: Runtime,
    tenant_id: int,
    scope: Scope,
    *,
    type: str,
    max_memories: int | None = None,
    days: int | None = None,
    dry_run: bool = False,
) -> Run:
    """Enqueue a synthesis; its run. ``type`` is "turn" or "session", which need a session in the scope, or "deep".

    A dry run, which only a deep one can be, asks the model and reports what it would change.

    Raises `InvalidInput` naming the field, `NotFound` for an unknown scope or session.
    """
    if type not in ("turn", "session", "deep"):
        raise InvalidInput("type: turn, session or deep", field="type")
    if dry_run and type != "deep":
        raise InvalidInput("dry_run: only a deep synthesis can be tried without effect", field="dry_run")
    with transaction(runtime.engine, tenant_id) as connection:
        row = names.need_scope(connection, tenant_id, Scope(scope.agent, scope.user))
        session = None if scope.session is None else sessions.find(connection, row.id, scope.session)
    if type == "deep":
        return jobs.ask(
            runtime,
            tenant_id,
            RunName.SYNTHESIZE_DEEP,
            task=queue.SYNTHESIZE_DEEP,
            scope_id=row.id,
            options={"max_memories": max_memories, "days": days, "dry_run": dry_run},
        )
    if scope.session is None:
        raise InvalidInput("session: name the session to synthesise", field="session")
    if session is None:
        raise NotFound(f"session: no session {scope.session!r} here", field="session")
    return jobs.ask(
        runtime,
        tenant_id,
        RunName.SYNTHESIZE_TURNS if type == "turn" else RunName.SYNTHESIZE_SESSION,
        task=queue.SYNTHESIZE_SESSION,
        scope_id=row.id,
        session_id=session.id,
    )


def enqueue_idle(runtime: Runtime) -> int:
    """Enqueue a synthesis of every session that fell silent, for agents with a model; the number of sessions.

    There is one run for each state of a session, however often this is called.
    """
    return sum(in_usable(runtime, _enqueue_idle))


def _enqueue_idle(runtime: Runtime) -> int:
    silence = timedelta(minutes=runtime.settings.synthesis.idle_minutes)
    with transaction(runtime.engine, None) as connection:
        idle = sessions.idle(connection, silence=silence, most=runtime.settings.finder.batch)
    for session in idle:
        # One transaction each, because the sessions belong to several tenants.
        with transaction(runtime.engine, session.tenant_id) as connection:
            run = runs.enqueue(
                connection,
                session.tenant_id,
                RunName.SYNTHESIZE_SESSION,
                scope_id=session.scope_id,
                session_id=session.session_id,
                period=f"{session.session_id}:{session.last_seq}",
            )
            sessions.note_asked(connection, session.scope_id, session.session_id, to_seq=session.last_seq)
        # After the commit: a worker must find the run.
        runtime.hint(queue.SYNTHESIZE_SESSION, run_id=str(run.id))
    return len(idle)


def synthesize_one_session(runtime: Runtime, claimed: RunClaim) -> None:
    """Do the run of a session: anchors, artifacts, identity, expression, curated facts and the rolling summary."""
    assert claimed.session_id is not None
    settings = runtime.settings.synthesis
    with transaction(runtime.engine, claimed.tenant_id) as connection:
        row = need_model(connection, claimed)
        session = sessions.read(connection, claimed.scope_id, claimed.session_id)
        if session is None:
            raise NotFound("the session was forgotten")
        last_seq = session.next_seq - 1
        # Of a long session only the last turns fit into one prompt.
        first_seq = max(1, last_seq - settings.turns + 1)
        session_turns = turns.between(
            connection, claimed.scope_id, claimed.session_id, low=first_seq, high=last_seq
        )
        limits = [KindLimit(kind, settings.anchors) for kind in kinds_of_section(Section.RELATIONSHIP)]
        anchors = strongest(connection, [row.id], limits)
    # The transaction is over before the model is asked, and the lock is taken only for the effects.
    talk = Talk(session_turns, row.user or "user", row.agent, time_zone=zone_of(row.time_zone))
    asking = model_calls.large(runtime, claimed.tenant_id, parse_policy(row.policy))
    synthesis = synthesize_session(asking, talk, anchors)
    model_calls.count_dropped(runtime, synthesis.provenance.dropped)
    synthesis = _of_user(synthesis, session_turns, row)
    _apply_session(runtime, claimed, row, synthesis=synthesis, last_seq=last_seq)


def _of_user(synthesis: SessionSynthesis, turns: Sequence[Turn], row: ScopeRow) -> SessionSynthesis:
    """The synthesis with the user's id as the subject of what is told of any of their display names."""
    if row.user is None or parse_policy(row.policy).group:
        return synthesis
    names_of_user = display_names(turns, row.user, label=row.label, aliases=row.aliases).values()
    statements = (about_user(item, user=row.user, names=names_of_user) for item in synthesis.statements)
    return replace(synthesis, statements=tuple(statements))


def _apply_session(
    runtime: Runtime, claimed: RunClaim, row: ScopeRow, *, synthesis: SessionSynthesis, last_seq: int
) -> None:
    assert claimed.session_id is not None
    policy = parse_policy(row.policy)
    changes = [change.statement for change in synthesis.changed]
    # Embedded before the transaction, as everywhere.
    statements = remember.prepare(runtime, synthesis.statements, policy=policy)
    changed = remember.prepare(runtime, changes, policy=policy)
    summary = remember.prepare(runtime, [synthesis.summary] if synthesis.summary else [], policy=policy)
    with transaction(runtime.engine, claimed.tenant_id) as connection:
        _lock(connection, claimed)
        place = _place(claimed)
        written = remember.write_all(connection, runtime, place, prepared=statements)
        replaced = sum(
            _replace(connection, runtime, place, item=item, until=item.statement.valid_from)
            for item in changed
        )
        summary_ids = [
            _replace_summary(connection, runtime, place, item=item, session_id=claimed.session_id)
            for item in summary
        ]
        stored_ids = [*(result.id for result in written), *summary_ids]
        _keep_ceiling(connection, runtime, claimed, row=row, written=stored_ids)
        report = SessionReport(
            statements=len(written),
            changed=replaced,
            summary=bool(summary),
            to_seq=last_seq,
            memories=tuple(result.id for result in written),
            made=synthesis.provenance.as_dict(),
        )
        # In the same transaction as the memories, so that both are stored or neither.
        sessions.note_synthesis(connection, place.scope_id, claimed.session_id, to_seq=last_seq)
        jobs.complete(connection, claimed, report)
    remember.drop_context(runtime, row.id)


def _replace(
    connection: Connection,
    runtime: Runtime,
    place: remember.Place,
    *,
    item: remember.Prepared,
    until: datetime | None = None,
) -> int:
    """Store a statement and retire its parents as superseded by it; 1 if there were any.

    ``until`` is when the parents stopped being true, if they did.
    """
    # Without deduplication: it would merge the statement with the very parents that it replaces.
    remembered = remember.write(connection, runtime, place, prepared=item, deduplicate=False)
    parents = [parent for parent in item.statement.parents if parent != remembered.id]
    retired = memories.retire(
        connection,
        place.scope_id,
        parents,
        reason=Retirement.SUPERSEDED,
        successor=remembered.id,
        valid_until=until,
    )
    return int(bool(retired))


def _replace_summary(
    connection: Connection,
    runtime: Runtime,
    place: remember.Place,
    *,
    item: remember.Prepared,
    session_id: int,
) -> UUID:
    """Store the session's rolling summary and retire the one before; the id of the new one."""
    previous = sessions.summary_memory(connection, place.scope_id, session_id)
    remembered = remember.write(connection, runtime, place, prepared=item, deduplicate=False)
    # The same words give the same row, which must not be superseded by itself.
    if previous is not None and previous != remembered.id:
        memories.retire(
            connection, place.scope_id, [previous], reason=Retirement.SUPERSEDED, successor=remembered.id
        )
    sessions.note_summary(
        connection, place.scope_id, session_id, memory_id=remembered.id, summary=item.statement.text
    )
    return remembered.id


def _keep_ceiling(
    connection: Connection,
    runtime: Runtime,
    claimed: RunClaim,
    *,
    row: ScopeRow,
    written: Sequence[UUID],
    recount: bool = False,
) -> None:
    capacity.keep_ceiling(
        connection,
        runtime,
        tenant_id=claimed.tenant_id,
        scope_id=row.id,
        policy=parse_policy(row.policy),
        written=written,
        recount=recount,
    )


def _place(claimed: RunClaim) -> remember.Place:
    return remember.Place(
        claimed.tenant_id, claimed.scope_id, run_id=claimed.run_id, turn_scopes=(claimed.scope_id,)
    )


def _lock(connection: Connection, claimed: RunClaim) -> None:
    if not names.lock_scope(connection, claimed.tenant_id, claimed.scope_id):
        raise NotFound("the person was erased while this ran; nothing was stored")
