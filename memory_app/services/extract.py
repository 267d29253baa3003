"""Extract: turn the next turns of one session into memories, strictly in order.

Claim the session (lease and fence), read, ask the extractor with no transaction open, keep its answer, then apply
answer and progress in one transaction that only commits while the fence is ours. A turn that kills its worker is tried
alone, and parked after three unexplained starts; the session goes on behind a visible gap.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from uuid import UUID
from zoneinfo import ZoneInfo

import structlog
from pydantic import TypeAdapter, ValidationError
from sqlalchemy import Connection

from memory_app import failpoint, queue
from memory_app.domain.policy import ExtractionMode, Policy, parse_policy
from memory_app.domain.records import Extraction, Role, Statement, Turn
from memory_app.domain.text import entity_key
from memory_app.domain.zones import zone_of
from memory_app.errors import (
    BadModelOutput,
    CapReached,
    InvalidInput,
    MemoryAppError,
    Permanent,
    StoreUnavailable,
    Transient,
)
from memory_app.hot import hints
from memory_app.models.llm import Talk
from memory_app.runtime import Runtime, hint_name
from memory_app.services import capacity, extractor, queries, remember
from memory_app.services.extractor import Answered
from memory_app.services.patience import give_back
from memory_app.store import entities, names, runs, sessions, turns
from memory_app.store import queries as query_store
from memory_app.store.db import transaction
from memory_app.store.sessions import Claim, SessionRow

log = structlog.get_logger(__name__)

ANSWER_LIMIT_CHARS = 1_000_000
"""More than a batch of turns can state. Keeping more would take longer than a task may, again and again."""

EARLIER_TURNS = 3
"""Turns before the new ones that the extractor sees as context."""

TAKEN_APART = "its worker died twice; each of its turns is tried alone"

NOT_CURATED = "fact curation is off for this agent"

QUARANTINED = (
    "quarantined: its worker died {starts} times while extracting it; replay it once the cause is mended"
)

_ANSWER = TypeAdapter(Answered)


class _Fenced(Exception):
    """Another worker holds the session now; nothing of ours may be committed."""


@dataclass(frozen=True, slots=True)
class ExtractReport:
    """What one call did to one session."""

    turns: int = 0
    memories: int = 0
    failed: int = 0


@dataclass(frozen=True, slots=True)
class _Batch:
    """The next turns of a claimed session and what is needed to extract them."""

    claim: Claim
    from_seq: int
    to_seq: int
    turns: tuple[Turn, ...]
    earlier: tuple[Turn, ...]
    policy: Policy
    user: str
    agent: str
    time_zone: ZoneInfo
    known: tuple[str, ...]
    run_id: UUID
    answer: Answered | None
    is_replay: bool
    """One turn behind the session's place, extracted once more; its effects come late, its facts keep their dates."""
    failures: int
    refusals: int
    failing_for: timedelta


def extract_session(runtime: Runtime, session_id: int, *, most_batches: int = 20) -> ExtractReport:
    """Extract what is due in one session. A second call at the same time finds it lent out and does nothing."""
    _clear_hint(runtime, session_id)
    total = ExtractReport()
    for _ in range(most_batches):
        claimed = _claim(runtime, session_id)
        if claimed is None:
            return total
        failpoint.reach("extract.after_claim")
        done = _extract_claimed(runtime, claimed)
        total = ExtractReport(
            total.turns + done.turns, total.memories + done.memories, total.failed + done.failed
        )
    runtime.hint(queue.EXTRACT_SESSION, session_id=session_id)
    return total


def _clear_hint(runtime: Runtime, session_id: int) -> None:
    try:
        hints.clear(runtime.hot, hint_name(queue.EXTRACT_SESSION, session_id=session_id))
    except MemoryAppError as error:
        log.warning("hint_not_cleared", error=error.kind)


def _claim(runtime: Runtime, session_id: int) -> Claim | None:
    lease = timedelta(seconds=runtime.settings.extract.lease_seconds)
    with transaction(runtime.engine, None) as connection:
        return sessions.claim(connection, session_id, lease)


def _extract_claimed(runtime: Runtime, claimed: Claim) -> ExtractReport:
    try:
        return _extract_next(runtime, claimed)
    except StoreUnavailable:
        give_back(partial(_free, runtime, claimed), within_seconds=runtime.settings.extract.lease_seconds)
        raise


