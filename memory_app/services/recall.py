"""Recall: what of all that is remembered answers a question. The one read path; it never writes.

The database gives every row of the scope the signals it can see and hands over the best; the rest of the signals, the
score, the twins and the cut are pure. What cannot be had (the embedder is away) is left out and named.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from uuid import UUID

import structlog
from sqlalchemy import Connection

from memory_app.domain.kinds import KINDS, kind_of
from memory_app.domain.policy import Policy, parse_policy
from memory_app.domain.records import Memory, Role, Tier, Turn
from memory_app.domain.scope import Scope
from memory_app.domain.scoring import (
    PRESETS,
    Ranked,
    Signals,
    Weights,
    contributions,
    keyword_weights,
    query_weights,
    recency,
    relevance,
    twins,
)
from memory_app.domain.text import asks, canonical_key, clean, indexed_text, is_first_person, normalise, terms
from memory_app.errors import InvalidInput, NotFound, Transient
from memory_app.runtime import Runtime
from memory_app.store import clock, entities, names, search, sessions, speakers, turns
from memory_app.store import terms as term_store
from memory_app.store.db import transaction
from memory_app.store.entities import Entity
from memory_app.store.names import ScopeRow
from memory_app.store.search import MemoryHit, Probe, Raw

log = structlog.get_logger(__name__)

UNINDEXED_TURNS = 50
"""Accepted turns looked through by their words while their index is still being made."""

TWINS_CONSIDERED = 3
"""Times the limit: candidates looked through for repeats before the cut."""

RARE_SHARE = 0.08
"""Share of a big scope's rows that its keyword index may hand over: enough for the best, and quick."""

RECALLED_KINDS = tuple(kind.name for kind in KINDS.values() if kind.section is not None)
"""What recall looks through when the caller names no kinds: all that may stand in a context window."""


@dataclass(frozen=True, slots=True)
class RecallQuery:
    """What is asked. Every filter narrows; None leaves it open, an empty one is an error.

    ``text`` None lists by strength of the other signals. ``as_of`` asks what held then. ``min_importance`` 1–10.
    """

    text: str | None = None
    limit: int = 10
    kinds: tuple[str, ...] | None = None
    tiers: tuple[Tier, ...] | None = None
    tags: tuple[str, ...] | None = None
    session: str | None = None
    min_importance: int | None = None
    as_of: datetime | None = None
    preset: str | None = None
    expand_graph: bool = False
    explain: bool = False


@dataclass(frozen=True, slots=True)
class Hit:
    """One answer. ``id`` is a memory's or turn's, or an entity's key; ``at`` when it was said or holds from."""

    id: UUID | str
    tier: Tier
    text: str
    score: float
    at: datetime | None = None
    kind: str | None = None
    session: str | None = None
    seq: int | None = None
    speaker: str | None = None
    role: str | None = None
    importance: int | None = None
    tags: tuple[str, ...] = ()
    valid_until: datetime | None = None
    indexed: bool = True
    explain: Mapping[str, object] | None = None


@dataclass(frozen=True, slots=True)
class Recalled:
    """Best first. ``degraded`` names what was left out; ``cut`` (with ``explain``) the candidates that did not make it
    and why."""

    memories: tuple[Hit, ...]
    degraded: tuple[str, ...] = ()
    cut: tuple[Hit, ...] = ()


@dataclass(frozen=True, slots=True)
class _Candidate:
    hit: Hit
    signals: Signals


@dataclass(frozen=True, slots=True)
class _Question:
    """A query made ready: words, vector, who is named, and the weights that apply."""

    asked: RecallQuery
    row: ScopeRow
    now: datetime
    weights: Weights
    words: Mapping[str, int]
    vector: Sequence[float] | None
    keywords: dict[int, float]
    rare_terms: tuple[int, ...]
    speakers: tuple[str, ...]
    mentioned: tuple[Entity, ...]
    session: str | None
    tiers: tuple[Tier, ...]
    degraded: tuple[str, ...] = field(default=())


