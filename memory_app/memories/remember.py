"""Remember: the one write path. Every statement, from any door, is prepared, judged by the ladder and written here.

`prepare` cleans and embeds with no transaction open. `write` runs inside the caller's transaction, under the lock on
the scope's row, so that two writers of one scope see each other's rows and effects join the caller's progress.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import chain
from uuid import UUID

import structlog
from sqlalchemy import Connection

from memory_app import correlation, metrics
from memory_app.db.db import transaction
from memory_app.errors import InvalidInput, MemoryAppError, NotFound, Transient
from memory_app.hot import cache
from memory_app.jobs import schedule
from memory_app.language.framing import unframed
from memory_app.language.keywords import keyword_weights
from memory_app.language.redaction import Redaction
from memory_app.language.text import canonical_key, slug, terms
from memory_app.memories import capacity, ladder
from memory_app.memories.entity_names import KnownEntity
from memory_app.memories.forbidden import check_allowed
from memory_app.memories.ladder import Candidate
from memory_app.memories.ladder_writer import Place, Prepared, Vector, Writer
from memory_app.memories.mentions import named_text, new_entities
from memory_app.memories.merge_rules import heir_of, slugs_of
from memory_app.memories.people import display_names
from memory_app.memories.redacted import redacted_statement
from memory_app.memories.relations import Relation, ended_relations, relation_of
from memory_app.memories.rows import entities, fading, memories
from memory_app.memories.rows import neighbours as store_neighbours
from memory_app.memories.rows.neighbours import Comparison, Footing
from memory_app.records.importance import stored_importance
from memory_app.records.kinds import kind_of
from memory_app.records.records import Origin, Outcome, Statement
from memory_app.records.scope import Scope
from memory_app.records.statement import CLOCK_MARGIN, checked_statement
from memory_app.runtime import Runtime
from memory_app.tenancy import quotas
from memory_app.tenancy.policy import ExtractionMode, Policy, parse_policy
from memory_app.tenancy.redaction import with_redaction
from memory_app.tenancy.rows import names
from memory_app.tenancy.rows.names import ScopeRow
from memory_app.tenancy.shards import in_scopes_shard

__all__ = [
    "DERIVED",
    "Place",
    "Prepared",
    "Remembered",
    "drop_context",
    "needs_seed",
    "prepare",
    "remember",
    "seed",
    "slug_of",
    "thresholds_of",
    "write",
    "write_all",
]

log = structlog.get_logger(__name__)

DERIVED = (Origin.EXTRACTED, Origin.SYNTHESIZED)
"""Origins of what was made of something else, and goes with it."""

Reader = Callable[[Statement, ScopeRow], Statement]
"""Completes a statement by what its words say; the scope tells who "I" is. Calls no model."""

NEVER = 2.0
"""A cosine that no two texts reach."""


@dataclass(frozen=True, slots=True)
class Remembered:
    """What became of a statement. ``merged_count`` counts the rows it replaced; ``notes`` say what was changed."""

    id: UUID
    outcome: Outcome
    merged_count: int = 0
    notes: tuple[str, ...] = ()


@in_scopes_shard
def remember(
    runtime: Runtime,
    tenant_id: int,
    scope: Scope,
    *,
    statement: Statement,
    deduplicate: bool = True,
    shared: bool = False,
    read: Reader | None = None,
) -> Remembered:
    """Store one statement in the scope; the answer says what was done with it. Embeds; calls no language model.

    Without a user it is shown to all users of the agent: only what is about the agent itself may be stored so, other
    kinds where ``shared`` says that this is meant. ``read`` finds the fact in a statement of words.
    Raises `InvalidInput` naming the field, `StoreUnavailable`, or the embedder's errors; then nothing is stored.
    """
    _check_audience(scope, statement.kind, shared=shared)
    if scope.user is not None:
        quotas.admit_memories(runtime, tenant_id, scope.user)
    with transaction(runtime.engine, tenant_id) as connection:
        row = names.ensure_scope(connection, tenant_id, scope)
        session_id = _session_id(connection, row.id, scope)
    # A new pair starts from the agent's defaults, with which the statement is then compared.
    if needs_seed(row):
        seed(runtime, tenant_id, row.id)
    policy = parse_policy(row.policy)
    if read is not None and policy.extraction is not ExtractionMode.OFF:
        statement = read(statement, row)
    check_allowed(statement, policy)
    # Between two transactions: none is open while the embedder is called.
    (prepared,) = prepare(runtime, [statement], policy=policy)
    place = Place(
        tenant_id,
        row.id,
        session_id=session_id,
        session=scope.session,
        turn_scopes=row.visible,
    )
    with transaction(runtime.engine, tenant_id) as connection:
        names.hold_scope(connection, tenant_id, scope, row.id)
        remembered = write(connection, runtime, place, prepared=prepared, deduplicate=deduplicate)
        capacity.keep_ceiling(
            connection, runtime, tenant_id, scope_id=row.id, policy=policy, written=[remembered.id]
        )
        schedule.wake(connection, runtime, [row.id])
    # After the commit, or a reader could fill the cache again with what was there before.
    drop_context(runtime, row.id)
    metrics.memories.labels(remembered.outcome).inc()
    correlation.note(correlation.MEMORIES, [remembered.id])
    return remembered


def _check_audience(scope: Scope, kind: str, *, shared: bool) -> None:
    if scope.user is None and not shared and not kind_of(kind).about_agent:
        raise InvalidInput(
            f"user: a {kind} without a user would be shown to every user of the agent; name the user, or pass "
            "shared=True if all may see it",
            field="user",
        )


def needs_seed(row: ScopeRow) -> bool:
    """Is it a scope of agent and user that has not got the agent's default memories yet?"""
    return row.user_id is not None and not row.is_seeded


