"""A query made ready for the search: cleaned and checked, embedded, and read against what its scope knows.

Who is named, which entities and times are meant, which words are rare. What cannot be had is left out and named.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from uuid import UUID
from zoneinfo import ZoneInfo

import structlog
from sqlalchemy import Connection

from memory_app.db.db import plan_anew
from memory_app.errors import InvalidInput, MemoryAppError, NotFound, Transient
from memory_app.extraction.rules import Precision, resolve_dates
from memory_app.language.keywords import anchor_terms, keyword_weights, query_weights
from memory_app.language.sentence_type import ON_DEMAND, SIGNALS, expected_traits
from memory_app.language.text import STOP_WORDS, is_first_person, normalise, prose, slug, terms
from memory_app.language.zones import zone_of
from memory_app.memories.rows import cards
from memory_app.memories.rows.cards import EntityCard
from memory_app.providers.embedders import Embedder, embed_queries
from memory_app.recall.overview import is_overview, subject_of
from memory_app.recall.records import RecallQuery, checked_query
from memory_app.recall.rows import scope_facts
from memory_app.recall.rows.scope_facts import Known
from memory_app.recall.rows.search import IndexedScope, QueryVector
from memory_app.records.records import ENTITY_TYPES, Tier
from memory_app.records.scoring import LINKED_WEIGHT, PRESETS, Weights
from memory_app.runtime import Runtime
from memory_app.tenancy.policy import Policy, parse_policy
from memory_app.tenancy.rows.names import ScopeRow

log = structlog.get_logger(__name__)

NAME_WORDS = 4
"""Most words of an entity's name that is looked for in a query."""

NAMES_LIMIT = 300
"""Names looked for in one query; a message of many pages names what it is about early."""

_FACT_FILTERS = ("kinds", "subtypes", "tags", "min_importance")
"""Filters that only memories have: asked for them, recall looks through nothing else."""

_POSSESSIVE = re.compile(r"['’]s\b")
_YEAR = re.compile(r"\d{4}")
_UNCLEAR = frozenset({Precision.SINCE, Precision.DURATION})
"""Spans that say how long, not when."""


@dataclass(frozen=True, slots=True)
class Question:
    """A query, the scope it is asked in, and the weights that apply. ``same`` is the cosine from which two rows say the
    same. ``waiting`` are models of rows that no vector was made for yet. ``spare`` rows of the limit make up for turns
    that the caller shows anyway: that many fewer memories do."""

    asked: RecallQuery
    row: ScopeRow
    policy: Policy
    known: Known
    weights: Weights
    same: float
    tiers: tuple[Tier, ...]
    current_session: str | None
    words: Mapping[str, int]
    vectors: tuple[QueryVector, ...]
    keywords: dict[int, float]
    anchors: tuple[tuple[int, ...], ...]
    speakers: tuple[str, ...]
    entities: tuple[EntityCard, ...]
    mentioning: Mapping[UUID, float]
    periods: tuple[tuple[datetime, datetime], ...]
    waiting: tuple[str, ...]
    degraded: tuple[str, ...]
    spare: int = 0

    @property
    def now(self) -> datetime:
        return self.known.now

    @property
    def indexed(self) -> tuple[IndexedScope, ...]:
        """Visible scopes with search indexes for every vector of the question that fits rows of theirs."""
        scopes = dict.fromkeys(row.scope_id for row in self.known.models if row.is_indexed)
        asked = {vector.model for vector in self.vectors}
        models = {scope: [row for row in self.known.models if row.scope_id == scope] for scope in scopes}
        return tuple(
            IndexedScope(scope, tuple(row.model for row in rows if row.is_indexed))
            for scope, rows in models.items()
            if all(row.is_indexed for row in rows if row.model in asked)
        )


@dataclass(frozen=True, slots=True)
class Embedded:
    """The query's vectors, and what is missing for want of them."""

    vectors: tuple[QueryVector, ...] = ()
    degraded: tuple[str, ...] = ()


def checked(runtime: Runtime, query: RecallQuery) -> RecallQuery:
    """See `checked_query`; the limits are the settings'."""
    settings = runtime.settings.recall
    return checked_query(query, limit_most=settings.limit_max, query_limit_chars=settings.query_limit_chars)


def embedded(runtime: Runtime, said: str | None) -> Embedded:
    """The vector of the current model; call it with no transaction open."""
    return Embedded() if said is None else _embed(runtime.embedder, said)


def with_former_vectors(runtime: Runtime, question: Question) -> Question:
    """The question with vectors of models that its rows still wait to leave; call it with no transaction open."""
    assert question.asked.text is not None
    for model in question.waiting:
        embedder = runtime.formers.get(model)
        more = (
            Embedded(degraded=("similarity",)) if embedder is None else _embed(embedder, question.asked.text)
        )
        question = replace(
            question,
            vectors=(*question.vectors, *more.vectors),
            degraded=tuple(dict.fromkeys((*question.degraded, *more.degraded))),
        )
    return replace(question, waiting=())


