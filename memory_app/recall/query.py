"""A query made ready for the search: cleaned and checked, embedded, and read against what its scope knows.

Who is named, which entities and times are meant, which words are rare. What cannot be had is left out and named.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import chain
from uuid import UUID

import structlog
from sqlalchemy import Connection

from memory_app.db.db import plan_anew
from memory_app.db.shards import at_home
from memory_app.errors import InvalidInput, MemoryAppError, NotFound, Transient
from memory_app.language.keywords import anchor_terms, full_match, keyword_weights, query_weights
from memory_app.language.sentence_type import ON_DEMAND, SIGNALS, asks_assistant, expected_traits
from memory_app.language.text import PERSONS, STOP_WORDS, is_first_person, normalise, prose, slug, terms
from memory_app.memories.rows import cards
from memory_app.memories.rows.cards import EntityCard
from memory_app.providers.embedders import Embedder, embed_queries
from memory_app.recall.overview import is_overview, subject_of
from memory_app.recall.phrases import Phrases, phrases_of
from memory_app.recall.query_times import named_periods, without_dates
from memory_app.recall.records import RecallQuery, checked_query
from memory_app.recall.rows import scope_facts
from memory_app.recall.rows.scope_facts import ScopeFacts
from memory_app.recall.rows.search import IndexedScope, QueryVector
from memory_app.records.records import ENTITY_TYPES, Tier
from memory_app.records.scoring import LINKED_WEIGHT, PRESETS, Weights
from memory_app.runtime import Runtime
from memory_app.tenancy.policy import Policy, parse_policy
from memory_app.tenancy.rows import names
from memory_app.tenancy.rows.names import ScopeRow

log = structlog.get_logger(__name__)

NAME_WORDS = 4
"""Most words of an entity's name that is looked for in a query."""

NAMES_LIMIT = 300
"""Names looked for in one query; a message of many pages names what it is about early."""

_FACT_FILTERS = ("kinds", "subtypes", "tags", "min_importance")
"""Filters that only memories have: asked for them, recall looks through nothing else."""

_POSSESSIVE = re.compile(r"['’]s\b")


@dataclass(frozen=True, slots=True)
class QueryVectors:
    """The vectors of a query's text, and what is degraded for want of one."""

    vectors: tuple[QueryVector, ...] = ()
    degraded: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ScopedQuery:
    """A query with what its scope knows of it: all that a search needs.

    ``repeat_cosine`` is the cosine from which two rows say the same. ``missing_models`` are models of rows that the
    query has no vector of yet (see `embed_missing`). ``full_match`` is the keyword score of a row with every word of
    the query. ``mentioning`` are weights of memories about entities of the query, ``periods`` the times it names,
    half-open. ``spare`` rows of the limit make up for turns that the caller shows anyway: that many fewer memories
    are searched. ``further_turns`` is how many turns below the limit the caller has room for. ``shared`` is the same
    query over what all users of the agent share, where that stands in another shard; its ``missing_models`` are those
    of this one, too. ``granted`` are the same over what the person lets the agent recall of what other agents know,
    each with the name of that agent as its ``granted_by``.
    """

    query: RecallQuery
    row: ScopeRow
    policy: Policy
    facts: ScopeFacts
    weights: Weights
    repeat_cosine: float
    tiers: tuple[Tier, ...]
    current_session: str | None
    words: Mapping[str, int]
    phrases: Phrases
    vectors: tuple[QueryVector, ...]
    keywords: dict[int, float]
    full_match: float
    anchors: tuple[tuple[int, ...], ...]
    speakers: tuple[str, ...]
    entities: tuple[EntityCard, ...]
    mentioning: Mapping[UUID, float]
    periods: tuple[tuple[datetime, datetime], ...]
    missing_models: tuple[str, ...]
    degraded: tuple[str, ...]
    spare: int = 0
    further_turns: int = 0
    shared: tuple[ScopedQuery, ...] = ()
    granted: tuple[ScopedQuery, ...] = ()
    granted_by: str | None = None

    @property
    def now(self) -> datetime:
        return self.facts.now

    @property
    def indexed(self) -> tuple[IndexedScope, ...]:
        """Visible scopes with search indexes for every vector of the query that fits rows of theirs."""
        query_models = {vector.model for vector in self.vectors}
        scanned: set[int] = set()
        indexed_models: dict[int, list[str]] = {}
        for row in self.facts.models:
            if row.is_indexed:
                indexed_models.setdefault(row.scope_id, []).append(row.model)
            elif row.model in query_models:
                # Rows of this model are in no index of the scope: only a scan finds them.
                scanned.add(row.scope_id)
        return tuple(
            IndexedScope(scope_id, tuple(models))
            for scope_id, models in indexed_models.items()
            if scope_id not in scanned
        )


def check_query(runtime: Runtime, query: RecallQuery) -> RecallQuery:
    """Check a query by the limits of the settings; see `checked_query`."""
    settings = runtime.settings.recall
    return checked_query(query, limit_most=settings.limit_max, query_limit_chars=settings.query_limit_chars)


