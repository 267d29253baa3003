"""Synthesis: what remains of a whole session, and what the memories of a week show together. Asks the larger model.

Both are jobs on a scope. They read, ask with no transaction open, and commit effects and report together; statements go
through the one write path, so that a second run over the same material reinforces instead of doubling.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import Connection

from memory_app import queue
from memory_app.db.db import transaction
from memory_app.errors import InvalidInput, NotFound, Permanent
from memory_app.extraction import model_calls
from memory_app.extraction.llm import DeepLink, SessionSynthesis, Talk, synthesize_deep, synthesize_session
from memory_app.jobs import jobs
from memory_app.jobs.rows import runs
from memory_app.jobs.rows.runs import Run, RunClaim
from memory_app.language.zones import zone_of
from memory_app.memories import capacity, remember
from memory_app.memories.rows import links, memories
from memory_app.recall.rows.always_shown import Want, strongest
from memory_app.records.kinds import Section, kinds_of_section
from memory_app.records.records import LinkType, Retirement
from memory_app.records.reports import DeepReport, SessionReport
from memory_app.records.run import RunName
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.tenancy.policy import ExtractionMode, parse_policy
from memory_app.tenancy.rows import names
from memory_app.tenancy.rows.names import ScopeRow
from memory_app.turns.rows import sessions, turns


def ask_for(
    runtime: Runtime,
    tenant_id: int,
    scope: Scope,
    *,
    type: str,
    max_memories: int | None = None,
    days: int | None = None,
) -> Run:
    """Have a synthesis made in the background; its run. ``session`` needs a session in the scope.

    Raises `InvalidInput` naming the field, `NotFound` for an unknown scope or session.
    """
    if type not in ("session", "deep"):
        raise InvalidInput("type: session or deep; turns are synthesised as they come in", field="type")
    with transaction(runtime.engine, tenant_id) as connection:
        row = names.need_scope(connection, tenant_id, Scope(scope.agent, scope.user))
        session = None if scope.session is None else sessions.find(connection, row.id, scope.session)
    if type == "deep":
        options = {"max_memories": max_memories, "days": days}
        return jobs.ask(
            runtime,
            tenant_id,
            RunName.SYNTHESIZE_DEEP,
            task=queue.SYNTHESIZE_DEEP,
            scope_id=row.id,
            options=options,
        )
    if scope.session is None:
        raise InvalidInput("session: name the session to synthesise", field="session")
    if session is None:
        raise NotFound(f"session: no session {scope.session!r} here", field="session")
    return jobs.ask(
        runtime,
        tenant_id,
        RunName.SYNTHESIZE_SESSION,
        task=queue.SYNTHESIZE_SESSION,
        scope_id=row.id,
        session_id=session.id,
    )


def enqueue_idle(runtime: Runtime) -> int:
    """Write down a run for every session of an agent with a model that fell silent; how many. Once per state of it."""
    silence = timedelta(minutes=runtime.settings.synthesis.idle_minutes)
    with transaction(runtime.engine, None) as connection:
        found = sessions.idle(connection, silence=silence, most=runtime.settings.finder.batch)
    for session in found:
        with transaction(runtime.engine, session.tenant_id) as connection:
            run = runs.enqueue(
                connection,
                session.tenant_id,
                RunName.SYNTHESIZE_SESSION,
                scope_id=session.scope_id,
                session_id=session.session_id,
                period=f"{session.session_id}:{session.last_seq}",
            )
            sessions.note_asked(connection, session.scope_id, session.session_id, session.last_seq)
        runtime.hint(queue.SYNTHESIZE_SESSION, run_id=str(run.id))
    return len(found)


def synthesize_one_session(runtime: Runtime, claimed: RunClaim) -> None:
    """The job of a session: anchors, artifacts, identity, expression, curated facts and the rolling summary."""
    assert claimed.session_id is not None
    with transaction(runtime.engine, claimed.tenant_id) as connection:
        row = _need_model(connection, claimed)
        session = sessions.read(connection, claimed.scope_id, claimed.session_id)
        if session is None:
            raise NotFound("the session was forgotten")
        last = session.next_seq - 1
        first = max(1, last - runtime.settings.synthesis.turns + 1)
        said = turns.between(connection, claimed.scope_id, claimed.session_id, low=first, high=last)
        kinds = kinds_of_section(Section.RELATIONSHIP)
        wants = [Want(kind, runtime.settings.synthesis.anchors) for kind in kinds]
        anchors = strongest(connection, [row.id], wants)
    talk = Talk(said, row.user or "user", row.agent, zone_of(row.time_zone))
    made = synthesize_session(model_calls.large(runtime, claimed.tenant_id), talk, anchors)
    _apply_session(runtime, claimed, row, made, last_seq=last)


def synthesize_memories(runtime: Runtime, claimed: RunClaim) -> None:
    """The job of a scope: what says the same becomes one, patterns become artifacts, what fits is linked."""
    settings = runtime.settings.synthesis
    with transaction(runtime.engine, claimed.tenant_id) as connection:
        row = _need_model(connection, claimed)
        run = runs.read(connection, claimed.run_id)
        options: dict[str, Any] = {} if run is None else run.options
        recent = memories.lately_seen(
            connection,
            row.id,
            within=timedelta(days=options.get("days") or settings.deep_days),
            limit=options.get("max_memories") or settings.deep_memories,
        )
    made = synthesize_deep(
        model_calls.large(runtime, claimed.tenant_id), recent, time_zone=zone_of(row.time_zone)
    )
    prepared = remember.prepare(
        runtime, [*made.consolidated, *made.patterns], policy=parse_policy(row.policy)
    )
    with transaction(runtime.engine, claimed.tenant_id) as connection:
        _lock(connection, claimed)
        current = memories.current_ids(connection, row.id, [memory.id for memory in recent])
        place = _place(claimed)
        merged = 0
        for item in prepared[: len(made.consolidated)]:
            if set(item.statement.parents) <= current:
                merged += _replace(connection, runtime, place, item)
        whole = [
            item for item in prepared[len(made.consolidated) :] if set(item.statement.parents) <= current
        ]
        patterns = remember.write_all(connection, runtime, place, whole)
        _write_links(connection, runtime, claimed, made.links, current)
        # What is linked may be older than this transaction.
        _keep_ceiling(
            connection, runtime, claimed, row, written=[result.id for result in patterns], recount=True
        )
        report = DeepReport(
            success=True,
            agent=row.agent,
            user=row.user,
            consolidated=merged,
            patterns=len(patterns),
            links=len(made.links),
            made=made.made.as_dict(),
        )
        jobs.complete(connection, claimed, report)
    remember.drop_context(runtime, row.id)


def _apply_session(
    runtime: Runtime, claimed: RunClaim, row: ScopeRow, made: SessionSynthesis, *, last_seq: int
) -> None:
    policy = parse_policy(row.policy)
    statements = remember.prepare(runtime, made.statements, policy=policy)
    changed = remember.prepare(runtime, [change.statement for change in made.changed], policy=policy)
    summary = remember.prepare(runtime, [made.summary] if made.summary else [], policy=policy)
    with transaction(runtime.engine, claimed.tenant_id) as connection:
        _lock(connection, claimed)
        place = _place(claimed)
        written = remember.write_all(connection, runtime, place, statements)
        replaced = sum(
            _replace(connection, runtime, place, item, until=item.statement.valid_from) for item in changed
        )
        assert claimed.session_id is not None
        rolled = [_roll(connection, runtime, place, item, claimed.session_id) for item in summary]
        kept = [*(result.id for result in written), *rolled]
        _keep_ceiling(connection, runtime, claimed, row, written=kept)
        report = SessionReport(
            statements=len(written),
            changed=replaced,
            summary=bool(summary),
            to_seq=last_seq,
            memories=tuple(result.id for result in written),
            made=made.made.as_dict(),
        )
        sessions.note_synthesis(connection, place.scope_id, claimed.session_id, last_seq)
        jobs.complete(connection, claimed, report)
    remember.drop_context(runtime, row.id)


def _replace(
    connection: Connection,
    runtime: Runtime,
    place: remember.Place,
    item: remember.Prepared,
    *,
    until: datetime | None = None,
) -> int:
    """Store a statement in the place of its parents, which retire as superseded by it; true ``until``, if it ended."""
    remembered = remember.write(connection, runtime, place, item, deduplicate=False)
    parents = [parent for parent in item.statement.parents if parent != remembered.id]
    gone = memories.retire(
        connection,
        place.scope_id,
        parents,
        reason=Retirement.SUPERSEDED,
        successor=remembered.id,
        valid_until=until,
    )
    return int(bool(gone))


def _roll(
    connection: Connection,
    runtime: Runtime,
    place: remember.Place,
    item: remember.Prepared,
    session_id: int,
) -> UUID:
    """One rolling summary per session: the newer one supersedes the older."""
    before = sessions.summary_memory(connection, place.scope_id, session_id)
    remembered = remember.write(connection, runtime, place, item, deduplicate=False)
    if before is not None and before != remembered.id:
        memories.retire(
            connection, place.scope_id, [before], reason=Retirement.SUPERSEDED, successor=remembered.id
        )
    sessions.note_summary(connection, place.scope_id, session_id, remembered.id, item.statement.text)
    return remembered.id


def _keep_ceiling(
    connection: Connection,
    runtime: Runtime,
    claimed: RunClaim,
    row: ScopeRow,
    *,
    written: Sequence[UUID],
    recount: bool = False,
) -> None:
    capacity.keep_ceiling(
        connection,
        runtime,
        claimed.tenant_id,
        row.id,
        parse_policy(row.policy),
        written=written,
        recount=recount,
    )


def _write_links(
    connection: Connection,
    runtime: Runtime,
    claimed: RunClaim,
    found: Sequence[DeepLink],
    current: set[UUID],
) -> None:
    edges: dict[LinkType, list[links.Edge]] = defaultdict(list)
    for link in found:
        if {link.source, link.target} <= current:
            edges[link.type].append((link.source, link.target, link.weight))
    most = runtime.settings.remember.links_each
    for kind, some in edges.items():
        links.add(connection, claimed.tenant_id, claimed.scope_id, some, type=kind, most=most)


def _place(claimed: RunClaim) -> remember.Place:
    return remember.Place(
        claimed.tenant_id, claimed.scope_id, run_id=claimed.run_id, turn_scopes=(claimed.scope_id,)
    )


def _lock(connection: Connection, claimed: RunClaim) -> None:
    if not names.lock_scope(connection, claimed.tenant_id, claimed.scope_id):
        raise NotFound("the person was forgotten while this was under way; nothing was stored")


def _need_model(connection: Connection, claimed: RunClaim) -> ScopeRow:
    row = names.read_scope(connection, claimed.scope_id)
    if row is None:
        raise NotFound("the person was forgotten")
    if parse_policy(row.policy).extraction is not ExtractionMode.LLM:
        raise _NoModel(
            f"agent {row.agent!r} asks no language model: set its extraction to llm to synthesise",
        )
    return row


class _NoModel(Permanent):
    kind = "no_model"
