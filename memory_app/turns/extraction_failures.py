"""What becomes of turns whose extraction failed: they wait, are tried alone, or are set aside with a reason.

Each function returns how many turns it set aside.
"""

from __future__ import annotations

import random
from datetime import timedelta

import structlog

from memory_app import metrics
from memory_app.db.db import transaction
from memory_app.errors import (
    BadModelOutput,
    CapReached,
    CircuitOpen,
    InvalidInput,
    Permanent,
    Transient,
    UnreadableAnswer,
)
from memory_app.jobs.rows import runs
from memory_app.runtime import Runtime
from memory_app.turns.batch import Batch, note_progress
from memory_app.turns.rows import failed_turns, sessions

log = structlog.get_logger(__name__)

TOGETHER = "{reason}; {turns} turns were asked about together and are set aside"


def postpone(runtime: Runtime, batch: Batch, error: Transient) -> int:
    """Back off with jitter; an error older than the age limit parks the turn instead of blocking for ever."""
    settings = runtime.settings.extract
    if batch.failing_for > timedelta(hours=settings.retry_age_hours):
        return park(runtime, batch, f"gave up after {settings.retry_age_hours:g} hours: {error.message}")
    wait = max(
        backoff(batch.failures + 1, settings.retry_base_seconds, settings.retry_max_seconds),
        error.retry_after or 0,
    )
    with transaction(runtime.engine, batch.claim.tenant_id) as connection:
        sessions.postpone(connection, batch.claim, timedelta(seconds=wait))
    log.warning("extraction_postponed", session=batch.claim.session_id, seconds=wait, error=error.kind)
    return 0


def wait_in_line(runtime: Runtime, batch: Batch, error: CapReached | CircuitOpen) -> int:
    """Try again when the tenant's cap is lifted or the provider's circuit closes."""
    # Nobody was asked, so nothing has failed. With a back-off that grows, an outage of hours would leave every session
    # with the longest one when it is over.
    wait = timedelta(seconds=error.retry_after or runtime.settings.extract.retry_max_seconds)
    with transaction(runtime.engine, batch.claim.tenant_id) as connection:
        sessions.defer(
            connection, batch.claim, wait * random.uniform(1, 1.1), for_cap=isinstance(error, CapReached)
        )
    log.warning(
        "extraction_waits", session=batch.claim.session_id, seconds=wait.total_seconds(), error=error.kind
    )
    return 0


def backoff(failures: int, base_seconds: float, most_seconds: float) -> float:
    """Seconds until the next try: doubles, capped, with jitter so that many do not come back together."""
    doubled: float = base_seconds * 2 ** min(failures - 1, 16)
    return min(doubled, most_seconds) * random.uniform(0.7, 1.3)


def retry_or_park(runtime: Runtime, batch: Batch, error: Permanent | InvalidInput) -> int:
    """Ask again a few times, then park the turn."""
    # A batch of several is tried turn by turn first, so that only the turn is parked that causes the error.
    settings = runtime.settings.extract
    if len(batch.turns) <= 1 and batch.refusals + 1 >= settings.permanent_limit:
        return park(runtime, batch, error.message)
    wait = backoff(batch.failures + 1, settings.retry_base_seconds, settings.retry_max_seconds)
    with transaction(runtime.engine, batch.claim.tenant_id) as connection:
        if sessions.postpone(connection, batch.claim, timedelta(seconds=wait), refused=True):
            runs.fail(connection, batch.run_id, error.message)
    log.warning("extraction_refused", session=batch.claim.session_id, seconds=wait, error=error.kind)
    return 0


def give_up_or_take_apart(runtime: Runtime, batch: Batch, error: BadModelOutput) -> int:
    """Park the turns of an answer that is of no use: no question about them is asked a second time.

    A model that does not answer in the form asked for would not do so about one turn either, and each further call
    costs money: all turns are parked. Any other fault, such as a refusal, may be that of one turn, so that each is
    asked about alone.
    """
    if len(batch.turns) <= 1:
        return park(runtime, batch, error.message)
    if isinstance(error, UnreadableAnswer):
        reason = TOGETHER.format(reason=error.message, turns=len(batch.turns))
        return park(runtime, batch, reason, to_seq=batch.to_seq)
    return retry_or_park(runtime, batch, error)


def park(runtime: Runtime, batch: Batch, reason: str, *, to_seq: int | None = None) -> int:
    """Set the first turn aside with its reason, or all up to ``to_seq``, and go on behind it.

    A strict agent's session stops at the first instead.
    """
    claimed = batch.claim
    is_strict = batch.policy.strict and not batch.is_replay
    last_seq = batch.from_seq if to_seq is None or is_strict else to_seq
    parked = [turn.id for turn in batch.turns if turn.seq <= last_seq]
    with transaction(runtime.engine, claimed.tenant_id) as connection:
        if is_strict:
            is_ours = sessions.stop(connection, claimed, reason)
        else:
            is_ours = note_progress(connection, batch, to_seq=last_seq) is not None
        if not is_ours:
            return 0
        runs.fail(connection, batch.run_id, reason)
        failed_turns.fail(connection, claimed.scope_id, parked, reason=reason)
    metrics.turns.labels("failed").inc(len(parked))
    log.error(
        "turns_failed",
        session=claimed.session_id,
        run=str(batch.run_id),
        seq=batch.from_seq,
        turns=len(parked),
        reason=reason,
    )
    return len(parked)