def embed_query(runtime: Runtime, text: str | None) -> QueryVectors:
    """Embed a query with the current model; call it with no transaction open."""
    return QueryVectors() if text is None else _embed(runtime.embedder, text)


def embed_missing(runtime: Runtime, scoped: ScopedQuery) -> ScopedQuery:
    """Add the vectors of the query's ``missing_models``; call it with no transaction open.

    Rows keep the model that they were embedded with until the re-embedding reaches them.
    """
    assert scoped.query.text is not None
    vectors, degraded = list(scoped.vectors), list(scoped.degraded)
    for model in scoped.missing_models:
        embedder = runtime.formers.get(model)
        if embedder is None:
            # Of earlier models only the offline ones can be made again; rows of the others are found by their words.
            degraded.append("similarity")
            continue
        more = _embed(embedder, scoped.query.text)
        vectors += more.vectors
        degraded += more.degraded
    complete = replace(
        scoped,
        vectors=tuple(vectors),
        degraded=tuple(dict.fromkeys(degraded)),
        missing_models=(),
    )

    def completed(queries: Sequence[ScopedQuery]) -> tuple[ScopedQuery, ...]:
        return tuple(replace(query, vectors=complete.vectors, missing_models=()) for query in queries)

    return replace(complete, shared=completed(scoped.shared), granted=completed(scoped.granted))


def prepare_query(
    connection: Connection,
    runtime: Runtime,
    row: ScopeRow,
    *,
    query: RecallQuery,
    vectors: QueryVectors,
    session: str | None = None,
    spare: int = 0,
    further_turns: int = 0,
) -> ScopedQuery:
    """Read what the scope knows of a checked query; ``session`` is the one going on, the numbers as in the record.

    Raises `NotFound` for an unknown session that is asked for.
    """
    policy = parse_policy(row.policy)
    text = query.text or ""
    words = _words_of(runtime, policy, query)
    facts = _read_facts(connection, row, query, words=words, session=session)
    tiers = _tiers(query)
    speakers = _named_speakers(text, facts.speakers)
    keywords = query_weights(words, facts.counts, facts.rows)
    entities, mentioning = _about_named(connection, row, facts, tiers=tiers)
    shared = _shared_queries(connection, runtime, row, query=query, vectors=vectors)
    missing_models = _missing_models(runtime, facts) if text else ()
    return ScopedQuery(
        query=query,
        row=row,
        policy=policy,
        facts=facts,
        weights=_weights(runtime, policy, query=query, speakers=speakers),
        repeat_cosine=runtime.embedder.thresholds.same,
        tiers=tiers,
        current_session=session,
        words=words,
        phrases=phrases_of(words, keywords, without=PERSONS | terms(" ".join(speakers)).keys()),
        vectors=vectors.vectors,
        keywords=keywords,
        full_match=full_match(words, facts.counts, facts.rows),
        anchors=anchor_terms(facts.counts, facts.rows),
        speakers=speakers,
        entities=entities,
        mentioning=mentioning,
        periods=named_periods(text, facts.now, row.time_zone),
        missing_models=tuple(
            dict.fromkeys(chain(missing_models, *(other.missing_models for other in shared)))
        ),
        degraded=vectors.degraded,
        spare=spare,
        further_turns=further_turns,
        shared=shared,
    )


def _words_of(runtime: Runtime, policy: Policy, query: RecallQuery) -> Mapping[str, int]:
    text = query.text or ""
    # Where time has no weight, the date is found by its words: that of a turn is among those of the turn.
    has_time = _chosen_weights(runtime, policy, query)["in_time"] != 0
    return terms(subject_of(without_dates(text) if has_time else text))


def _read_facts(
    connection: Connection,
    row: ScopeRow,
    query: RecallQuery,
    *,
    words: Mapping[str, int],
    session: str | None,
) -> ScopeFacts:
    """What the scope knows of the query; from then on a large scope's statements are planned anew."""
    # The type of what the query names is not known, so each name is looked up as every type.
    entity_keys = [f"{type}:{name}" for name in _names(query.text or "") for type in ENTITY_TYPES]
    facts = scope_facts.read(
        connection,
        row.id,
        row.visible,
        terms=keyword_weights(words),
        entity_keys=entity_keys,
        sessions=[name for name in (query.session, session) if name is not None],
    )
    if query.session is not None and query.session not in facts.sessions:
        raise NotFound(f"session: no session {query.session!r} here", field="session")
    if facts.is_large:
        plan_anew(connection)
    return facts


def _about_named(
    connection: Connection, row: ScopeRow, facts: ScopeFacts, *, tiers: Sequence[Tier]
) -> tuple[tuple[EntityCard, ...], Mapping[UUID, float]]:
    """Cards of the entities that the query names, and the memories that mention them."""
    entities: tuple[EntityCard, ...] = ()
    mentioning: Mapping[UUID, float] = {}
    # Two more round trips: each only where something is made of it.
    if facts.entities and Tier.ENTITIES in tiers:
        entities = cards.named(connection, row.visible, facts.entities)
    if facts.entities and Tier.FACTS in tiers:
        mentioning = scope_facts.mentioning(connection, row.visible, facts.entities)
    return entities, mentioning


