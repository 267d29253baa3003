"""Read the next turns of a claimed session before the extractor is asked, and note the progress afterwards.

A batch is one turn alone while one of them is suspected of having killed its worker.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID
from zoneinfo import ZoneInfo

import structlog
from pydantic import TypeAdapter, ValidationError
from sqlalchemy import Connection

from memory_app.db.db import transaction
from memory_app.jobs.rows import runs
from memory_app.language.zones import zone_of
from memory_app.memories.rows import entities
from memory_app.memories.rows.entities import Entity
from memory_app.records.records import Turn
from memory_app.runtime import Runtime
from memory_app.tenancy.policy import ExtractionMode, Policy, parse_policy
from memory_app.tenancy.rows import names
from memory_app.turns.extractor import Answered
from memory_app.turns.replaced import waits_for_erasure
from memory_app.turns.rows import sessions, turns
from memory_app.turns.rows.sessions import Claim, Progress, SessionRow

log = structlog.get_logger(__name__)

EARLIER_TURNS = 3
"""Turns before the new ones that the extractor sees as context."""

TAKEN_APART = "its worker died twice; each of its turns is tried alone"

ERASURE_WAIT = timedelta(seconds=1)
"""Until a session is tried again in which a turn is about to be erased that another replaced."""

ANSWER = TypeAdapter(Answered)


@dataclass(frozen=True, slots=True)
class Batch:
    """The next turns of a claimed session, and the rest of what the extractor reads."""

    claim: Claim
    from_seq: int
    to_seq: int
    turns: tuple[Turn, ...]
    earlier: tuple[Turn, ...]
    policy: Policy
    user: str
    label: str | None
    aliases: tuple[str, ...]
    agent: str
    time_zone: ZoneInfo
    known: tuple[Entity, ...]
    run_id: UUID
    answer: Answered | None
    is_replay: bool
    """One turn behind the session's place, extracted once more; its effects come late, its facts keep their dates."""
    failures: int
    refusals: int
    failing_for: timedelta


def next_batch(runtime: Runtime, claimed: Claim) -> Batch | None:
    """Read the next turns and open their run; frees the session and returns None when there are none."""
    with transaction(runtime.engine, claimed.tenant_id) as connection:
        session = sessions.read(connection, claimed.scope_id, claimed.session_id)
        place = names.read_scope(connection, claimed.scope_id)
        if session is None or place is None or session.fence != claimed.fence:
            return None
        low, high = _range(runtime, claimed, session)
        policy = parse_policy(place.policy)
        # The policy may have changed since the turns were accepted.
        extracting = policy.memory and policy.extraction is not ExtractionMode.OFF
        if high < low or not extracting:
            sessions.release(connection, claimed, extracting=extracting)
            return None
        # A model may take longer than the usual lease, which is short so that rules are soon tried again.
        if policy.extraction is ExtractionMode.LLM:
            lease = timedelta(seconds=runtime.settings.extract.model_lease_seconds)
            sessions.extend(connection, claimed, lease)
        # One read for both: each round trip costs more than what it reads.
        read_turns = turns.between(
            connection, claimed.scope_id, claimed.session_id, low=low - EARLIER_TURNS, high=high
        )
        new_turns = tuple(turn for turn in read_turns if turn.seq >= low)
        if waits_for_erasure(connection, claimed, new_turns):
            sessions.defer(connection, claimed, ERASURE_WAIT, for_cap=False)
            return None
        run = _open_run(connection, claimed, low=low, high=high)
        # A run with a kept answer covers the turns that the answer is about, and no others.
        if run.to_seq is not None and run.to_seq != high:
            high = run.to_seq
            new_turns = turns.between(connection, claimed.scope_id, claimed.session_id, low=low, high=high)
        return Batch(
            claim=claimed,
            from_seq=low,
            to_seq=high,
            turns=new_turns,
            earlier=tuple(turn for turn in read_turns if turn.seq < low),
            policy=policy,
            user=place.user or "user",
            label=place.label,
            aliases=place.aliases,
            agent=place.agent,
            time_zone=zone_of(place.time_zone),
            known=known_entities(connection, claimed.scope_id),
            run_id=run.id,
            answer=_kept_answer(run),
            is_replay=low <= session.extracted_seq,
            failures=session.failures,
            refusals=session.refusals,
            failing_for=session.now - (session.failing_since or session.now),
        )


def known_entities(connection: Connection, scope_id: int) -> tuple[Entity, ...]:
    """The scope's entities, for the spelling of their names."""
    # The most mentioned ones: all entities of a long life would fill the prompt.
    return entities.listed(connection, [scope_id], limit=200)


def _open_run(connection: Connection, claimed: Claim, *, low: int, high: int) -> runs.Run:
    """The run on these turns, which may have the answer of a worker that died."""
    run = runs.begin_extract(
        connection,
        claimed.tenant_id,
        claimed.scope_id,
        session_id=claimed.session_id,
        from_seq=low,
        to_seq=high,
    )
    if claimed.starts <= 2 or run.to_seq in (None, low):
        return run
    # The answer for several turns was applied twice in vain: one of them may kill its worker, and only alone can it be
    # told from its neighbours.
    runs.fail(connection, run.id, TAKEN_APART)
    return runs.begin_extract(
        connection,
        claimed.tenant_id,
        claimed.scope_id,
        session_id=claimed.session_id,
        from_seq=low,
        to_seq=low,
    )


def _kept_answer(run: runs.Run) -> Answered | None:
    """The answer of a worker that died, or None."""
    if run.answer is None:
        return None
    try:
        return ANSWER.validate_python(run.answer, strict=False)
    except ValidationError:
        # An older release wrote answers in another form: the extractor is asked again.
        log.warning("answer_not_readable", run=str(run.id))
        return None


def _range(runtime: Runtime, claimed: Claim, session: SessionRow) -> tuple[int, int]:
    """First and last seq of the next batch; one turn alone while it is suspected, or replayed."""
    if session.replay_seqs:
        return session.replay_seqs[0], session.replay_seqs[0]
    is_suspect = claimed.starts > 1 or session.refusals > 0
    size = 1 if is_suspect else runtime.settings.extract.batch
    return session.extracted_seq + 1, min(session.extracted_seq + size, session.next_seq - 1)


def note_progress(connection: Connection, batch: Batch, *, to_seq: int) -> Progress | None:
    """Note how far the session has come; None where the fence is no longer ours."""
    if batch.is_replay:
        return sessions.replayed(connection, batch.claim, batch.from_seq)
    sums_up = batch.policy.extraction is ExtractionMode.LLM
    return sessions.advance(connection, batch.claim, from_seq=batch.from_seq, to_seq=to_seq, sums_up=sums_up)
