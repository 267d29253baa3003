"""Extract: turn the next turns of one session into memories, strictly in order.

Claim the session (lease and fence), read, ask the extractor with no transaction open, keep its answer, then apply
answer and progress in one transaction that only commits while the fence is ours. A turn that kills its worker is tried
alone, and parked after three unexplained starts; the session goes on behind a visible gap.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from itertools import count
from uuid import UUID

import structlog
from sqlalchemy import Connection

from memory_app import correlation, failpoint, metrics, queue
from memory_app.db.db import transaction, wait_briefly
from memory_app.errors import (
    BadModelOutput,
    CapReached,
    CircuitOpen,
    InvalidInput,
    MemoryAppError,
    Permanent,
    StoreUnavailable,
    Transient,
)
from memory_app.extraction.llm import Talk
from memory_app.hot import hints
from memory_app.jobs import schedule
from memory_app.jobs.rows import runs
from memory_app.memories import capacity, remember
from memory_app.records.records import WITHHELD, Extraction, Statement
from memory_app.records.reports import ExtractionReport
from memory_app.runtime import Runtime
from memory_app.tenancy.rows import names
from memory_app.turns import extraction_failures, extractor, routing, turn_effects
from memory_app.turns.batch import ANSWER, Batch, next_batch, note_progress
from memory_app.turns.extractor import Answered
from memory_app.turns.rows import extract_work, sessions, stages
from memory_app.turns.rows.sessions import Claim
from memory_app.turns.sources import sourced
from memory_app.turns.withdrawal import withdraw

log = structlog.get_logger(__name__)

# More than a batch of turns can state. Keeping more would take longer than a task may, at each retry again.
ANSWER_LIMIT_CHARS = 1_000_000

# One more call of a model, with its repair, ends before the time limit of a task.
MOST_SECONDS = 15.0

NOT_CURATED = "fact curation is off for this agent"

QUARANTINED = (
    "quarantined: its worker died {starts} times while extracting it; replay it once the cause is mended"
)


class _Fenced(Exception):
    """Another worker holds the session now; nothing of this one may be committed."""


class _Unanswered(Exception):
    """The model was asked, and its answer is of no use: what `BadModelOutput` of an embedder does not mean."""

    def __init__(self, error: BadModelOutput) -> None:
        super().__init__()
        self.error = error


@dataclass(frozen=True, slots=True)
class ExtractReport:
    """What one call did to one session. ``is_through``: when it ended, no further turn was due."""

    turns: int = 0
    memories: int = 0
    failed: int = 0
    is_through: bool = field(default=False, compare=False)


def extract_session(
    runtime: Runtime,
    session_id: int,
    *,
    most_batches: int = 20,
    most_seconds: float = MOST_SECONDS,
    shared: bool = False,
) -> ExtractReport:
    """Extract what is due in one session. A second call at the same time finds it lent out and does nothing.

    After ``most_batches``, or once ``most_seconds`` are over, the rest waits behind what others have to do; a session
    that is tried turn by turn is kept for longer.
    ``shared``: this process does other work meanwhile, so a session that may have killed its worker is left to another.
    """
    _clear_hint(runtime, session_id)
    runtime.returns.try_again()
    total = ExtractReport()
    ends_at = time.monotonic() + most_seconds
    for batch in count(1):
        claimed = _claim(runtime, session_id, shared=shared)
        if claimed is None:
            break
        failpoint.reach("extract.after_claim")
        if claimed.starts > 1:
            # The turns behind this one may be what killed the worker. Handed back now, they would go to a process that
            # does other work too, since a session that has moved on is suspect no more.
            ends_at = max(ends_at, time.monotonic() + MOST_SECONDS)
        done = _extract_claimed(runtime, claimed)
        total = ExtractReport(
            total.turns + done.turns, total.memories + done.memories, total.failed + done.failed
        )
        # A turn that is accepted from now on brings a hint of its own, since that of this call was cleared.
        if done.is_through:
            break
        if batch >= most_batches or time.monotonic() > ends_at:
            _hint_rest(runtime, claimed)
            break
    return total


def _clear_hint(runtime: Runtime, session_id: int) -> None:
    try:
        hints.clear(runtime.hot, runtime.hint_name(queue.EXTRACT_SESSION, session_id=session_id))
    except MemoryAppError as error:
        log.warning("hint_not_cleared", error=error.kind)


def _hint_rest(runtime: Runtime, claimed: Claim) -> None:
    with transaction(runtime.engine, claimed.tenant_id) as connection:
        session = extract_work.due_session(connection, claimed.scope_id, claimed.session_id)
    if session is not None:
        routing.hint_session(runtime, session)


def _claim(runtime: Runtime, session_id: int, *, shared: bool = False) -> Claim | None:
    lease = timedelta(seconds=runtime.settings.extract.lease_seconds)
    with transaction(runtime.engine, None) as connection:
        return sessions.claim(connection, session_id, lease, shared=shared)


def _extract_claimed(runtime: Runtime, claimed: Claim) -> ExtractReport:
    try:
        return _extract_next(runtime, claimed)
    except StoreUnavailable:
        lease_seconds = runtime.settings.extract.lease_seconds
        runtime.returns.give_back(partial(_free, runtime, claimed), within_seconds=lease_seconds)
        raise


def _free(runtime: Runtime, claimed: Claim, *, briefly: bool) -> None:
    wait = timedelta(seconds=runtime.settings.extract.retry_base_seconds)
    with transaction(runtime.engine, claimed.tenant_id) as connection:
        if briefly:
            wait_briefly(connection)
        sessions.postpone(connection, claimed, wait)


def _extract_next(runtime: Runtime, claimed: Claim) -> ExtractReport:
    batch = next_batch(runtime, claimed)
    if batch is None:
        return ExtractReport()
    # Now: the line of a task that fails has to lead to its turns, too.
    correlation.note(correlation.TURNS, [turn.id for turn in batch.turns])
    correlation.note(correlation.RUNS, [batch.run_id])
    limit = runtime.settings.extract.starts_limit
    if claimed.starts > limit:
        return ExtractReport(
            failed=extraction_failures.park(runtime, batch, QUARANTINED.format(starts=limit))
        )
    try:
        answered = batch.answer if batch.answer is not None else _ask(runtime, batch)
        return _apply(runtime, batch, answered)
    except _Unanswered as unanswered:
        return ExtractReport(
            failed=extraction_failures.give_up_or_take_apart(runtime, batch, unanswered.error)
        )
    except _Fenced:
        metrics.fenced.labels("session").inc()
        log.warning("extraction_fenced", session=claimed.session_id, fence=claimed.fence)
        return ExtractReport()
    except (CapReached, CircuitOpen) as error:
        return ExtractReport(failed=extraction_failures.wait_in_line(runtime, batch, error))
    except Transient as error:
        return ExtractReport(failed=extraction_failures.postpone(runtime, batch, error))
    except (Permanent, InvalidInput) as error:
        return ExtractReport(failed=extraction_failures.retry_or_park(runtime, batch, error))


def _ask(runtime: Runtime, batch: Batch) -> Answered:
    """Call the extractor and keep the answer of a model. No transaction is open during the call."""
    failpoint.reach("extract.before_answer")
    talk = Talk(
        turns=batch.turns,
        user_label=batch.user,
        agent_label=batch.agent,
        time_zone=batch.time_zone,
        earlier=batch.earlier,
        labels=tuple(entity.label for entity in batch.known),
        known_people=tuple(entity.label for entity in batch.known if entity.type == "person"),
    )
    try:
        answered = extractor.answer(runtime, batch.claim.tenant_id, talk, policy=batch.policy)
        if sum(len(statement.text) for statement in answered.extraction.statements) > ANSWER_LIMIT_CHARS:
            raise BadModelOutput(f"an answer of more than {ANSWER_LIMIT_CHARS} characters was not taken")
    except BadModelOutput as error:
        raise _Unanswered(error) from error
    # Rules read the same turns the same way again, and sooner than their answer is written down.
    if answered.asked_model:
        with transaction(runtime.engine, batch.claim.tenant_id) as connection:
            runs.keep_answer(
                connection,
                batch.run_id,
                ANSWER.dump_python(answered, mode="json"),
                to_seq=batch.to_seq,
                model=answered.model,
                prompt_version=answered.prompt,
            )
    failpoint.reach("extract.after_answer")
    return answered


def _apply(runtime: Runtime, batch: Batch, answered: Answered) -> ExtractReport:
    """Write memories, entities, reasons and progress in one transaction, or nothing."""
    extraction = answered.extraction
    statements = extraction.statements if batch.policy.fact_curation else ()
    of_speakers = [_sourced(statement, batch) for statement in statements]
    questions = turn_effects.questions_of(batch, extraction)
    prepared = remember.prepare(runtime, [*of_speakers, *questions], policy=batch.policy)
    claimed = batch.claim
    place = remember.Place(
        claimed.tenant_id, claimed.scope_id, run_id=batch.run_id, turn_scopes=(claimed.scope_id,)
    )
    with transaction(runtime.engine, claimed.tenant_id) as connection:
        if not names.lock_scope(connection, claimed.tenant_id, claimed.scope_id):
            raise _Fenced
        turn_effects.note_user(connection, batch)
        written = remember.write_all(connection, runtime, place, prepared=prepared[: len(of_speakers)])
        noted = turn_effects.note_questions(
            connection, runtime, place, batch=batch, questions=prepared[len(of_speakers) :]
        )
        evicted = _keep_ceiling(connection, runtime, batch, stored=[*noted, *written])
        turn_effects.note_zone(connection, batch, of_speakers)
        if batch.policy.entity_extraction:
            turn_effects.note_entities(connection, batch, extraction=extraction, questions=questions)
        if written:
            schedule.wake(connection, runtime, [claimed.scope_id])
        reasons = _reasons(batch, extraction, statements)
        stages.mark_extracted(connection, claimed.scope_id, reasons)
        withheld = [id for id, reason in reasons.items() if reason == WITHHELD]
        withdraw(connection, claimed.tenant_id, claimed.scope_id, withheld)
        report = ExtractionReport(
            turns=len(batch.turns),
            memories=tuple(result.id for result in written),
            made=answered.made,
        )
        runs.finish(connection, batch.run_id, report, model=answered.model)
        # Last, because it holds the session's row: a turn that arrives meanwhile is accepted without waiting.
        progress = note_progress(connection, batch, to_seq=batch.to_seq)
        if progress is None:
            raise _Fenced
        failpoint.reach("extract.before_commit")
    failpoint.reach("extract.after_commit")
    if written or evicted:
        remember.drop_context(runtime, claimed.scope_id)
    metrics.turns.labels("extracted").inc(len(batch.turns))
    for result in written:
        metrics.memories.labels(result.outcome).inc()
    correlation.note(correlation.MEMORIES, [result.id for result in written])
    log.info(
        "session_extracted",
        session=claimed.session_id,
        run=str(batch.run_id),
        turns=len(batch.turns),
        memories=len(written),
    )
    return ExtractReport(turns=len(batch.turns), memories=len(written), is_through=not progress.is_due)


def _sourced(statement: Statement, batch: Batch) -> Statement:
    return sourced(statement, batch.turns, user=batch.user, names=turn_effects.names_of_user(batch).values())


def _keep_ceiling(
    connection: Connection, runtime: Runtime, batch: Batch, *, stored: Sequence[remember.Remembered]
) -> tuple[UUID, ...]:
    """Evict what is above the ceiling after the batch has ``stored`` memories and questions; the ids of what went."""
    if not stored:
        return ()
    claimed = batch.claim
    ids = [result.id for result in stored]
    return capacity.keep_ceiling(
        connection, runtime, claimed.tenant_id, scope_id=claimed.scope_id, policy=batch.policy, written=ids
    )


def _reasons(batch: Batch, extraction: Extraction, written: Sequence[Statement]) -> dict[UUID, str | None]:
    """For every turn why no memory came of it, or None where one did."""
    # Every turn is in it: a ticket that says "extracted" with neither a memory nor a reason would look like a loss.
    used = {turn_id for statement in written for turn_id in statement.evidence}
    unused = {turn_id for statement in extraction.statements for turn_id in statement.evidence} - used
    reasons = extraction.reasons | dict.fromkeys(unused, NOT_CURATED)
    return {
        turn.id: None if turn.id in used else reasons.get(turn.id, "nothing noteworthy")
        for turn in batch.turns
    }
