"""Facts in time: add one by hand, ask what holds, what held and what was known, and search among them.

A fact goes through the one write path like every statement. Two axes: ``as_of`` asks when something holds,
``known_at`` what we had been told by then; both at once ask what we then believed about that time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from memory_app.memories.relations import normalise_relation
from memory_app.memories.remember import Remembered, remember
from memory_app.memories.rows import entities, facts
from memory_app.memories.rows import terms as term_store
from memory_app.memories.rows.facts import FactHit, FactProbe
from memory_app.providers.embedders.embedder import embed_queries
from memory_app.records.entity import LABEL_LIMIT
from memory_app.records.records import ENTITY_TYPES, Mention, Statement
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.tenancy.rows import names
from memory_app.tenancy.rows.names import ScopeRow

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


def add_fact(
    runtime: Runtime,
    tenant_id: int,
    scope: Scope,
    *,
    statement: Statement,
    subject_type: str | None = None,
    object_type: str | None = None,
    deduplicate: bool = True,
) -> Remembered:
    """Store a fact with subject, relation and object; entities are made of both ends where there are none yet.

    A ``statement`` without a text is given one. The types name what a new entity is; a known one keeps its own.
    Raises `InvalidInput` naming the part that is missing, and as `remember` does.
    """
    for field in ("subject", "relation", "object"):
        value = getattr(statement, field)
        if value is None or not clean_given(value, field=field)[0].strip():
            raise InvalidInput(f"{field}: a fact needs subject, relation and object", field=field)
    for field, type in (("subject_type", subject_type), ("object_type", object_type)):
        if type is not None and type not in ENTITY_TYPES:
            raise InvalidInput(f"{field}: one of {', '.join(ENTITY_TYPES)}", field=field)
    text = statement.text if statement.text.strip() else _sentence(statement)
    slugs = _slugs(statement)
    with transaction(runtime.engine, tenant_id) as connection:
        row = names.find_scope(connection, tenant_id, scope)
        types = {} if row is None else entities.types_of(connection, [row.id], slugs)
    mentions = _ends(statement, types, subject_type=subject_type, object_type_given=object_type)
    complete = replace(statement, kind=facts.KIND, text=text, mentions=(*statement.mentions, *mentions))
    return remember(runtime, tenant_id, scope, statement=complete, deduplicate=deduplicate)


def find_facts(runtime: Runtime, tenant_id: int, scope: Scope, *, query: FactQuery) -> tuple[FactHit, ...]:
    """The facts of the scope, the agent's own included, that fit the query. Embeds a text that is searched by meaning.

    Without a text: newest first, or with ``history`` by relation and in the order of time. Raises `InvalidInput`
    naming the field.
    """
    keys, text = _checked(query)
    is_meaning = text is not None and query.match is Match.MEANING
    vector = embed_queries(runtime.embedder, [text])[0].tolist() if text is not None and is_meaning else None
    with transaction(runtime.engine, tenant_id) as connection:
        row = names.need_scope(connection, tenant_id, scope)
        probe = _probe(connection, row, query, keys)
        if query.history:
            return facts.history(connection, probe)
        if text is None:
            return facts.newest(connection, probe)
        if vector is None:
            words = terms(text)
            counts, total = term_store.document_counts(connection, row.visible, keyword_weights(words))
            return facts.by_keyword(connection, probe, keywords=query_weights(words, counts, total))
        floor = runtime.embedder.thresholds.fact_floor if query.floor else -1.0
        return facts.by_meaning(connection, probe, vector=vector, model=runtime.embedder.model, floor=floor)


def _checked(query: FactQuery) -> tuple[_Keys, str | None]:
    """The keys and the cleaned text, or `InvalidInput`: what is empty or contradicts itself is never "everything"."""
    for field, at in (("as_of", query.as_of), ("known_at", query.known_at)):
        if at is not None and at.utcoffset() is None:
            raise InvalidInput(
                f"{field}: a time needs its zone, as in 2026-01-31T09:00:00+01:00", field=field
            )
    if not 1 <= query.limit <= LIMIT_MAX:
        raise InvalidInput(f"limit: 1 to {LIMIT_MAX}", field="limit")
    if query.history and query.subject is None:
        raise InvalidInput("subject: name whose history is wanted", field="subject")
    if query.history and (query.as_of is not None or query.text is not None):
        field = "as_of" if query.as_of is not None else "query"
        raise InvalidInput(
            f"{field}: history is over all times and in order; leave one of them out", field=field
        )
    if query.floor and (query.text is None or query.match is not Match.MEANING):
        raise InvalidInput("floor: goes with a query by meaning", field="floor")
    relation = None if query.relation is None else normalise_relation(query.relation)
    if relation == "":
        raise InvalidInput("relation: needs at least one letter or digit", field="relation")
    return _Keys(_slug(query.subject, "subject"), relation, _slug(query.object, "object")), _searched(query)


def _searched(query: FactQuery) -> str | None:
    if query.text is None:
        return None
    said = clean_given(query.text, field="query")[0].strip()
    if not said:
        raise InvalidInput("query: empty; say what to look for, or leave it out", field="query")
    if len(said) > QUERY_LIMIT:
        raise InvalidInput(f"query: at most {QUERY_LIMIT} characters", field="query")
    if query.match is Match.KEYWORD and not terms(said):
        raise InvalidInput("query: holds no word to search for; search by meaning instead", field="query")
    return said


def _probe(connection: Connection, row: ScopeRow, query: FactQuery, keys: _Keys) -> FactProbe:
    same = entities.heirs_by_alias(connection, row.visible)
    as_of = query.as_of or query.known_at or clock.now(connection)
    return FactProbe(
        scope_ids=row.visible,
        limit=query.limit,
        as_of=None if query.history else as_of,
        known_at=query.known_at,
        subject_keys=_family(keys.subject, same),
        relation=keys.relation,
        object_keys=_family(keys.object, same),
        before=query.before,
    )


def _family(key: str | None, same: Mapping[str, str]) -> tuple[str, ...] | None:
    """All slugs under which the thing is known: its own and its aliases'."""
    if key is None:
        return None
    heir = same.get(key, key)
    return (heir, *(alias for alias, of in same.items() if of == heir))


def _slug(value: str | None, field: str) -> str | None:
    if value is None:
        return None
    try:
        return slug(value)
    except InvalidInput as error:
        raise InvalidInput(f"{field}: needs at least one letter or digit", field=field) from error


def _slugs(statement: Statement) -> Sequence[str]:
    return [key for key in (_slug(statement.subject, "subject"), _slug(statement.object, "object")) if key]


def _sentence(statement: Statement) -> str:
    subject, relation, obj = (
        str(part).strip() for part in (statement.subject, statement.relation, statement.object)
    )
    return sentence(subject, relation, obj)


def _ends(
    statement: Statement,
    types: Mapping[str, str],
    *,
    subject_type: str | None,
    object_type_given: str | None,
) -> tuple[Mention, ...]:
    """The entities at both ends; a plain value (an age, an address) is none unless the caller names its type."""
    subject, obj, relation = str(statement.subject), str(statement.object), str(statement.relation)
    leads_to = object_type_given or object_type(normalise_relation(relation))
    about = subject_type or types.get(slug(subject)) or SUBJECT_TYPE
    mentions = [Mention(about, subject)]
    if leads_to is not None:
        mentions.append(Mention(object_type_given or types.get(slug(obj)) or leads_to, obj))
    return tuple(mention for mention in mentions if len(mention.label) <= LABEL_LIMIT)
