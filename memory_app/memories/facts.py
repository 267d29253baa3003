"""Facts in time: add one by hand, ask what holds, what held and what was known, and search among them.

A fact goes through the one write path like every statement. Two axes: ``as_of`` asks when something holds,
``known_at`` what we had been told by then; both at once ask what we then believed about that time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from sqlalchemy import Connection

from memory_app.db import clock
from memory_app.db.db import transaction
from memory_app.errors import InvalidInput
from memory_app.language.keywords import keyword_weights, query_weights
from memory_app.language.text import clean_given, slug, terms
from memory_app.memories.fact_ends import SUBJECT_TYPE, object_type, sentence
from memory_app.memories.merge_rules import slugs_of
from memory_app.memories.relations import normalise_relation
from memory_app.memories.remember import Remembered, remember, slug_of
from memory_app.memories.rows import entities, facts
from memory_app.memories.rows import terms as term_store
from memory_app.memories.rows.facts import FactHit, FactProbe
from memory_app.providers.embedders.embedder import embed_queries
from memory_app.records.entity import LABEL_LIMIT
from memory_app.records.records import ENTITY_TYPES, Mention, Statement
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.tenancy.redaction import with_redaction_of
from memory_app.tenancy.rows import names
from memory_app.tenancy.shards import in_scopes_shard

LIMIT_MAX = 500
QUERY_LIMIT = 8_000
"""Longest text to search for, in characters."""


class Match(StrEnum):
    """How a text finds facts: by its words, or by what it means."""

    KEYWORD = "keyword"
    MEANING = "meaning"


@dataclass(frozen=True, slots=True)
class FactQuery:
    """Which facts are wanted; without any part, those that hold now.

    ``as_of`` asks for those that held then, ``known_at`` for what was known then (and, without ``as_of``, held then).
    ``history`` asks for every interval of a ``subject``. ``text`` searches, by ``match``; ``floor`` leaves out what is
    less similar than the embedder's hard floor. ``before`` is the last id of the page before.
    """

    subject: str | None = None
    relation: str | None = None
    object: str | None = None
    as_of: datetime | None = None
    known_at: datetime | None = None
    history: bool = False
    text: str | None = None
    match: Match = Match.MEANING
    floor: bool = False
    limit: int = 50
    before: UUID | None = None


@dataclass(frozen=True, slots=True)
class _Keys:
    """A query made ready: slugs of the subject and of the object, the normalised relation."""

    subject: str | None
    relation: str | None
    object: str | None


@in_scopes_shard
def add_fact(
    runtime: Runtime,
    tenant_id: int,
    scope: Scope,
    *,
    statement: Statement,
    subject_type: str | None = None,
    object_type: str | None = None,
    deduplicate: bool = True,
    shared: bool = False,
) -> Remembered:
    """Store a fact with subject, relation and object; entities are made of both ends where there are none yet.

    A ``statement`` without a text is given one. The types name what a new entity is; a known one keeps its own.
    Raises `InvalidInput` naming the part that is missing, and as `remember` does.
    """
    _check_parts(statement)
    _check_type(subject_type, "subject_type")
    _check_type(object_type, "object_type")
    parts = (statement.subject, statement.relation, statement.object)
    text = statement.text if statement.text.strip() else sentence(*(str(part).strip() for part in parts))
    slugs = filter(None, (slug_of(statement.subject, "subject"), slug_of(statement.object, "object")))
    with transaction(runtime.engine, tenant_id) as connection:
        row = names.find_scope(connection, tenant_id, scope)
        types = {} if row is None else entities.types_of(connection, [row.id], list(slugs))
    mentions = _ends(statement, types, subject_type=subject_type, object_type_given=object_type)
    complete = replace(statement, kind=facts.KIND, text=text, mentions=(*statement.mentions, *mentions))
    return remember(runtime, tenant_id, scope, statement=complete, deduplicate=deduplicate, shared=shared)


def _check_parts(statement: Statement) -> None:
    for field in ("subject", "relation", "object"):
        value = getattr(statement, field)
        # Cleaned before it is looked at, since characters that cannot be seen are no name.
        if value is None or not clean_given(value, field=field)[0].strip():
            raise InvalidInput(f"{field}: a fact needs subject, relation and object", field=field)


def _check_type(type: str | None, field: str) -> None:
    if type not in (None, *ENTITY_TYPES):
        raise InvalidInput(f"{field}: one of {', '.join(ENTITY_TYPES)}", field=field)


@in_scopes_shard
def find_facts(runtime: Runtime, tenant_id: int, scope: Scope, *, query: FactQuery) -> tuple[FactHit, ...]:
    """The facts of the scope, the agent's own included, that fit the query. Embeds a text that is searched by meaning.

    Without a text: newest first, or with ``history`` by relation and in the order of time. Raises `InvalidInput`
    naming the field.
    """
    keys, text = _checked(query)
    vector: list[float] | None = None
    if text is not None and query.match is Match.MEANING:
        # Before the transaction, since none is open while a provider is called.
        embedder = with_redaction_of(runtime, tenant_id, scope.agent).embedder
        vector = embed_queries(embedder, [text])[0].tolist()
    with transaction(runtime.engine, tenant_id) as connection:
        row = names.need_scope(connection, tenant_id, scope)
        # No cosine is below −1, so that one lets everything through.
        floor = runtime.embedder.thresholds.fact_floor if query.floor else -1.0
        meaning = None if vector is None else _Meaning(vector, runtime.embedder.model, floor)
        hits = names.over_visible(
            connection,
            row,
            lambda place, scopes: _find(place, scopes, query=query, keys=keys, text=text, meaning=meaning),
            order=_by_relation_and_time if query.history else _best_or_newest,
        )
    return hits[: query.limit]


@dataclass(frozen=True, slots=True)
class _Meaning:
    """A text as a vector of a model; ``floor`` is the lowest cosine of a hit."""

    vector: list[float]
    model: str
    floor: float


def _find(
    connection: Connection,
    scope_ids: tuple[int, ...],
    *,
    query: FactQuery,
    keys: _Keys,
    text: str | None,
    meaning: _Meaning | None,
) -> tuple[FactHit, ...]:
    probe = _probe(connection, scope_ids, query=query, keys=keys)
    if query.history:
        return facts.history(connection, probe)
    if text is None:
        return facts.newest(connection, probe)
    if meaning is None:
        words = terms(text)
        counts, total = term_store.document_counts(connection, scope_ids, keyword_weights(words))
        return facts.by_keyword(connection, probe, keywords=query_weights(words, counts, total))
    return facts.by_meaning(
        connection, probe, vector=meaning.vector, model=meaning.model, floor=meaning.floor
    )


def _best_or_newest(hit: FactHit) -> tuple[float, int]:
    # Without a text there is no score, and the newest come first.
    return (-(hit.score or 0.0), -hit.memory.id.int)


def _by_relation_and_time(hit: FactHit) -> tuple[bool, str, datetime, UUID]:
    memory = hit.memory
    return (memory.relation is None, memory.relation or "", memory.valid_from, memory.id)


def _checked(query: FactQuery) -> tuple[_Keys, str | None]:
    """The keys and the cleaned text, or `InvalidInput`: what is empty or contradicts itself is never "everything"."""
    _check_zone(query.as_of, "as_of")
    _check_zone(query.known_at, "known_at")
    if not 1 <= query.limit <= LIMIT_MAX:
        raise InvalidInput(f"limit: 1 to {LIMIT_MAX}", field="limit")
    if query.history:
        _check_history(query)
    if query.floor and (query.text is None or query.match is not Match.MEANING):
        raise InvalidInput("floor: goes with a query by meaning", field="floor")
    relation = None if query.relation is None else normalise_relation(query.relation)
    if relation == "":
        raise InvalidInput("relation: needs at least one letter or digit", field="relation")
    keys = _Keys(
        subject=slug_of(query.subject, "subject"),
        relation=relation,
        object=slug_of(query.object, "object"),
    )
    return keys, _searched(query)


def _check_zone(at: datetime | None, field: str) -> None:
    if at is not None and at.utcoffset() is None:
        raise InvalidInput(f"{field}: a time needs its zone, as in 2026-01-31T09:00:00+01:00", field=field)


def _check_history(query: FactQuery) -> None:
    if query.subject is None:
        raise InvalidInput("subject: name whose history is wanted", field="subject")
    for field, value in (("as_of", query.as_of), ("query", query.text)):
        if value is not None:
            raise InvalidInput(
                f"{field}: history is over all times and in order; leave one of them out", field=field
            )


def _searched(query: FactQuery) -> str | None:
    if query.text is None:
        return None
    text = clean_given(query.text, field="query")[0].strip()
    if not text:
        raise InvalidInput("query: empty; say what to look for, or leave it out", field="query")
    if len(text) > QUERY_LIMIT:
        raise InvalidInput(f"query: at most {QUERY_LIMIT} characters", field="query")
    # "the" has no terms: by keyword it would find nothing, whatever is stored.
    if query.match is Match.KEYWORD and not terms(text):
        raise InvalidInput("query: holds no word to search for; search by meaning instead", field="query")
    return text


def _probe(connection: Connection, scope_ids: tuple[int, ...], *, query: FactQuery, keys: _Keys) -> FactProbe:
    heirs = entities.heirs_by_alias(connection, scope_ids)
    # What was known at a date is asked of that date, unless another is named; now is the database's.
    as_of = query.as_of or query.known_at or clock.now(connection)
    return FactProbe(
        scope_ids=scope_ids,
        limit=query.limit,
        as_of=None if query.history else as_of,
        known_at=query.known_at,
        # No slug is no condition, which the statement takes as NULL.
        subject_keys=tuple(slugs_of(keys.subject, heirs)) or None,
        relation=keys.relation,
        object_keys=tuple(slugs_of(keys.object, heirs)) or None,
        before=query.before,
    )


def _ends(
    statement: Statement,
    types: Mapping[str, str],
    *,
    subject_type: str | None,
    object_type_given: str | None,
) -> tuple[Mention, ...]:
    """The entities at both ends; a plain value (an age, an address) is none unless the caller names its type."""
    subject, obj, relation = str(statement.subject), str(statement.object), str(statement.relation)
    # The caller's word first, then what is known of the entity, then what such facts are mostly about.
    about = subject_type or types.get(slug(subject)) or SUBJECT_TYPE
    mentions = [Mention(about, subject)]
    leads_to = object_type_given or object_type(normalise_relation(relation))
    if leads_to is not None:
        mentions.append(Mention(object_type_given or types.get(slug(obj)) or leads_to, obj))
    # A sentence as an object is no name; the fact is stored all the same.
    return tuple(mention for mention in mentions if len(mention.label) <= LABEL_LIMIT)