def seed(runtime: Runtime, tenant_id: int, scope_id: int) -> None:
    """Store the agent's default memories in a new scope of agent and user, once."""
    with transaction(runtime.engine, tenant_id) as connection:
        row = names.read_scope(connection, scope_id)
    if row is None or not needs_seed(row):
        return
    # Kept as the fields of statements, so that they take the one write path like any other.
    defaults = [Statement(**fields) for fields in row.default_memories]
    # What the operator wrote for everybody is nobody's private matter.
    policy = replace(parse_policy(row.policy), redaction=Redaction.OFF)
    prepared = prepare(runtime, defaults, policy=policy)
    with transaction(runtime.engine, tenant_id) as connection:
        if not names.lock_scope(connection, tenant_id, scope_id):
            return
        # Read again under the lock: another request may have been faster while the defaults were embedded.
        current = names.read_scope(connection, scope_id)
        if current is None or current.is_seeded:
            return
        note_names(connection, tenant_id, current)
        write_all(connection, runtime, Place(tenant_id, scope_id), prepared=prepared)
        fading.forget_bounds(connection, scope_id)
        names.mark_seeded(connection, scope_id)
    drop_context(runtime, scope_id)


def note_names(connection: Connection, tenant_id: int, row: ScopeRow) -> None:
    """Note the names that the app gave the user of the scope, whose row must be locked: what is told of any of them is
    told of one person."""
    policy = parse_policy(row.policy)
    # In a room each name is a person of its own.
    if row.user is None or policy.group or not policy.entity_extraction:
        return
    user_names = display_names((), row.user, label=row.label, aliases=row.aliases)
    if not user_names:
        return
    entities.note_user(connection, tenant_id, row.id, user=row.user, names=user_names, at=row.now)
    if row.label is not None:
        entities.set_label(connection, row.id, user=row.user, label=row.label)


def prepare(runtime: Runtime, statements: Sequence[Statement], *, policy: Policy) -> tuple[Prepared, ...]:
    """Check, redact, normalise and embed statements; one call to the embedder for all. Opens no transaction."""
    if not statements:
        return ()
    rules = policy.redaction_rules
    checked = [redacted_statement(*checked_statement(statement), rules=rules) for statement in statements]
    # Without "by the way" and the like, which would move the vector and not the meaning.
    embedder = with_redaction(runtime, policy).embedder
    vectors = embedder.embed([unframed(statement.text) for statement, _ in checked])
    return tuple(
        _prepared(statement, vector=vector.tolist(), notes=notes, policy=policy)
        for (statement, notes), vector in zip(checked, vectors, strict=True)
    )


def write(
    connection: Connection,
    runtime: Runtime,
    place: Place,
    *,
    prepared: Prepared,
    deduplicate: bool = True,
) -> Remembered:
    """Judge one statement and write the outcome; see `write_all`."""
    (remembered,) = write_all(connection, runtime, place, prepared=[prepared], deduplicate=deduplicate)
    return remembered