def recall(runtime: Runtime, tenant_id: int, scope: Scope, query: RecallQuery) -> Recalled:
    """The best rows of the scope for the query; an agent's own memories count as part of each user's scope.

    Raises `InvalidInput` naming the field, `NotFound` for an unknown scope or session. Embeds the query; writes
    nothing.
    """
    asked = checked(runtime, query)
    vector, degraded = _embedded(runtime, asked.text)
    with transaction(runtime.engine, tenant_id) as connection:
        row = names.need_scope(connection, tenant_id, scope)
        policy = parse_policy(row.policy)
        question = _question(connection, runtime, row, policy, scope, asked, vector, degraded)
        candidates = _candidates(connection, runtime, question, policy)
    return _ranked(question, candidates)


def checked(runtime: Runtime, query: RecallQuery) -> RecallQuery:
    """The query with cleaned text, or `InvalidInput`: a filter that is unknown or empty is never "everything"."""
    settings = runtime.settings.recall
    said = None
    if query.text is not None:
        said = clean(query.text)[0].strip()
        if not said:
            raise InvalidInput("query: empty; say what to look for, or leave it out", field="query")
        if len(said) > settings.query_limit_chars:
            raise InvalidInput(f"query: at most {settings.query_limit_chars} characters", field="query")
    if not 1 <= query.limit <= settings.limit_max:
        raise InvalidInput(f"limit: 1 to {settings.limit_max}", field="limit")
    for name in ("kinds", "tiers", "tags"):
        if getattr(query, name) is not None and not getattr(query, name):
            raise InvalidInput(f"{name}: empty; leave it out to look everywhere", field=name)
    for kind in query.kinds or ():
        kind_of(kind, field="kinds")
    if query.preset is not None and query.preset not in PRESETS:
        raise InvalidInput(f"preset: one of {', '.join(PRESETS)}", field="preset")
    if query.min_importance is not None and not 1 <= query.min_importance <= 10:
        raise InvalidInput("min_importance: 1 to 10", field="min_importance")
    if query.as_of is not None and query.as_of.utcoffset() is None:
        raise InvalidInput("as_of: a time needs its zone, as in 2026-01-31T09:00:00+01:00", field="as_of")
    return replace(query, text=said)


def _embedded(runtime: Runtime, said: str | None) -> tuple[Sequence[float] | None, tuple[str, ...]]:
    if said is None:
        return None, ()
    try:
        return runtime.embedder.embed([said])[0].tolist(), ()
    except Transient as error:
        log.warning("recall_without_vectors", error=error.kind)
        return None, ("similarity",)


def _question(
    connection: Connection,
    runtime: Runtime,
    row: ScopeRow,
    policy: Policy,
    scope: Scope,
    asked: RecallQuery,
    vector: Sequence[float] | None,
    degraded: tuple[str, ...],
) -> _Question:
    words = terms(asked.text) if asked.text else {}
    counts, total = term_store.document_counts(
        connection, row.visible, keyword_weights(words) if words else ()
    )
    if asked.session is not None and sessions.find(connection, row.id, asked.session) is None:
        raise NotFound(f"session: no session {asked.session!r} here", field="session")
    tiers = asked.tiers or tuple(Tier)
    if asked.kinds is not None or asked.tags is not None or asked.min_importance is not None:
        tiers = tuple(tier for tier in tiers if tier is Tier.FACTS)
    named = _named(asked.text, speakers.listed(connection, row.visible)) if asked.text else ()
    weights = weights_of(asked.preset or policy.preset or runtime.settings.recall.preset, policy)
    if named and not is_first_person(asked.text or ""):
        # The question is about somebody by name, who may be on either side: being the user is no sign then.
        weights = replace(weights, user_role=0.0)
    return _Question(
        asked=asked,
        row=row,
        now=clock.now(connection),
        weights=weights,
        words=words,
        vector=vector,
        keywords=query_weights(words, counts, total),
        rare_terms=_rare(counts, total),
        speakers=named,
        mentioned=_mentioned(asked.text, entities.listed(connection, row.visible, limit=500))
        if asked.text
        else (),
        session=scope.session,
        tiers=tiers,
        degraded=degraded,
    )


