"""What a row of ``memories`` holds: as it is to be written, and as it is read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Row

from memory_app.db.vectors import sparse_text, vector_text
from memory_app.language.sentence_type import Trait, traits_of
from memory_app.records.records import EmotionalState, Memory, Origin, RelationalContext, Retirement


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
            retired_reason=None if row.retired_reason is None else Retirement(row.retired_reason),
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


def values_of(new: NewMemory) -> dict[str, Any]:
    """The row as JSON, but for ids and instants, whose text form will do."""
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
        "traits": _traits(new),
    }


def _traits(new: NewMemory) -> int:
    """Of the `ON_DEMAND`; what somebody prefers has a subtype."""
    found = traits_of(new.text, by_user=False) & (Trait.QUANTITY | Trait.MOMENT)
    return int(found | Trait.PREFERENCE if new.subtype == "preference" else found)


def _json(value: EmotionalState | RelationalContext | None) -> dict[str, Any] | None:
    return None if value is None else asdict(value)
