"""Memories: written by the one write path, read by every listing. A text is never edited; only counters move."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Row, text

from memory_app.domain.records import (
    EmotionalState,
    Memory,
    Origin,
    RelationalContext,
)
from memory_app.store.vectors import sparse_text, vector_text


@dataclass(frozen=True, slots=True)
class NewMemory:
    """A row to be: everything decided, vectors at hand."""

    kind: str
    text: str
    canonical_key: str
    valid_from: datetime
    importance: int
    confidence: float
    origin: Origin
    embedding: Sequence[float]
    embedding_model: str
    keywords: dict[int, float]
    subtype: str | None = None
    subject: str | None = None
    relation: str | None = None
    object: str | None = None
    subject_key: str | None = None
    object_key: str | None = None
    single_valued: bool = False
    pinned: bool = False
    sources: tuple[str, ...] = ()
    emotional_state: EmotionalState | None = None
    relational_context: RelationalContext | None = None
    tags: tuple[str, ...] = ()
    synthesis_type: str | None = None
    valid_until: datetime | None = None
    created_at: datetime | None = None
    repeat_count: int = 1
    recall_count: int = 0
    feedback_score: float = 0.0
    session_id: int | None = None
    run_id: UUID | None = None
    last_seen: datetime | None = None
    last_recalled: datetime | None = None
    confirmed_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Stored:
    """A memory with what the write path compares besides. ``similarity`` is a cosine, −1…1."""

    memory: Memory
    scope_id: int
    canonical_key: str
    subject_key: str | None
    object_key: str | None
    single_valued: bool
    sources: tuple[str, ...]
    confirmed_at: datetime
    similarity: float = 0.0
    cohesion: float | None = None
    """Lowest cosine to any statement that was merged into this one; None when none was."""


COLUMNS = """m.id, m.scope_id, m.kind, m.subtype, m.text, m.subject, m.relation, m.object, m.importance, m.confidence,
    m.tags, m.pinned, m.origin, m.emotional_state, m.relational_context, m.valid_from, m.valid_until, m.created_at,
    m.last_seen, m.last_recalled, m.repeat_count, m.recall_count, m.feedback_score, m.synthesis_type, m.successor,
    m.retired_at, m.retired_reason, m.embedding_model, m.canonical_key, m.subject_key, m.object_key, m.single_valued,
    m.sources, m.confirmed_at,
    (SELECT s.name FROM sessions s WHERE s.scope_id = m.scope_id AND s.id = m.session_id) AS session_name"""

CURRENT = "m.retired_at IS NULL AND (m.valid_until IS NULL OR m.valid_until > now())"
"""What a question about now may find."""

_INSERT = text(
    """
    INSERT INTO memories (
        tenant_id, scope_id, session_id, run_id, kind, subtype, text, canonical_key, subject, relation, object,
        subject_key, object_key, single_valued, importance, confidence, pinned, origin, sources, emotional_state,
        relational_context, tags, synthesis_type, valid_from, valid_until, created_at, last_seen,
        last_recalled, confirmed_at, repeat_count, recall_count, feedback_score, embedding, embedding_model, keywords,
        terms)
    VALUES (
        :tenant, :scope, :session_id, :run_id, :kind, :subtype, :text, :canonical_key, :subject, :relation, :object,
        :subject_key, :object_key, :single_valued, :importance, :confidence, :pinned, :origin, :sources,
        CAST(:emotional_state AS jsonb), CAST(:relational_context AS jsonb), :tags, :synthesis_type, :valid_from,
        :valid_until, coalesce(CAST(:created_at AS timestamptz), now()),
        coalesce(CAST(:last_seen AS timestamptz), now()), :last_recalled,
        coalesce(CAST(:confirmed_at AS timestamptz), :valid_from), :repeat_count, :recall_count, :feedback_score,
        CAST(:embedding AS halfvec), :embedding_model, CAST(:keywords AS sparsevec), :terms)
    RETURNING id
    """
)

_PAIRS = text(
    """
    WITH RECURSIVE behind AS (
        SELECT m.id AS top, m.id, m.embedding, m.embedding_model FROM memories m
        WHERE m.scope_id = :scope AND m.id = ANY(:ids)
        UNION ALL
        SELECT b.top, p.id, p.embedding, p.embedding_model FROM behind b
        JOIN memories p ON p.scope_id = :scope AND p.successor = b.id AND p.retired_reason = 'merged'
    )
    SELECT a.top AS one, b.top AS other, min(1 - (a.embedding <=> b.embedding)) AS similarity
    FROM behind a JOIN behind b ON b.top > a.top AND b.embedding_model = a.embedding_model
    GROUP BY a.top, b.top
    """
)
_REINFORCE = text(
    """
    UPDATE memories SET repeat_count = repeat_count + 1, last_seen = now(), confidence = :confidence,
        origin = CASE WHEN :origin IN ('declared', 'imported') AND origin IN ('extracted', 'synthesized')
                      THEN :origin ELSE origin END,
        confirmed_at = greatest(confirmed_at, :confirmed_at),
        valid_from = coalesce(CAST(:valid_from AS timestamptz), valid_from),
        valid_until = coalesce(CAST(:valid_until AS timestamptz), valid_until),
        sources = CASE WHEN CAST(:source AS text) IS NULL OR :source = ANY(sources) THEN sources
                       ELSE array_append(sources, CAST(:source AS text)) END
    WHERE scope_id = :scope AND id = :id
    """
)
_CUT = text(
    """
    UPDATE memories SET valid_until = greatest(CAST(:at AS timestamptz), valid_from),
        retired_at = CASE WHEN :at <= now() THEN coalesce(retired_at, now()) ELSE retired_at END,
        retired_reason = CASE WHEN :at <= now() THEN coalesce(retired_reason, 'superseded') ELSE retired_reason END
    WHERE scope_id = :scope AND id = :id
    """
)
_RESUME = text(
    """
    INSERT INTO memories (
        tenant_id, scope_id, session_id, run_id, kind, subtype, text, canonical_key, subject, relation, object,
        subject_key, object_key, single_valued, importance, confidence, pinned, origin, sources, emotional_state,
        relational_context, tags, synthesis_type, valid_from, valid_until, last_seen, last_recalled, confirmed_at,
        repeat_count, recall_count, feedback_score, embedding, embedding_model, keywords,
        terms)
    SELECT tenant_id, scope_id, session_id, run_id, kind, subtype, text, canonical_key, subject, relation, object,
        subject_key, object_key, single_valued, importance, confidence, pinned, origin, sources, emotional_state,
        relational_context, tags, synthesis_type, :valid_from, CAST(:valid_until AS timestamptz), last_seen,
        last_recalled, confirmed_at, repeat_count, recall_count, feedback_score, embedding, embedding_model, keywords,
        terms
    FROM memories WHERE scope_id = :scope AND id = :id
    RETURNING id
    """
)
_RETIRE = text(
    """
    UPDATE memories SET retired_at = now(), retired_reason = :reason, successor = :successor,
        valid_until = CASE WHEN CAST(:valid_until AS timestamptz) IS NULL THEN valid_until
                           ELSE greatest(:valid_until, valid_from) END
    WHERE scope_id = :scope AND id = ANY(:ids) AND retired_at IS NULL
    RETURNING id
    """
)
_LINK = text(
    """
    INSERT INTO links (tenant_id, scope_id, source_id, target_id, type, weight)
    SELECT :tenant, :scope, :source, v.id, :type, v.weight
    FROM unnest(CAST(:targets AS uuid[]), CAST(:weights AS real[])) AS v(id, weight)
    ON CONFLICT (scope_id, source_id, target_id, type) DO UPDATE SET weight = excluded.weight
    """
)
_EVIDENCE = text(
    """
    INSERT INTO evidence (tenant_id, scope_id, memory_id, turn_scope_id, turn_id)
    SELECT t.tenant_id, :scope, :memory, t.scope_id, t.id FROM turns t
    WHERE t.scope_id = ANY(:turn_scopes) AND t.id = ANY(:turns)
    ON CONFLICT DO NOTHING
    """
)
_INHERIT_EVIDENCE = text(
    """
    INSERT INTO evidence (tenant_id, scope_id, memory_id, turn_scope_id, turn_id)
    SELECT e.tenant_id, e.scope_id, :memory, e.turn_scope_id, e.turn_id FROM evidence e
    WHERE e.scope_id = :scope AND e.memory_id = ANY(:parents)
    ON CONFLICT DO NOTHING
    """
)
_INHERIT_MENTIONS = text(
    """
    INSERT INTO mentions (tenant_id, scope_id, memory_id, entity_id)
    SELECT e.tenant_id, e.scope_id, :memory, e.entity_id FROM mentions e
    WHERE e.scope_id = :scope AND e.memory_id = ANY(:parents)
    ON CONFLICT DO NOTHING
    """
)
_READ = text(f"SELECT {COLUMNS} FROM memories m WHERE m.id = :id")
_LIST = text(
    f"""
    SELECT {COLUMNS} FROM memories m
    WHERE m.scope_id = ANY(:scopes)
      AND (CAST(:kinds AS text[]) IS NULL OR m.kind = ANY(:kinds))
      AND (CAST(:tag AS text) IS NULL OR :tag = ANY(m.tags))
      AND (CAST(:before AS uuid) IS NULL OR m.id < :before)
      AND (:history OR ({CURRENT}))
    ORDER BY m.id DESC LIMIT :limit
    """
)
_LATELY = text(
    f"""
    SELECT {COLUMNS} FROM memories m
    WHERE m.scope_id = :scope AND m.session_id IS NULL AND m.kind NOT IN ('query', 'core', 'capability')
      AND m.last_seen >= now() - :within AND {CURRENT}
    ORDER BY m.last_seen DESC, m.id LIMIT :limit
    """
)
_COUNTS = text(
    f"SELECT m.kind, count(*) AS n FROM memories m WHERE m.scope_id = ANY(:scopes) AND {CURRENT} GROUP BY m.kind"
)
_DELETE = text("DELETE FROM memories WHERE scope_id = :scope AND id = :id RETURNING kind")
_TERMS = text("SELECT terms FROM memories WHERE scope_id = :scope AND id = ANY(:ids)")
_PIN = text(
    "UPDATE memories SET pinned = :pinned WHERE scope_id = :scope AND id = :id AND retired_at IS NULL"
)
_RECALLED = text(
    """UPDATE memories m SET recall_count = m.recall_count + v.n, last_recalled = now()
    FROM unnest(CAST(:ids AS uuid[]), CAST(:counts AS integer[])) AS v(id, n)
    WHERE m.id = v.id AND m.retired_at IS NULL"""
)
_CLOSE = text(
    """UPDATE memories SET valid_until = greatest(:until, valid_from), retired_at = now(),
        retired_reason = 'invalidated'
    WHERE scope_id = :scope AND id = :id AND retired_at IS NULL RETURNING valid_until"""
)


def insert(connection: Connection, tenant_id: int, scope_id: int, new: NewMemory) -> UUID:
    """One row; its id. The partial unique indexes refuse a second current row of the same statement."""
    values = {**_plain(new), "tenant": tenant_id, "scope": scope_id}
    return connection.execute(_INSERT, values).scalar_one()  # type: ignore[no-any-return]


def pair_similarities(
    connection: Connection, scope_id: int, ids: Sequence[UUID]
) -> Mapping[frozenset[UUID], float]:
    """For every pair among ``ids`` the lowest cosine between any two of the statements behind them."""
    rows = connection.execute(_PAIRS, {"scope": scope_id, "ids": list(ids)})
    return {frozenset((row.one, row.other)): float(row.similarity) for row in rows}


def reinforce(
    connection: Connection,
    scope_id: int,
    memory_id: UUID,
    *,
    source: str | None,
    confidence: float,
    confirmed_at: datetime,
    valid_from: datetime | None = None,
    valid_until: datetime | None = None,
    origin: Origin,
) -> None:
    """Count a repetition; bounds that are given replace those of the row. What somebody declares rests on nothing from
    then on."""
    values = {
        "scope": scope_id,
        "id": memory_id,
        "source": source,
        "confidence": confidence,
        "confirmed_at": confirmed_at,
        "valid_from": valid_from,
        "valid_until": valid_until,
        "origin": origin.value,
    }
    connection.execute(_REINFORCE, values)


def cut(connection: Connection, scope_id: int, memory_id: UUID, at: datetime) -> None:
    """End a row at ``at`` because something else holds from there; it stays as history."""
    connection.execute(_CUT, {"scope": scope_id, "id": memory_id, "at": at})


def resume(
    connection: Connection, scope_id: int, memory_id: UUID, start: datetime, until: datetime | None
) -> UUID:
    """A copy of a row that holds in another interval, with the same evidence and entities; its id."""
    values = {"scope": scope_id, "id": memory_id, "valid_from": start, "valid_until": until}
    copy: UUID = connection.execute(_RESUME, values).scalar_one()
    inherit(connection, scope_id, copy, [memory_id])
    return copy


def retire(
    connection: Connection,
    scope_id: int,
    ids: Sequence[UUID],
    *,
    reason: str,
    successor: UUID | None = None,
    valid_until: datetime | None = None,
) -> tuple[UUID, ...]:
    """Take rows out of the current ones, for a reason, perhaps closing their interval, which never ends before it
    began; those that were current."""
    values = {
        "scope": scope_id,
        "ids": list(ids),
        "reason": reason,
        "successor": successor,
        "valid_until": valid_until,
    }
    return tuple(connection.execute(_RETIRE, values).scalars())


def succeed(connection: Connection, scope_id: int, ids: Sequence[UUID], successor: UUID) -> None:
    """Name the row that followed rows which are retired already."""
    statement = text("UPDATE memories SET successor = :successor WHERE scope_id = :scope AND id = ANY(:ids)")
    connection.execute(statement, {"scope": scope_id, "ids": list(ids), "successor": successor})


def link(
    connection: Connection,
    tenant_id: int,
    scope_id: int,
    source: UUID,
    targets: Iterable[tuple[UUID, float]],
    *,
    type: str,
) -> None:
    """Typed, weighted edges from one memory to others of the same scope."""
    pairs = [pair for pair in targets if pair[0] != source]
    if pairs:
        values = {
            "tenant": tenant_id,
            "scope": scope_id,
            "source": source,
            "type": type,
            "targets": [target for target, _ in pairs],
            "weights": [weight for _, weight in pairs],
        }
        connection.execute(_LINK, values)


def add_evidence(
    connection: Connection,
    scope_id: int,
    memory_id: UUID,
    turn_ids: Sequence[UUID],
    *,
    turn_scopes: Sequence[int],
) -> None:
    """Name the turns that a memory rests on; turns that are gone meanwhile are left out."""
    if turn_ids:
        values = {
            "scope": scope_id,
            "memory": memory_id,
            "turns": list(turn_ids),
            "turn_scopes": list(turn_scopes),
        }
        connection.execute(_EVIDENCE, values)


def inherit(connection: Connection, scope_id: int, memory_id: UUID, parents: Sequence[UUID]) -> None:
    """Give a merged memory the evidence and the entities of its parents."""
    values = {"scope": scope_id, "memory": memory_id, "parents": list(parents)}
    connection.execute(_INHERIT_EVIDENCE, values)
    connection.execute(_INHERIT_MENTIONS, values)


def read(connection: Connection, memory_id: UUID) -> Stored | None:
    """One memory of this tenant, retired ones included."""
    row = connection.execute(_READ, {"id": memory_id}).one_or_none()
    return None if row is None else stored(row)


def listed(
    connection: Connection,
    scope_ids: Sequence[int],
    *,
    kinds: Sequence[str] | None,
    tag: str | None,
    limit: int,
    before: UUID | None,
    history: bool = False,
) -> tuple[Memory, ...]:
    """Newest first; ``before`` is the last id of the page before."""
    values = {
        "scopes": list(scope_ids),
        "kinds": list(kinds) if kinds else None,
        "tag": tag,
        "limit": limit,
        "before": before,
        "history": history,
    }
    return tuple(stored(row).memory for row in connection.execute(_LIST, values))


def lately_seen(
    connection: Connection, scope_id: int, *, within: timedelta, limit: int
) -> tuple[Memory, ...]:
    """Current memories of the scope seen within a time, the latest first; without questions and sessions' own."""
    values = {"scope": scope_id, "within": within, "limit": limit}
    return tuple(stored(row).memory for row in connection.execute(_LATELY, values))