def _shared_queries(
    connection: Connection, runtime: Runtime, row: ScopeRow, *, query: RecallQuery, vectors: QueryVectors
) -> tuple[ScopedQuery, ...]:
    # What is shared belongs to no session.
    if not row.shared or query.session is not None:
        return ()
    with at_home(connection) as home:
        rows = [names.read_scope(home, scope_id) for scope_id in row.shared]
        return tuple(
            prepare_query(home, runtime, shared, query=query, vectors=vectors)
            for shared in rows
            if shared is not None
        )


def _weights(runtime: Runtime, policy: Policy, *, query: RecallQuery, speakers: Sequence[str]) -> Weights:
    text = query.text or ""
    weights = _chosen_weights(runtime, policy, query)
    expected = expected_traits(text)
    for trait in ON_DEMAND:
        if trait not in expected:
            # A trait without a weight gets no clause in the statement, which saves time for each row.
            weights[SIGNALS[trait]] = 0.0
    if is_overview(text):
        # An instruction for the future is no part of how things went.
        weights["standing"] = 0.0
    if speakers and not is_first_person(text):
        # The query is about somebody by name, who may be on either side: being the user is no sign then.
        weights["user_role"] = 0.0
    if asks_assistant(text):
        # What the assistant said is asked for; by default the user's own words come first.
        weights["user_role"] = -abs(weights["user_role"])
        # How people talk says nothing of an assistant, which answers every turn and always speaks to the user.
        weights |= dict.fromkeys(("answers", "addresses", "second_neighbour_keyword"), 0.0)
    if query.expand_graph and "linked" not in policy.weights:
        # Only `balanced` gives a link a weight, and without one the linked memories could not come up.
        weights["linked"] = LINKED_WEIGHT
    # What the caller weighs for this query is not second-guessed.
    return {**weights, **_called_weights(query)}


def _chosen_weights(runtime: Runtime, policy: Policy, query: RecallQuery) -> dict[str, float]:
    """The weights of the preset, with those that the agent and the call override."""
    preset = query.preset or policy.preset or runtime.settings.recall.preset
    return {**PRESETS[preset], **policy.weights, **_called_weights(query)}


def _called_weights(query: RecallQuery) -> Weights:
    """The weights that the call itself names; null leaves one as it is."""
    weights = query.weights or {}
    return {name: weight for name, weight in weights.items() if weight is not None}


def _tiers(query: RecallQuery) -> tuple[Tier, ...]:
    tiers = query.tiers or tuple(Tier)
    has_fact_filter = any(getattr(query, name) is not None for name in _FACT_FILTERS)
    if not has_fact_filter:
        return tiers
    return tuple(tier for tier in tiers if tier is Tier.FACTS)


def _embed(embedder: Embedder, text: str) -> QueryVectors:
    # Code is left out here as it is when turns are embedded.
    subject = prose(subject_of(without_dates(text)))
    try:
        vector = embed_queries(embedder, [subject])[0].tolist()
        return QueryVectors((QueryVector(embedder.model, vector),))
    except Transient as error:
        log.warning("recall_without_vectors", model=embedder.model, error=error.kind)
    except MemoryAppError as error:
        log.error("recall_without_vectors", model=embedder.model, error=error.kind)
    return QueryVectors(degraded=("similarity",))


def _missing_models(runtime: Runtime, facts: ScopeFacts) -> tuple[str, ...]:
    models = dict.fromkeys(row.model for row in facts.models)
    return tuple(model for model in models if model != runtime.embedder.model)


def _names(query: str) -> list[str]:
    """Return possible slugs of entity names: runs of up to `NAME_WORDS` words of the query."""
    names: dict[str, None] = {}
    # "Anna's" is about Anna, "McDonald's" is a name as it stands: both readings are looked up.
    for text in dict.fromkeys((_POSSESSIVE.sub("", query), query)):
        words = _slug_words(text)
        for start in range(len(words)):
            longest = min(NAME_WORDS, len(words) - start)
            for length in range(1, longest + 1):
                name = "_".join(words[start : start + length])
                if name not in STOP_WORDS:
                    names[name] = None
            if len(names) >= NAMES_LIMIT:
                return list(names)
    return list(names)


def _slug_words(text: str) -> list[str]:
    try:
        return slug(text).split("_")
    except InvalidInput:
        # A text without a letter or digit names nobody.
        return []


def _named_speakers(query: str, speakers: Sequence[str]) -> tuple[str, ...]:
    """Return the speakers of the scope that the query names, by full or first name."""
    query_words = set(_words(query))
    names = []
    for speaker in speakers:
        words = _words(speaker)
        # The first name is enough: a query with the full name contains it.
        if words and words[0] in query_words:
            names.append(speaker)
    return tuple(names)


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", normalise(text))


def horizon(scoped: ScopedQuery) -> datetime | None:
    """Return the time before which accepted turns are not searched, whatever is stored of them; None: there is none."""
    days = scoped.policy.daily_log_limit_days
    return None if days is None else scoped.now - timedelta(days=days)