def write_all(
    connection: Connection,
    runtime: Runtime,
    place: Place,
    *,
    prepared: Sequence[Prepared],
    deduplicate: bool = True,
) -> list[Remembered]:
    """Judge statements one after the other and write the outcomes. The scope's row must be locked by this transaction.

    The neighbours of all are read once, before the first is written. Raises `Transient` when a source of one was erased
    meanwhile: it must be derived anew.
    """
    if not prepared:
        return []
    footing = _footing(connection, runtime, place, statements=[item.statement for item in prepared])
    items = [_under_heirs(item, footing.heirs) for item in prepared]
    comparisons = [_comparison(runtime, place, item, heirs=footing.heirs) for item in items]
    # One look for all statements, since the scope's row is locked meanwhile; each is judged by itself below.
    near = store_neighbours.nearest(connection, place.scope_id, comparisons, is_indexed=footing.is_indexed)
    known = _known_entities(connection, place, items)
    return [
        _write(
            connection,
            runtime,
            place=place,
            prepared=item,
            comparison=comparison,
            near=ids,
            footing=footing,
            known=known,
            deduplicate=deduplicate,
        )
        for item, comparison, ids in zip(items, comparisons, near, strict=True)
    ]


def _write(
    connection: Connection,
    runtime: Runtime,
    *,
    place: Place,
    prepared: Prepared,
    comparison: Comparison,
    near: Sequence[UUID],
    footing: Footing,
    known: Sequence[KnownEntity],
    deduplicate: bool,
) -> Remembered:
    candidate = _candidate(prepared, place, footing)
    neighbours = store_neighbours.neighbours(
        connection, place.scope_id, comparison, near=near, heirs=footing.heirs
    )
    thresholds = thresholds_of(runtime, prepared.statement.kind)
    mergeable = [n.memory.id for n in neighbours if n.similarity >= thresholds.merge]
    pairs: ladder.Pairs = {}
    # Most statements have no two rows near enough: they are spared a round trip.
    if len(mergeable) > 1:
        pairs = memories.pair_similarities(connection, place.scope_id, mergeable)
    decision = ladder.decide(
        candidate, neighbours, thresholds=thresholds, pairs=pairs, deduplicate=deduplicate
    )
    writer = Writer(
        connection=connection,
        runtime=runtime,
        place=place,
        prepared=prepared,
        candidate=candidate,
        neighbours=neighbours,
        knows_model=footing.knows_model,
        known=known,
    )
    memory_id, merged_count = writer.apply(decision)
    return Remembered(
        memory_id,
        outcome=ladder.outcome_of(decision),
        merged_count=merged_count,
        notes=prepared.notes,
    )


def _known_entities(
    connection: Connection, place: Place, items: Sequence[Prepared]
) -> tuple[KnownEntity, ...]:
    """Entities that the statements may name: those of the scope, and what the statements themselves mention."""
    statements = [item.statement for item in items if item.ties_entities]
    known = entities.likely_named(connection, place.scope_id, list(map(named_text, statements)))
    keys = {entity.key for entity in known}
    return (*known, *(entity for entity in new_entities(statements) if entity.key not in keys))


def drop_context(runtime: Runtime, scope_id: int) -> None:
    """After the commit of a change: the cached narrative context of the scope goes."""
    try:
        cache.drop(runtime.hot, scope_id)
    except MemoryAppError as error:
        # The change is committed, and the cache expires by itself within minutes.
        log.warning("context_cache_not_dropped", error=error.kind)


def _session_id(connection: Connection, scope_id: int, scope: Scope) -> int | None:
    if scope.session is None:
        return None
    session_id = names.find_session(connection, scope_id, scope.session)
    if session_id is None:
        raise NotFound(
            f"session: no session {scope.session!r} here; record a turn in it first", field="session"
        )
    return session_id


def _prepared(statement: Statement, *, vector: Vector, notes: tuple[str, ...], policy: Policy) -> Prepared:
    importance, note = stored_importance(
        statement.importance, kind_of(statement.kind).importance, scale=statement.importance_scale
    )
    relation = _relation(statement, policy)
    return Prepared(
        statement=statement,
        importance=importance,
        key=canonical_key(statement.text),
        subject_key=slug_of(statement.subject, "subject"),
        relation=relation.name or None,
        object_key=slug_of(statement.object, "object"),
        single_valued=relation.single_valued and not statement.is_beside,
        opposes=relation.opposes,
        ends=ended_relations(relation.name, statement.object),
        corrected_key=slug_of(statement.corrects, "corrects"),
        vector=vector,
        keywords=keyword_weights(terms(statement.text)),
        notes=(*notes, note) if note else notes,
        ties_entities=policy.entity_extraction,
    )


def _relation(statement: Statement, policy: Policy) -> Relation:
    """The relation of the statement, normalised; one without a name for a statement that is no fact."""
    if statement.relation is None:
        return Relation("")
    relation = relation_of(statement.relation, extra_single_valued=policy.single_valued_relations)
    if not relation.name:
        raise InvalidInput("relation: needs at least one letter or digit", field="relation")
    return relation