def prepared(
    connection: Connection,
    runtime: Runtime,
    row: ScopeRow,
    asked: RecallQuery,
    embedded: Embedded,
    *,
    session: str | None,
    spare: int = 0,
) -> Question:
    """Everything but the search itself; ``session`` is the one that is going on. Raises `NotFound` for an unknown
    session that is asked for."""
    plan_anew(connection)
    policy = parse_policy(row.policy)
    words = terms(subject_of(asked.text)) if asked.text else {}
    known = scope_facts.about(
        connection,
        row.id,
        row.visible,
        terms=keyword_weights(words) if words else (),
        entity_keys=[f"{kind}:{name}" for name in _names(asked.text) for kind in ENTITY_TYPES],
        sessions=[name for name in (asked.session, session) if name is not None],
    )
    if asked.session is not None and asked.session not in known.sessions:
        raise NotFound(f"session: no session {asked.session!r} here", field="session")
    tiers = _tiers(asked)
    speakers = _named(asked.text, known.speakers) if asked.text else ()
    about = known.entities
    return Question(
        asked=asked,
        row=row,
        policy=policy,
        known=known,
        weights=_weights(runtime, policy, asked, speakers),
        same=runtime.embedder.thresholds.same,
        tiers=tiers,
        current_session=session,
        words=words,
        vectors=embedded.vectors,
        keywords=query_weights(words, known.counts, known.rows),
        anchors=anchor_terms(known.counts, known.rows),
        speakers=speakers,
        entities=cards.named(connection, row.visible, about) if about else (),
        mentioning=scope_facts.mentioning(connection, row.visible, about)
        if about and Tier.FACTS in tiers
        else {},
        periods=_periods(asked.text, known.now, row.time_zone) if asked.text else (),
        waiting=_waiting(runtime, known) if asked.text else (),
        degraded=embedded.degraded,
        spare=spare,
    )


def weights_of(preset: str, policy: Policy) -> Weights:
    """The preset's weights with the agent's own in place of those it overrides."""
    return replace(PRESETS[preset], **dict(policy.weights))


def _weights(runtime: Runtime, policy: Policy, asked: RecallQuery, speakers: Sequence[str]) -> Weights:
    weights = weights_of(asked.preset or policy.preset or runtime.settings.recall.preset, policy)
    wants = expected_traits(asked.text or "")
    weights = replace(weights, **{SIGNALS[trait]: 0.0 for trait in ON_DEMAND if trait not in wants})
    if is_overview(asked.text or ""):
        # What is to be done from now on is no part of how things went.
        weights = replace(weights, standing=0.0)
    if speakers and not is_first_person(asked.text or ""):
        # The question is about somebody by name, who may be on either side: being the user is no sign then.
        weights = replace(weights, user_role=0.0)
    if asked.expand_graph and "linked" not in policy.weights:
        weights = replace(weights, linked=LINKED_WEIGHT)
    return weights


def _tiers(asked: RecallQuery) -> tuple[Tier, ...]:
    tiers = asked.tiers or tuple(Tier)
    if any(getattr(asked, name) is not None for name in _FACT_FILTERS):
        tiers = tuple(tier for tier in tiers if tier is Tier.FACTS)
    return tiers


def _embed(embedder: Embedder, said: str) -> Embedded:
    # Code counts as little here as in what was embedded of the turns.
    sought = prose(subject_of(said))
    try:
        return Embedded((QueryVector(embedder.model, embed_queries(embedder, [sought])[0].tolist()),))
    except Transient as error:
        log.warning("recall_without_vectors", model=embedder.model, error=error.kind)
    except MemoryAppError as error:
        log.error("recall_without_vectors", model=embedder.model, error=error.kind)
    return Embedded(degraded=("similarity",))


def _waiting(runtime: Runtime, known: Known) -> tuple[str, ...]:
    models = dict.fromkeys(row.model for row in known.models)
    return tuple(model for model in models if model != runtime.embedder.model)


def _names(query: str | None) -> list[str]:
    """What may be the slug of an entity's name: runs of up to `NAME_WORDS` words of the query."""
    if query is None:
        return []
    found: dict[str, None] = {}
    for said in dict.fromkeys((_POSSESSIVE.sub("", query), query)):
        words = _slug_words(said)
        for start in range(len(words)):
            for length in range(1, NAME_WORDS + 1):
                name = "_".join(words[start : start + length])
                if start + length <= len(words) and name not in STOP_WORDS:
                    found[name] = None
            if len(found) >= NAMES_LIMIT:
                return list(found)
    return list(found)


def _slug_words(said: str) -> list[str]:
    try:
        return slug(said).split("_")
    except InvalidInput:
        return []


def _named(query: str, known: Sequence[str]) -> tuple[str, ...]:
    """The speakers of the scope that the query names, by full or first name."""
    asked = set(_words(query))
    named = []
    for speaker in known:
        parts = _words(speaker)
        if parts and (parts[0] in asked or set(parts) <= asked):
            named.append(speaker)
    return tuple(named)


def _words(said: str) -> list[str]:
    return re.findall(r"\w+", normalise(said))


def _periods(query: str, now: datetime, zone_name: str) -> tuple[tuple[datetime, datetime], ...]:
    """The times that the query names in relation to now ("yesterday", "last March"), as instants.

    A date with its year is among the words of what was said then, and found by them: weighing it again lowered recall.
    """
    zone = zone_of(zone_name)
    clear = [
        found
        for found in resolve_dates(query, now, zone=zone)
        if found.precision not in _UNCLEAR and not _YEAR.search(query[slice(*found.span)])
    ]
    try:
        return tuple((_midnight(found.start, zone), _midnight(found.end, zone)) for found in clear)
    except OverflowError:  # the first or last day a calendar can hold
        return ()


def _midnight(day: date, zone: ZoneInfo) -> datetime:
    return datetime.combine(day, time(), tzinfo=zone).astimezone(UTC)


def in_periods(at: datetime, periods: Sequence[tuple[datetime, datetime]]) -> bool:
    return bool(periods) and any(start <= at < until for start, until in periods)


def horizon(question: Question, runtime: Runtime) -> datetime:
    """Turns accepted before it are searched no more."""
    return question.now - timedelta(days=runtime.settings.index.daily_log_days)