def _free(runtime: Runtime, claimed: Claim) -> None:
    wait = timedelta(seconds=runtime.settings.extract.retry_base_seconds)
    with transaction(runtime.engine, claimed.tenant_id) as connection:
        sessions.postpone(connection, claimed, wait)


def _extract_next(runtime: Runtime, claimed: Claim) -> ExtractReport:
    batch = _next_batch(runtime, claimed)
    if batch is None:
        return ExtractReport()
    limit = runtime.settings.extract.starts_limit
    if claimed.starts > limit:
        return _park(runtime, batch, QUARANTINED.format(starts=limit))
    try:
        answered = batch.answer if batch.answer is not None else _ask(runtime, batch)
        return _apply(runtime, batch, answered)
    except _Fenced:
        log.warning("extraction_fenced", session=claimed.session_id, fence=claimed.fence)
        return ExtractReport()
    except CapReached as error:
        return _wait_for_cap(runtime, batch, error)
    except Transient as error:
        return _postpone(runtime, batch, error)
    except (Permanent, InvalidInput) as error:
        return _retry_or_park(runtime, batch, error)


def _next_batch(runtime: Runtime, claimed: Claim) -> _Batch | None:
    """Read the next turns and open their run; frees the session and returns None when there are none."""
    with transaction(runtime.engine, claimed.tenant_id) as connection:
        session = sessions.read(connection, claimed.scope_id, claimed.session_id)
        place = names.read_scope(connection, claimed.scope_id)
        if session is None or place is None or session.fence != claimed.fence:
            return None
        low, high = _range(runtime, claimed, session)
        policy = parse_policy(place.policy)
        extracting = policy.memory and policy.extraction is not ExtractionMode.OFF
        if high < low or not extracting:
            sessions.release(connection, claimed, extracting=extracting)
            return None
        if policy.extraction is ExtractionMode.LLM:
            lease = timedelta(seconds=runtime.settings.extract.model_lease_seconds)
            sessions.extend(connection, claimed, lease)
        run = _open_run(connection, claimed, low, high)
        high = run.to_seq or high
        return _Batch(
            claim=claimed,
            from_seq=low,
            to_seq=high,
            turns=turns.between(connection, claimed.scope_id, claimed.session_id, low=low, high=high),
            earlier=turns.between(
                connection, claimed.scope_id, claimed.session_id, low=low - EARLIER_TURNS, high=low - 1
            ),
            policy=policy,
            user=place.user or "user",
            agent=place.agent,
            time_zone=zone_of(place.time_zone),
            known=tuple(e.label for e in entities.listed(connection, [claimed.scope_id], limit=200)),
            run_id=run.id,
            answer=_kept(run),
            is_replay=low <= session.extracted_seq,
            failures=session.failures,
            refusals=session.refusals,
            failing_for=session.now - (session.failing_since or session.now),
        )


def _open_run(connection: Connection, claimed: Claim, low: int, high: int) -> runs.Run:
    """The run on these turns. A kept answer for several that was applied twice in vain is given up: one of them may
    kill its worker, and only alone can it be told from its neighbours."""
    run = runs.begin_extract(
        connection, claimed.tenant_id, claimed.scope_id, claimed.session_id, from_seq=low, to_seq=high
    )
    if claimed.starts <= 2 or run.to_seq in (None, low):
        return run
    runs.fail(connection, run.id, TAKEN_APART)
    return runs.begin_extract(
        connection, claimed.tenant_id, claimed.scope_id, claimed.session_id, from_seq=low, to_seq=low
    )


def _kept(run: runs.Run) -> Answered | None:
    """The answer of a worker that died, or None; one kept by a version that wrote answers otherwise is asked anew."""
    if run.answer is None:
        return None
    try:
        return _ANSWER.validate_python(run.answer, strict=False)
    except ValidationError:
        log.warning("answer_not_readable", run=str(run.id))
        return None


def _range(runtime: Runtime, claimed: Claim, session: SessionRow) -> tuple[int, int]:
    """First and last seq of the next batch; one turn alone while it is suspected, or replayed."""
    if session.replay_seqs:
        return session.replay_seqs[0], session.replay_seqs[0]
    most = 1 if claimed.starts > 1 or session.refusals else runtime.settings.extract.batch
    return session.extracted_seq + 1, min(session.extracted_seq + most, session.next_seq - 1)


def _progress(connection: Connection, batch: _Batch, *, to_seq: int) -> bool:
    """Note how far the session has come, if the fence is still ours."""
    if batch.is_replay:
        return sessions.replayed(connection, batch.claim, batch.from_seq)
    return sessions.advance(connection, batch.claim, from_seq=batch.from_seq, to_seq=to_seq)


