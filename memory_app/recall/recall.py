"""Recall: what of all that is remembered answers a question. The one read path; it never writes.

The database gives every row of the scope the signals it can see and hands over the best; the rest of the signals, the
score, and what `ranking` does with them, are pure. What cannot be had (the embedder is away) is left out and named.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from sqlalchemy import Connection

from memory_app.db.db import plan_anew, transaction
from memory_app.language.sentence_type import trait_signals, traits_of
from memory_app.language.text import indexed_text, terms
from memory_app.memories.rows import links
from memory_app.memories.rows.cards import EntityCard
from memory_app.memories.rows.links import Link
from memory_app.recall.counts import note_shown
from memory_app.recall.query import (
    Embedded,
    Question,
    checked,
    embedded,
    horizon,
    in_periods,
    prepared,
    with_former_vectors,
)
from memory_app.recall.ranking import Candidate, order, ranked
from memory_app.recall.records import Hit, Recalled, RecallQuery
from memory_app.recall.rows import search
from memory_app.recall.rows.search import Filters, MemoryHit, Probe, Raw
from memory_app.records.importance import HIGHEST
from memory_app.records.kinds import recalled_kinds
from memory_app.records.records import Role, Tier, Turn
from memory_app.records.scope import Scope
from memory_app.records.scoring import Signals, recency, relevance
from memory_app.runtime import Runtime
from memory_app.tenancy.rows import names
from memory_app.tenancy.rows.names import ScopeRow
from memory_app.turns.rows import turns

__all__ = ["Hit", "RecallQuery", "Recalled", "recall"]

UNINDEXED_TURNS = 50
"""Accepted turns looked through by their words while their index is still being made."""

HANDED_OVER_MORE = 12
"""Rows of each tier that the database hands over beyond the limit, or half the limit if that is more. Its order is that
of the scores, so that the rest only makes up for repeats."""

MOST = 1_000
"""Rows looked through where so many repeat each other that too few were left."""

LINKS_FOLLOWED = 50
"""Memories that graph expansion adds at most in one step, by the strongest links."""

"""What recall looks through when the caller names no kinds: all that may stand in a context window."""


def recall(runtime: Runtime, tenant_id: int, scope: Scope, query: RecallQuery) -> Recalled:
    """The best rows of the scope for the query; an agent's own memories count as part of each user's scope.

    Raises `InvalidInput` naming the field, `NotFound` for an unknown scope or session. Embeds the query; writes
    nothing, and has the recalled memories noted in the background.
    """
    asked = checked(runtime, query)
    vectors = embedded(runtime, asked.text)
    with transaction(runtime.engine, tenant_id) as connection:
        row = names.need_scope(connection, tenant_id, scope)
        recalling = begin(connection, runtime, row, asked, vectors, session=scope.session, spare=0)
    return finish(runtime, tenant_id, recalling)


@dataclass(frozen=True, slots=True)
class Recalling:
    """A question and its answer; None while rows wait to leave a model of which the question has no vector."""

    question: Question
    answer: Recalled | None


def begin(
    connection: Connection,
    runtime: Runtime,
    row: ScopeRow,
    query: RecallQuery,
    vectors: Embedded,
    *,
    session: str | None,
    spare: int,
) -> Recalling:
    """The first part of `recall` for a checked query, in the caller's transaction; ``spare`` as in a `Question`."""
    question = prepared(connection, runtime, row, query, vectors, session=session, spare=spare)
    return Recalling(question, None if question.waiting else _answered(connection, runtime, question))


def finish(runtime: Runtime, tenant_id: int, recalling: Recalling) -> Recalled:
    """The rest of `recall`; call it with no transaction open. Has the recalled memories noted."""
    recalled = recalling.answer
    if recalled is None:
        question = with_former_vectors(runtime, recalling.question)
        with transaction(runtime.engine, tenant_id) as connection:
            plan_anew(connection)
            recalled = _answered(connection, runtime, question)
    note_shown(runtime, tenant_id, (hit.id for hit in recalled.memories if hit.tier is Tier.FACTS))
    return recalled


def recall_within(
    connection: Connection,
    runtime: Runtime,
    tenant_id: int,
    scope: Scope,
    query: RecallQuery,
    vectors: Embedded,
) -> Recalled:
    """Like `recall` of a checked query, in the caller's transaction, whose own changes it sees. Notes nothing."""
    row = names.need_scope(connection, tenant_id, scope)
    question = prepared(connection, runtime, row, query, vectors, session=scope.session)
    return _answered(connection, runtime, question)


