"""Candidates: the rows of a scope that may answer a query, with their signals and scores. Reads only.

The database gives every row the signals that it can see and returns the best; the other signals and the relevance are
computed here.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from uuid import UUID

from sqlalchemy import Connection

from memory_app.language.sentence_type import addressing, trait_signals, traits_of
from memory_app.language.text import indexed_text, terms
from memory_app.memories.rows import links
from memory_app.memories.rows.cards import EntityCard
from memory_app.memories.rows.links import Link
from memory_app.recall.query import ScopedQuery, horizon
from memory_app.recall.query_times import in_periods
from memory_app.recall.ranking import Candidate, order
from memory_app.recall.records import Hit, RecallQuery
from memory_app.recall.rows import search
from memory_app.recall.rows.search import Filters, MemoryHit, Probe, Raw
from memory_app.records.importance import HIGHEST
from memory_app.records.kinds import recalled_kinds
from memory_app.records.records import Role, Tier, Turn
from memory_app.records.scoring import Signals, recency, relevance
from memory_app.runtime import Runtime
from memory_app.turns.rows import turns

SPARE_ROWS = 12
"""Rows of each tier that are read beyond the limit, or half the limit if that is more. They make up for repeats, and
for what comes up by the few signals that the database does not have; with four times as many nothing more is found."""

UNINDEXED_TURNS = 50
"""Accepted turns looked through by their words while their index is still being made."""

LINKS_FOLLOWED = 50
"""Memories that graph expansion adds at most in one step, by the strongest links."""


def collect(connection: Connection, scoped: ScopedQuery, probe: Probe) -> list[Candidate]:
    """Return the candidates of every tier that the query asks for."""
    if not scoped.policy.memory:
        return []
    candidates: list[Candidate] = []
    if Tier.DAILY_LOGS in scoped.tiers and scoped.policy.daily_logs:
        more = replace(probe, limit=max(probe.limit, scoped.query.limit + scoped.further_turns))
        for hit in search.turn_hits(connection, more):
            candidates.append(_of_turn(scoped, hit.turn, raw=hit.raw, traits=hit.traits))
        if scoped.facts.has_fresh_turns:
            candidates += _unindexed(connection, scoped)
    if Tier.FACTS in scoped.tiers:
        candidates += _of_memories(connection, scoped, probe)
    if Tier.ENTITIES in scoped.tiers:
        candidates += [_of_entity(scoped, entity) for entity in scoped.entities]
    threshold = scoped.query.threshold
    if threshold is None:
        return candidates
    # Turns that are not indexed yet and entities have no embedding to compare.
    return [candidate for candidate in candidates if candidate.signals.get("similarity", 0.0) >= threshold]


def widened(probe: Probe, limit: int) -> Probe:
    """Return the probe with up to ``limit`` rows of each tier."""
    # An arm returns at most `candidates` rows, so that number has to grow with the limit.
    return replace(probe, limit=limit, candidates=max(probe.candidates, limit))


def probe_of(runtime: Runtime, scoped: ScopedQuery) -> Probe:
    """Return what the database is asked for."""
    query, settings = scoped.query, runtime.settings.recall
    sessions = scoped.facts.sessions
    rows_limit = query.limit + max(query.limit // 2, SPARE_ROWS)
    return Probe(
        scope_ids=scoped.row.visible,
        vectors=scoped.vectors,
        keywords=scoped.keywords,
        weights=scoped.weights,
        candidates=settings.candidates,
        # An explanation also lists the candidates that were cut.
        limit=settings.candidates if query.explain else rows_limit,
        least=query.limit,
        filters=Filters(
            kinds=query.kinds or recalled_kinds(),
            subtypes=query.subtypes,
            tags=query.tags,
            session=sessions.get(query.session) if query.session else None,
            min_importance=query.min_importance,
            as_of=query.as_of,
            after=query.after,
            before=query.before,
            recorded_after=horizon(scoped),
        ),
        speakers=scoped.speakers,
        mentioning=tuple(scoped.mentioning),
        periods=scoped.periods,
        current_session=sessions.get(scoped.current_session) if scoped.current_session else None,
        threshold=query.threshold,
        indexed=scoped.indexed,
        anchors=scoped.anchors,
        is_large=scoped.facts.is_large,
    )


def _of_turn(scoped: ScopedQuery, turn: Turn, *, raw: Raw, traits: int, indexed: bool = True) -> Candidate:
    signals: Signals = {
        "similarity": raw.similarity,
        "keyword": raw.keyword,
        "neighbour_similarity": raw.neighbour_similarity,
        "neighbour_keyword": raw.neighbour_keyword,
        "second_neighbour_keyword": raw.second_neighbour_keyword,
        "session_keyword": raw.session_keyword,
        "answers": raw.answers,
        "phrase": scoped.phrases.share(turn.text),
        "addresses": addressing(turn.text),
        "named_person": float(turn.speaker in scoped.speakers),
        "user_role": float(turn.role is Role.USER),
        "recency": recency(turn.at, scoped.now),
        "same_session": float(turn.session == scoped.current_session),
        "in_time": float(in_periods(turn.at, scoped.periods)),
        **trait_signals(traits),
    }
    hit = Hit(
        id=turn.id,
        tier=Tier.DAILY_LOGS,
        text=turn.text,
        at=turn.at,
        session=turn.session,
        seq=turn.seq,
        speaker=turn.speaker,
        role=turn.role.value,
        indexed=indexed,
    )
    return Candidate(
        hit,
        signals,
        relevance=relevance(signals, scoped.weights),
        coverage=_coverage(scoped, raw),
    )


def _coverage(scoped: ScopedQuery, raw: Raw) -> float:
    """The keyword score of a row as a share of that of a row with every word of the query."""
    return raw.keyword * raw.scale / scoped.full_match if scoped.full_match else 0.0


def _unindexed(connection: Connection, scoped: ScopedQuery) -> list[Candidate]:
    """Turns that were accepted but not indexed yet, compared by their words: what was just said is usable at once."""
    query_words = set(scoped.words)
    candidates = []
    for turn in turns.unindexed(connection, scoped.row.visible, limit=UNINDEXED_TURNS):
        if not _passes(scoped.query, turn):
            continue
        words = set(terms(indexed_text(turn.speaker, turn.at, turn.text)))
        # The share of the query's words has the same range as the scaled keyword score: 0 to 1.
        share = len(query_words & words) / max(len(query_words), 1)
        traits = traits_of(turn.text, by_user=turn.role is Role.USER)
        raw = Raw(similarity=0.0, keyword=share, scale=scoped.full_match)
        candidates.append(_of_turn(scoped, turn, raw=raw, traits=traits, indexed=False))
    return candidates


def _passes(query: RecallQuery, turn: Turn) -> bool:
    """Apply the filters that the database applies to indexed turns."""
    is_of_session = query.session in (None, turn.session)
    was_said_by_then = query.as_of is None or turn.at <= query.as_of
    is_after = query.after is None or turn.at >= query.after
    is_before = query.before is None or turn.at < query.before
    return is_of_session and was_said_by_then and is_after and is_before


def _of_memories(connection: Connection, scoped: ScopedQuery, probe: Probe) -> list[Candidate]:
    # The spare rows only replace turns that the caller shows anyway, so fewer memories are read.
    fewer = replace(probe, limit=probe.limit - scoped.spare, least=probe.least - scoped.spare)
    hits = search.memory_hits(connection, fewer)
    candidates = [_of_memory(scoped, hit) for hit in hits]
    if scoped.query.expand_graph and hits:
        candidates += _linked(connection, scoped, probe, start=candidates, scale=hits[0].raw.scale)
    return candidates


def _of_memory(
    scoped: ScopedQuery,
    memory: MemoryHit,
    *,
    along: Sequence[tuple[Link, float]] = (),
    related: bool = False,
) -> Candidate:
    signals: Signals = {
        "similarity": memory.raw.similarity,
        "keyword": memory.raw.keyword,
        # A memory stands alone, so its own scores take the place of those of the turns around it.
        "neighbour_similarity": memory.raw.similarity,
        "neighbour_keyword": memory.raw.keyword,
        "second_neighbour_keyword": memory.raw.keyword,
        "session_keyword": memory.raw.keyword,
        "phrase": scoped.phrases.share(memory.text),
        "named_person": float(memory.subject in scoped.speakers),
        # Counted as said by the user: otherwise the user's own turn would rank above the memory made from it.
        "user_role": 1.0,
        "recency": recency(memory.last_seen, scoped.now),
        "frequency": memory.frequency,
        "same_session": float(memory.session is not None and memory.session == scoped.current_session),
        "feedback": memory.feedback_score,
        "importance": memory.importance / HIGHEST,
        "pinned": float(memory.pinned),
        "mentions": scoped.mentioning.get(memory.id, 0.0),
        "in_time": float(in_periods(memory.valid_from, scoped.periods)),
        "linked": max((link.weight * score for link, score in along), default=0.0),
        **trait_signals(memory.traits),
    }
    via = [{"from": str(link.source_id), "type": link.type, "weight": link.weight} for link, _ in along]
    hit = Hit(
        id=memory.id,
        tier=Tier.FACTS,
        text=memory.text,
        at=memory.valid_from,
        kind=memory.kind,
        session=memory.session,
        importance=memory.importance,
        tags=memory.tags,
        valid_until=memory.valid_until,
        related=related,
        agent=scoped.granted_by,
    )
    return Candidate(
        hit,
        signals,
        relevance=relevance(signals, scoped.weights),
        coverage=_coverage(scoped, memory.raw),
        vector=memory.vector,
        via=tuple(via),
    )


def _linked(
    connection: Connection,
    scoped: ScopedQuery,
    probe: Probe,
    *,
    start: Sequence[Candidate],
    scale: float,
) -> list[Candidate]:
    """Return, step by step, what is linked to the best of ``start``; a row is scored where it is nearest."""
    # What the search alone shows; rows without relevance are candidates only because they were pinned or few.
    edge = sorted((row for row in start if row.relevance > 0), key=order)[: scoped.query.limit]
    seen = {candidate.hit.id for candidate in edge}
    linked: list[Candidate] = []
    for _ in range(scoped.query.depth):
        links_to = _links_from(connection, scoped, edge, seen=seen)
        if not links_to:
            break
        # With the scale of the search: scores on two scales cannot be compared.
        hits = search.memories_by_id(connection, probe, list(links_to), scale=scale)
        edge = [_of_memory(scoped, hit, along=links_to[hit.id], related=True) for hit in hits]
        seen |= links_to.keys()
        linked += edge
    return linked


def _links_from(
    connection: Connection,
    scoped: ScopedQuery,
    edge: Sequence[Candidate],
    *,
    seen: Collection[UUID | str],
) -> dict[UUID, list[tuple[Link, float]]]:
    """The links that lead on from the candidates of ``edge`` to what was not ``seen``, by the memory they lead to, each
    with the relevance that it carries."""
    relevances = {}
    for candidate in edge:
        if isinstance(candidate.hit.id, UUID):
            relevances[candidate.hit.id] = candidate.relevance
    links_to: dict[UUID, list[tuple[Link, float]]] = {}
    for link in links.around(connection, scoped.row.visible, list(relevances), limit=LINKS_FOLLOWED):
        if link.target_id not in seen:
            links_to.setdefault(link.target_id, []).append((link, relevances[link.source_id]))
    return links_to


def _of_entity(scoped: ScopedQuery, entity: EntityCard) -> Candidate:
    # The query names the entity, which is a full match of words.
    signals: Signals = {"keyword": 1.0, "recency": recency(entity.last_seen, scoped.now)}
    summary = f": {entity.summary}" if entity.summary else ""
    hit = Hit(
        id=entity.key,
        tier=Tier.ENTITIES,
        text=f"{entity.label} ({entity.type}){summary}",
        at=entity.last_seen,
        kind=entity.type,
    )
    # The rows about an entity say how much of the query is known; that it is named says nothing of that.
    return Candidate(hit, signals, relevance=relevance(signals, scoped.weights))