def current_ids(connection: Connection, scope_id: int, ids: Sequence[UUID]) -> set[UUID]:
    """Those of the memories that are still current."""
    statement = text(
        f"SELECT m.id FROM memories m WHERE m.scope_id = :scope AND m.id = ANY(:ids) AND {CURRENT}"
    )
    return set(connection.execute(statement, {"scope": scope_id, "ids": list(ids)}).scalars())


def counts(connection: Connection, scope_ids: Sequence[int]) -> dict[str, int]:
    """Current memories by kind."""
    return {row.kind: int(row.n) for row in connection.execute(_COUNTS, {"scopes": list(scope_ids)})}


def vector(connection: Connection, scope_id: int, memory_id: UUID) -> list[float]:
    """The stored vector of a row."""
    statement = text("SELECT embedding::text FROM memories WHERE scope_id = :scope AND id = :id")
    found = connection.execute(statement, {"scope": scope_id, "id": memory_id}).scalar_one()
    return [float(part) for part in json.loads(found)]


def keyword_terms(connection: Connection, scope_id: int, ids: Sequence[UUID]) -> list[set[int]]:
    """The term ids each row is found by."""
    rows = connection.execute(_TERMS, {"scope": scope_id, "ids": list(ids)}).scalars()
    return [set(terms) for terms in rows if terms is not None]