def _answered(connection: Connection, runtime: Runtime, question: Question) -> Recalled:
    """The ranking of what the database hands over; of more of it, where repeats left too few."""
    probe = _probe(runtime, question)
    found = _candidates(connection, question, probe)
    recalled = ranked(question, found)
    if len(recalled.memories) < question.asked.limit and probe.most <= len(found) and probe.most < MOST:
        more = replace(probe, most=MOST, candidates=max(probe.candidates, MOST))
        recalled = ranked(question, _candidates(connection, question, more), considered=MOST)
    return recalled


# --- candidates ---------------------------------------------------------------------------------------------


def _candidates(connection: Connection, question: Question, probe: Probe) -> list[Candidate]:
    if not question.policy.memory:
        return []  # Memory is off for this agent: nothing is recalled.
    found: list[Candidate] = []
    if Tier.DAILY_LOGS in question.tiers and question.policy.daily_logs:
        found += [
            _of_turn(question, hit.turn, hit.raw, hit.traits) for hit in search.turn_hits(connection, probe)
        ]
        if question.known.has_fresh_turns:
            found += _unindexed(connection, question)
    if Tier.FACTS in question.tiers:
        found += _of_memories(connection, question, probe)
    if Tier.ENTITIES in question.tiers:
        found += [_of_entity(question, entity) for entity in question.entities]
    return found