def weights_of(preset: str, policy: Policy) -> Weights:
    """The preset's weights with the agent's own in place of those it overrides."""
    return replace(PRESETS[preset], **dict(policy.weights))


def _candidates(
    connection: Connection, runtime: Runtime, question: _Question, policy: Policy
) -> list[_Candidate]:
    probe = _probe(runtime, question)
    found: list[_Candidate] = []
    if Tier.DAILY_LOGS in question.tiers and policy.daily_logs:
        found += [_of_turn(question, hit.turn, hit.raw) for hit in search.turn_hits(connection, probe)]
        found += _unindexed(connection, question)
    if Tier.FACTS in question.tiers:
        hits = search.memory_hits(connection, probe)
        shared = _frequencies(connection, question, hits)
        found += [_of_memory(question, hit, shared.get(hit.stored.memory.id, 0.0)) for hit in hits]
    if Tier.ENTITIES in question.tiers:
        found += [_of_entity(question, entity) for entity in question.mentioned]
    return found


def _probe(runtime: Runtime, question: _Question) -> Probe:
    asked = question.asked
    horizon = question.now - timedelta(days=runtime.settings.index.daily_log_days)
    return Probe(
        scope_ids=question.row.visible,
        vector=question.vector,
        model=runtime.embedder.model,
        keywords=question.keywords,
        weights=question.weights,
        limit=runtime.settings.recall.candidates,
        now=question.now,
        speakers=question.speakers,
        session=asked.session,
        recorded_after=horizon,
        kinds=asked.kinds or RECALLED_KINDS,
        tags=asked.tags,
        min_importance=asked.min_importance or 1,
        as_of=asked.as_of,
        indexed_scope=question.row.id if question.row.search_model == runtime.embedder.model else None,
        rare_terms=question.rare_terms,
    )


def _rare(counts: Mapping[int, int], total: int) -> tuple[int, ...]:
    """The rarest words of the query, until together they may stand in `RARE_SHARE` of the rows; one at least."""
    chosen: list[int] = []
    rows = 0
    for term, occurrences in sorted(counts.items(), key=lambda item: item[1]):
        rows += occurrences
        if chosen and rows > RARE_SHARE * total:
            break
        chosen.append(term)
    return tuple(chosen)