def _ask(runtime: Runtime, batch: _Batch) -> Answered:
    """Call the extractor and keep its answer. No transaction is open during the call."""
    failpoint.reach("extract.before_answer")
    talk = Talk(
        turns=batch.turns,
        user_label=batch.user,
        agent_label=batch.agent,
        time_zone=batch.time_zone,
        earlier=batch.earlier,
        known=batch.known,
    )
    answered = extractor.answer(runtime, batch.claim.tenant_id, talk, mode=batch.policy.extraction)
    if sum(len(statement.text) for statement in answered.extraction.statements) > ANSWER_LIMIT_CHARS:
        raise BadModelOutput(f"an answer of more than {ANSWER_LIMIT_CHARS} characters was not taken")
    with transaction(runtime.engine, batch.claim.tenant_id) as connection:
        runs.keep_answer(
            connection,
            batch.run_id,
            _ANSWER.dump_python(answered, mode="json"),
            to_seq=batch.to_seq,
            model=answered.model,
            prompt_version=answered.prompt,
        )
    failpoint.reach("extract.after_answer")
    return answered


def _apply(runtime: Runtime, batch: _Batch, answered: Answered) -> ExtractReport:
    """Write memories, entities, reasons and progress in one transaction, or nothing."""
    extraction = answered.extraction
    statements = extraction.statements if batch.policy.fact_curation else ()
    told = [_sourced(statement, batch) for statement in statements]
    asked = queries.questions(batch.turns, extraction.mentions) if batch.policy.query_graph else ()
    prepared = remember.prepare(runtime, [*told, *asked], policy=batch.policy)
    claimed = batch.claim
    place = remember.Place(
        claimed.tenant_id, claimed.scope_id, run_id=batch.run_id, turn_scopes=(claimed.scope_id,)
    )
    with transaction(runtime.engine, claimed.tenant_id) as connection:
        if not names.lock_scope(connection, claimed.tenant_id, claimed.scope_id):
            raise _Fenced
        written = [remember.write(connection, runtime, place, item) for item in prepared[: len(told)]]
        if batch.policy.query_graph:
            _note_questions(connection, runtime, place, batch, prepared[len(told) :])
        for result in written:
            capacity.keep_ceiling(connection, runtime, claimed.scope_id, batch.policy, written=result.id)
        if batch.policy.entity_extraction:
            _note_entities(connection, batch, extraction, asked)
        turns.mark_extracted(connection, claimed.scope_id, _reasons(batch, extraction, statements))
        report = {
            "turns": len(batch.turns),
            "memories": [str(result.id) for result in written],
            "made": dict(answered.made),
        }
        runs.finish(connection, batch.run_id, report)
        # Last, because it holds the session's row: a turn that arrives meanwhile is accepted without waiting.
        if not _progress(connection, batch, to_seq=batch.to_seq):
            raise _Fenced
        failpoint.reach("extract.before_commit")
    failpoint.reach("extract.after_commit")
    if written:
        remember.drop_context(runtime, claimed.scope_id)
    log.info("session_extracted", session=claimed.session_id, turns=len(batch.turns), memories=len(written))
    return ExtractReport(turns=len(batch.turns), memories=len(written))


def _sourced(statement: Statement, batch: _Batch) -> Statement:
    """Who stands behind it, with the role: what an assistant said must never pass for what the user said."""
    told = next((turn for turn in batch.turns if turn.id in statement.evidence), None)
    return statement if told is None else replace(statement, source=f"{told.role.value}:{told.speaker}")


def _note_questions(
    connection: Connection,
    runtime: Runtime,
    place: remember.Place,
    batch: _Batch,
    asked: Sequence[remember.Prepared],
) -> None:
    """The query graph of the session: questions through the one write path, then the answers to them."""
    for question in asked:
        turn = next(turn for turn in batch.turns if turn.id in question.statement.evidence)
        in_session = replace(place, session=(batch.claim.session_id, turn.session))
        remember.write(connection, runtime, in_session, question)
    answers = [turn.id for turn in batch.turns if turn.role is Role.ASSISTANT]
    query_store.link_answers(connection, batch.claim.scope_id, answers)