def _probe(runtime: Runtime, question: Question) -> Probe:
    asked, settings = question.asked, runtime.settings.recall
    return Probe(
        scope_ids=question.row.visible,
        vectors=question.vectors,
        keywords=question.keywords,
        weights=question.weights,
        candidates=settings.candidates,
        most=settings.candidates if asked.explain else asked.limit + max(asked.limit // 2, HANDED_OVER_MORE),
        least=asked.limit,
        filters=Filters(
            kinds=asked.kinds or recalled_kinds(),
            subtypes=asked.subtypes,
            tags=asked.tags,
            session=question.known.sessions.get(asked.session) if asked.session else None,
            min_importance=asked.min_importance,
            as_of=asked.as_of,
            after=asked.after,
            before=asked.before,
            recorded_after=horizon(question, runtime),
        ),
        speakers=question.speakers,
        mentioning=tuple(question.mentioning),
        periods=question.periods,
        current_session=question.known.sessions.get(question.current_session)
        if question.current_session
        else None,
        indexed=question.indexed,
        anchors=question.anchors,
    )


def _of_turn(question: Question, turn: Turn, raw: Raw, traits: int, *, indexed: bool = True) -> Candidate:
    signals = Signals(
        similarity=raw.similarity,
        keyword=raw.keyword,
        neighbour_similarity=raw.neighbour_similarity,
        neighbour_keyword=raw.neighbour_keyword,
        session_keyword=raw.session_keyword,
        named_person=float(turn.speaker in question.speakers),
        user_role=float(turn.role is Role.USER),
        recency=recency(turn.at, question.now),
        same_session=float(turn.session == question.current_session),
        **trait_signals(traits),
        in_time=float(in_periods(turn.at, question.periods)),
    )
    hit = Hit(
        id=turn.id,
        tier=Tier.DAILY_LOGS,
        text=turn.text,
        score=relevance(signals, question.weights),
        at=turn.at,
        session=turn.session,
        seq=turn.seq,
        speaker=turn.speaker,
        role=turn.role.value,
        indexed=indexed,
    )
    return Candidate(hit, signals)


def _unindexed(connection: Connection, question: Question) -> list[Candidate]:
    """Turns that were accepted but not indexed yet, found by their words: what was just said is usable at once."""
    asked, wanted = question.asked, set(question.words)
    found = []
    for turn in turns.unindexed(connection, question.row.visible, limit=UNINDEXED_TURNS):
        if not _passes(asked, turn):
            continue
        said = set(terms(indexed_text(turn.speaker, turn.at, turn.text)))
        share = len(wanted & said) / len(wanted) if wanted else 0.0
        traits = traits_of(turn.text, by_user=turn.role is Role.USER)
        found.append(_of_turn(question, turn, Raw(0.0, share), traits, indexed=False))
    return found


def _passes(asked: RecallQuery, turn: Turn) -> bool:
    """The filters that the database applies to indexed turns."""
    return (
        (asked.session is None or turn.session == asked.session)
        and (asked.as_of is None or turn.at <= asked.as_of)
        and (asked.after is None or turn.at >= asked.after)
        and (asked.before is None or turn.at < asked.before)
    )


def _of_memories(connection: Connection, question: Question, probe: Probe) -> list[Candidate]:
    fewer = replace(probe, most=probe.most - question.spare, least=probe.least - question.spare)
    hits = search.memory_hits(connection, fewer)
    found = [_of_memory(question, hit) for hit in hits]
    if question.asked.expand_graph and hits:
        found = _expanded(connection, question, probe, found, scale=hits[0].scale)
    return found


def _of_memory(
    question: Question, memory: MemoryHit, *, along: Sequence[tuple[Link, float]] = ()
) -> Candidate:
    signals = Signals(
        similarity=memory.raw.similarity,
        keyword=memory.raw.keyword,
        # A memory stands alone, so its own scores take the place of those of the turns around it.
        neighbour_similarity=memory.raw.similarity,
        neighbour_keyword=memory.raw.keyword,
        session_keyword=memory.raw.keyword,
        named_person=float(memory.subject in question.speakers),
        user_role=1.0,
        **trait_signals(memory.traits),
        recency=recency(memory.last_seen, question.now),
        frequency=memory.frequency,
        same_session=float(memory.session is not None and memory.session == question.current_session),
        feedback=memory.feedback_score,
        importance=memory.importance / HIGHEST,
        pinned=float(memory.pinned),
        mentions=question.mentioning.get(memory.id, 0.0),
        in_time=float(in_periods(memory.valid_from, question.periods)),
        linked=max((link.weight * score for link, score in along), default=0.0),
    )
    via = tuple({"from": str(link.source_id), "type": link.type, "weight": link.weight} for link, _ in along)
    return Candidate(_memory_hit(memory, relevance(signals, question.weights)), signals, memory.vector, via)


def _memory_hit(memory: MemoryHit, score: float) -> Hit:
    return Hit(
        id=memory.id,
        tier=Tier.FACTS,
        text=memory.text,
        score=score,
        at=memory.valid_from,
        kind=memory.kind,
        session=memory.session,
        importance=memory.importance,
        tags=memory.tags,
        valid_until=memory.valid_until,
    )


def _expanded(
    connection: Connection,
    question: Question,
    probe: Probe,
    found: Sequence[Candidate],
    *,
    scale: float,
) -> list[Candidate]:
    """What was found, and what is linked to the best of it, step by step; a row is judged once, where it is nearest."""
    by_id = {candidate.hit.id: candidate for candidate in found}
    edge = sorted(found, key=order)[: question.asked.limit]
    for _ in range(question.asked.depth):
        scores = {c.hit.id: c.hit.score for c in edge if c.hit.score > 0 and isinstance(c.hit.id, UUID)}
        leading: dict[UUID, list[tuple[Link, float]]] = {}
        for link in links.around(connection, question.row.visible, list(scores), limit=LINKS_FOLLOWED):
            known = by_id.get(link.target_id)
            # Only from the better to the worse, or two rows would lift each other.
            if known is None or known.hit.score < scores[link.source_id]:
                leading.setdefault(link.target_id, []).append((link, scores[link.source_id]))
        hits = search.memories_by_id(connection, probe, list(leading), scale=scale) if leading else ()
        edge = []
        for hit in hits:
            candidate = _of_memory(question, hit, along=leading[hit.id])
            before = by_id.get(candidate.hit.id)
            if before is None or not before.via:
                by_id[candidate.hit.id] = candidate
                edge.append(candidate)
        if not edge:
            break
    return list(by_id.values())


def _of_entity(question: Question, entity: EntityCard) -> Candidate:
    signals = Signals(keyword=1.0, recency=recency(entity.last_seen, question.now))
    said = f"{entity.label} ({entity.type})" + (f": {entity.summary}" if entity.summary else "")
    hit = Hit(
        id=entity.key,
        tier=Tier.ENTITIES,
        text=said,
        score=relevance(signals, question.weights),
        at=entity.last_seen,
        kind=entity.type,
    )
    return Candidate(hit, signals)