def _of_turn(question: _Question, turn: Turn, raw: Raw, *, indexed: bool = True) -> _Candidate:
    signals = Signals(
        similarity=raw.similarity,
        keyword=raw.keyword,
        neighbour_similarity=raw.neighbour_similarity,
        neighbour_keyword=raw.neighbour_keyword,
        session_keyword=raw.session_keyword,
        named_person=float(turn.speaker in question.speakers),
        user_role=float(turn.role is Role.USER),
        recency=recency(turn.at, question.now),
        same_session=float(turn.session == question.session),
        asks=float(asks(turn.text)),
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
    return _Candidate(hit, signals)


def _of_memory(question: _Question, found: MemoryHit, frequency: float) -> _Candidate:
    memory = found.stored.memory
    signals = Signals(
        similarity=found.raw.similarity,
        keyword=found.raw.keyword,
        # A memory stands alone, so its own scores take the place of those of the turns around it.
        neighbour_similarity=found.raw.similarity,
        neighbour_keyword=found.raw.keyword,
        session_keyword=found.raw.keyword,
        named_person=float(memory.subject in question.speakers),
        user_role=1.0,
        recency=recency(memory.last_seen or memory.created_at, question.now),
        frequency=frequency,
        same_session=float(memory.session is not None and memory.session == question.session),
        feedback=memory.feedback_score,
        importance=memory.importance / 10,
        pinned=float(memory.pinned),
    )
    return _Candidate(_memory_hit(memory, relevance(signals, question.weights)), signals)


def _memory_hit(memory: Memory, score: float) -> Hit:
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


def _of_entity(question: _Question, entity: Entity) -> _Candidate:
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
    return _Candidate(hit, signals)


def _unindexed(connection: Connection, question: _Question) -> list[_Candidate]:
    """Turns that were accepted but not indexed yet, found by their words: what was just said is usable at once."""
    fresh = turns.unindexed(connection, question.row.visible, limit=UNINDEXED_TURNS)
    wanted = set(question.words)
    if not fresh:
        return []
    found = []
    for turn in fresh:
        if question.asked.session is not None and turn.session != question.asked.session:
            continue
        if question.asked.as_of is not None and turn.at > question.asked.as_of:
            continue
        said = set(terms(indexed_text(turn.speaker, turn.at, turn.text)))
        share = len(wanted & said) / len(wanted) if wanted else 0.0
        found.append(_of_turn(question, turn, Raw(0.0, share), indexed=False))
    return found


def _frequencies(connection: Connection, question: _Question, hits: Iterable[MemoryHit]) -> dict[UUID, float]:
    """For each hit how much of what is remembered is about the same entity, the commonest entity being 1."""
    if not question.weights.frequency:
        return {}
    return entities.shares(connection, question.row.visible, [hit.stored.memory.id for hit in hits])


def _ranked(question: _Question, candidates: Sequence[_Candidate]) -> Recalled:
    """Best first, without near twins, cut to the limit; equal scores in the order of time, newest first."""
    ordered = sorted(candidates, key=_order)
    if not question.asked.explain:
        ordered = ordered[: TWINS_CONSIDERED * question.asked.limit + TWINS_CONSIDERED]
    repeats = twins([Ranked(place, _sameness(candidate.hit)) for place, candidate in enumerate(ordered)])
    kept: list[Hit] = []
    cut: list[Hit] = []
    for place, candidate in enumerate(ordered):
        reason = _reason_to_cut(question, candidate, ordered, repeats.get(place), len(kept))
        (kept if reason is None else cut).append(_explained(question, candidate, reason))
    return Recalled(tuple(kept), question.degraded, tuple(cut) if question.asked.explain else ())


def _reason_to_cut(
    question: _Question,
    candidate: _Candidate,
    ordered: Sequence[_Candidate],
    original: Hashable | None,
    kept: int,
) -> str | None:
    if isinstance(original, int):
        return f"says the same as {ordered[original].hit.id}"
    if kept >= question.asked.limit:
        return "below the limit"
    if candidate.hit.score <= 0 and question.asked.text is not None and not candidate.signals.pinned:
        return "nothing in common with the query"
    return None


def _sameness(hit: Hit) -> str:
    """Equal for what need not be shown twice: the same words, of turns only within one session."""
    return f"{hit.session if hit.tier is Tier.DAILY_LOGS else ''}:{canonical_key(hit.text)}"


def _order(candidate: _Candidate) -> tuple[float, float]:
    hit = candidate.hit
    return (-hit.score, -(hit.at.timestamp() if hit.at else 0.0))


def _explained(question: _Question, candidate: _Candidate, reason: str | None) -> Hit:
    if not question.asked.explain:
        return candidate.hit
    signals = {name: getattr(candidate.signals, name) for name in Signals.__slots__}
    explanation: dict[str, object] = {
        "signals": signals,
        "contributions": contributions(candidate.signals, question.weights),
    }
    if reason is not None:
        explanation["cut"] = reason
    return replace(candidate.hit, explain=explanation)


def _named(query: str, known: Sequence[str]) -> tuple[str, ...]:
    """The speakers of the scope that the query names, by full or first name."""
    asked = _words(query)
    named = []
    for speaker in known:
        parts = _words(speaker)
        if parts and (parts[0] in asked or set(parts) <= set(asked)):
            named.append(speaker)
    return tuple(named)


def _mentioned(query: str, known: Sequence[Entity]) -> tuple[Entity, ...]:
    """Entities of the scope that the query names by label or alias, whole words only; no model call."""
    asked = f" {' '.join(_words(query))} "
    return tuple(
        entity
        for entity in known
        if any(f" {' '.join(_words(label))} " in asked for label in (entity.label, *entity.aliases))
    )


def _words(said: str) -> list[str]:
    return re.findall(r"\w+", normalise(said))