def _note_entities(
    connection: Connection, batch: _Batch, extraction: Extraction, asked: Sequence[Statement]
) -> None:
    """Count what the turns talk about; what a memory mentions is counted by the write path."""
    statements = (*extraction.statements, *asked)
    told = {turn_id for statement in statements for turn_id in statement.evidence}
    seen: dict[str, tuple[str, str, datetime]] = {}
    for turn in batch.turns:
        if turn.id in told:
            continue
        for mention in extraction.mentions.get(turn.id, ()):
            try:
                seen[entity_key(mention.type, mention.label)] = (mention.type, mention.label, turn.at)
            except InvalidInput:
                continue
    entities.upsert(connection, batch.claim.tenant_id, batch.claim.scope_id, seen)


def _reasons(batch: _Batch, extraction: Extraction, written: Sequence[Statement]) -> dict[UUID, str | None]:
    """For every turn why nothing came of it, or None where something did: "done" is never unexplained."""
    told = {turn_id for statement in written for turn_id in statement.evidence}
    unused = {turn_id for statement in extraction.statements for turn_id in statement.evidence} - told
    reasons = extraction.reasons | dict.fromkeys(unused, NOT_CURATED)
    return {
        turn.id: None if turn.id in told else reasons.get(turn.id, "nothing noteworthy")
        for turn in batch.turns
    }


def _postpone(runtime: Runtime, batch: _Batch, error: Transient) -> ExtractReport:
    """Back off with jitter; an error older than the age limit parks the turn instead of blocking for ever."""
    settings = runtime.settings.extract
    if batch.failing_for > timedelta(hours=settings.retry_age_hours):
        return _park(runtime, batch, f"gave up after {settings.retry_age_hours:g} hours: {error.message}")
    wait = max(
        backoff(batch.failures + 1, settings.retry_base_seconds, settings.retry_max_seconds),
        error.retry_after or 0,
    )
    with transaction(runtime.engine, batch.claim.tenant_id) as connection:
        sessions.postpone(connection, batch.claim, timedelta(seconds=wait))
    log.warning("extraction_postponed", session=batch.claim.session_id, seconds=wait, error=error.kind)
    return ExtractReport()


def _wait_for_cap(runtime: Runtime, batch: _Batch, error: CapReached) -> ExtractReport:
    """The tenant's day is spent: the turns wait for the next one, and nothing has failed."""
    wait = timedelta(seconds=error.retry_after or runtime.settings.extract.retry_max_seconds)
    with transaction(runtime.engine, batch.claim.tenant_id) as connection:
        sessions.defer(connection, batch.claim, wait)
    log.warning("extraction_waits_for_cap", session=batch.claim.session_id, seconds=wait.total_seconds())
    return ExtractReport()


def backoff(failures: int, base_seconds: float, most_seconds: float) -> float:
    """Seconds until the next try: doubles, capped, with jitter so that many do not come back together."""
    doubled: float = base_seconds * 2 ** min(failures - 1, 16)
    return min(doubled, most_seconds) * random.uniform(0.7, 1.3)


def _retry_or_park(runtime: Runtime, batch: _Batch, error: Permanent | InvalidInput) -> ExtractReport:
    """Ask anew a few times, then park; a batch is first taken apart, so that only the guilty turn is parked."""
    settings = runtime.settings.extract
    if len(batch.turns) <= 1 and batch.refusals + 1 >= settings.permanent_limit:
        return _park(runtime, batch, error.message)
    wait = backoff(batch.failures + 1, settings.retry_base_seconds, settings.retry_max_seconds)
    with transaction(runtime.engine, batch.claim.tenant_id) as connection:
        if sessions.postpone(connection, batch.claim, timedelta(seconds=wait), refused=True):
            runs.fail(connection, batch.run_id, error.message)
    log.warning("extraction_refused", session=batch.claim.session_id, seconds=wait, error=error.kind)
    return ExtractReport()


def _park(runtime: Runtime, batch: _Batch, reason: str) -> ExtractReport:
    """Set the first turn aside with its reason and go on behind it; a strict agent's session stops instead."""
    claimed = batch.claim
    first = [turn.id for turn in batch.turns if turn.seq == batch.from_seq]
    with transaction(runtime.engine, claimed.tenant_id) as connection:
        if batch.policy.strict and not batch.is_replay:
            is_ours = sessions.stop(connection, claimed, reason)
        else:
            is_ours = _progress(connection, batch, to_seq=batch.from_seq)
        if not is_ours:
            return ExtractReport()
        runs.fail(connection, batch.run_id, reason)
        turns.fail(connection, claimed.scope_id, first, reason)
    log.error("turn_failed", session=claimed.session_id, seq=batch.from_seq, reason=reason)
    return ExtractReport(failed=1)