def slug_of(value: str | None, field: str) -> str | None:
    """The slug of a subject or an object; raises `InvalidInput` naming the field where nothing of it remains."""
    if value is None:
        return None
    try:
        return slug(value)
    except InvalidInput as error:
        raise InvalidInput(f"{field}: needs at least one letter or digit", field=field) from error


def _candidate(prepared: Prepared, place: Place, footing: Footing) -> Candidate:
    statement, now = prepared.statement, footing.now
    said_at = _said_at(statement, footing)
    return Candidate(
        statement=statement,
        canonical_key=prepared.key,
        valid_from=statement.valid_from or said_at or now,
        valid_until=statement.valid_until,
        now=now,
        importance=prepared.importance,
        subject_key=prepared.subject_key,
        relation=prepared.relation,
        object_key=prepared.object_key,
        single_valued=prepared.single_valued,
        opposes=prepared.opposes,
        ends=prepared.ends,
        corrected_key=prepared.corrected_key,
        session=place.session,
        trust=ladder.trust_of(statement.origin, list(filter(None, [statement.source]))),
        said_at=said_at,
    )


def _said_at(statement: Statement, footing: Footing) -> datetime | None:
    """When the statement was said: as the caller says, else in the newest turn that it rests on; None: not known."""
    times = [footing.turn_times[id] for id in statement.evidence if id in footing.turn_times]
    said_at = statement.said_at or max(times, default=None)
    if said_at is None:
        return None
    # A clock that is ahead would have the last word until its time comes.
    return said_at if said_at <= footing.now + CLOCK_MARGIN else footing.now


def _footing(
    connection: Connection, runtime: Runtime, place: Place, *, statements: Sequence[Statement]
) -> Footing:
    """What holds now. Raises `Transient` where a source of a derived statement is gone."""
    turn_ids: set[UUID] = set()
    parents: set[UUID] = set()
    needed: set[UUID] = set()
    for statement in statements:
        turn_ids.update(statement.evidence)
        # What a caller declares stands without its sources.
        if statement.origin in DERIVED:
            needed.update(statement.evidence, statement.parents)
            parents.update(statement.parents)
    footing = store_neighbours.footing(
        connection,
        place.scope_id,
        model=runtime.embedder.model,
        turn_ids=list(turn_ids),
        parents=list(parents),
        turn_scopes=place.turn_scopes or (place.scope_id,),
    )
    # What was erased must not come back through what was derived from it a moment before.
    if not needed <= footing.turn_times.keys() | footing.parents:
        raise Transient(
            "a turn or memory that this was made of was forgotten meanwhile; make it anew", retry_after=1
        )
    return footing


def _under_heirs(prepared: Prepared, heirs: Mapping[str, str]) -> Prepared:
    """The statement about the things themselves where it names merged aliases."""
    return replace(
        prepared,
        subject_key=heir_of(prepared.subject_key, heirs),
        object_key=heir_of(prepared.object_key, heirs),
        corrected_key=heir_of(prepared.corrected_key, heirs),
    )


def _comparison(
    runtime: Runtime, place: Place, prepared: Prepared, *, heirs: Mapping[str, str]
) -> Comparison:
    objects = [prepared.object_key or prepared.key, *filter(None, [prepared.corrected_key])]
    return Comparison(
        session_id=place.session_id,
        kind=prepared.statement.kind,
        vector=prepared.vector,
        model=runtime.embedder.model,
        canonical_key=prepared.key,
        subject_keys=slugs_of(prepared.subject_key, heirs),
        relations=[prepared.relation, *prepared.opposes, *prepared.ends] if prepared.relation else [],
        object_keys=list(chain.from_iterable(slugs_of(key, heirs) for key in objects)),
        any_object=prepared.single_valued or bool(prepared.ends),
        merge=thresholds_of(runtime, prepared.statement.kind).merge,
        limit=runtime.settings.remember.neighbours,
    )


def thresholds_of(runtime: Runtime, kind: str) -> ladder.Thresholds:
    """The cuts of the embedder, as the settings move them; a kind that does not merge has one that no pair reaches."""
    own, settings = runtime.embedder.thresholds, runtime.settings.remember
    merge = settings.merge_similarity or own.merge
    return ladder.Thresholds(
        same=own.same,
        merge=merge if kind_of(kind).merges else NEVER,
        link=settings.link_similarity,
        fact=own.same_words,
    )