def delete(connection: Connection, scope_id: int, memory_id: UUID) -> bool:
    """Remove a row for good, with its links, mentions and evidence."""
    return connection.execute(_DELETE, {"scope": scope_id, "id": memory_id}).one_or_none() is not None


def pin(connection: Connection, scope_id: int, memory_id: UUID, *, pinned: bool) -> bool:
    """False when the memory is retired or gone."""
    values = {"scope": scope_id, "id": memory_id, "pinned": pinned}
    return connection.execute(_PIN, values).rowcount == 1


def note_recalls(connection: Connection, counts: Mapping[UUID, int]) -> int:
    """Count how often current memories were shown; how many rows were touched, in the order of their ids."""
    ids = sorted(counts)
    values = {"ids": ids, "counts": [counts[id] for id in ids]}
    return connection.execute(_RECALLED, values).rowcount


def invalidate(connection: Connection, scope_id: int, memory_id: UUID, until: datetime) -> datetime | None:
    """Close the interval and keep the row as history; None when it was retired already."""
    values = {"scope": scope_id, "id": memory_id, "until": until}
    return connection.execute(_CLOSE, values).scalar_one_or_none()


def stored(row: Row[Any]) -> Stored:
    """The record of a row that has `COLUMNS`, and ``similarity`` where it was asked for."""
    return Stored(
        memory=Memory(
            id=row.id,
            kind=row.kind,
            text=row.text,
            created_at=row.created_at,
            valid_from=row.valid_from,
            subtype=row.subtype,
            subject=row.subject,
            relation=row.relation,
            object=row.object,
            importance=row.importance,
            confidence=row.confidence,
            tags=tuple(row.tags),
            pinned=row.pinned,
            origin=Origin(row.origin),
            emotional_state=EmotionalState(**row.emotional_state) if row.emotional_state else None,
            relational_context=_relational(row.relational_context),
            valid_until=row.valid_until,
            last_seen=row.last_seen,
            last_recalled=row.last_recalled,
            repeat_count=row.repeat_count,
            recall_count=row.recall_count,
            feedback_score=row.feedback_score,
            synthesis_type=row.synthesis_type,
            successor=row.successor,
            retired_at=row.retired_at,
            retired_reason=row.retired_reason,
            session=row.session_name,
            embedding_model=row.embedding_model,
        ),
        scope_id=row.scope_id,
        canonical_key=row.canonical_key,
        subject_key=row.subject_key,
        object_key=row.object_key,
        single_valued=row.single_valued,
        sources=tuple(row.sources),
        confirmed_at=row.confirmed_at,
        similarity=float(getattr(row, "similarity", 0.0)),
        cohesion=getattr(row, "cohesion", None),
    )


def _relational(fields: dict[str, Any] | None) -> RelationalContext | None:
    if not fields:
        return None
    lists = {key: tuple(value) for key, value in fields.items() if key != "bond_strength"}
    return RelationalContext(bond_strength=fields.get("bond_strength"), **lists)


def _plain(new: NewMemory) -> dict[str, Any]:
    names = NewMemory.__slots__
    return {name: getattr(new, name) for name in names} | {
        "origin": new.origin.value,
        "sources": list(new.sources),
        "tags": list(new.tags),
        "emotional_state": _json(new.emotional_state),
        "relational_context": _json(new.relational_context),
        "embedding": vector_text(new.embedding),
        "keywords": sparse_text(new.keywords),
        "terms": sorted(new.keywords),
    }


def _json(value: EmotionalState | RelationalContext | None) -> str | None:
    return None if value is None else json.dumps(asdict(value), ensure_ascii=False)
