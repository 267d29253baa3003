"""Unite a statement that is said again with the row that holds it already.

Nothing that the caller sent is lost: the union is that of a merge, except that the row keeps its text, its place in
time and its counters. Pure.
"""

from __future__ import annotations

from dataclasses import replace

from memory_app.language.text import normalise
from memory_app.memories.decisions import Candidate, Neighbour, Reinforce
from memory_app.memories.merge_rules import corroborated, merge
from memory_app.records.records import STATED, Memory, MemoryRow, Origin


def repeated(row: Neighbour, candidate: Candidate, decision: Reinforce) -> MemoryRow:
    """Return the row as it stands after ``candidate`` said it again; it is not stored yet."""
    old = row.memory
    # `merge` takes every field of the content through one rule, so a new field needs no line here.
    union = merge([row], candidate)
    memory = replace(
        union.memory,
        id=old.id,
        text=old.text,
        subject=old.subject,
        relation=old.relation,
        object=_object(old, candidate),
        importance=_importance(old, candidate),
        confidence=_confidence(row, candidate),
        origin=_origin(old, candidate),
        valid_from=decision.valid_from or old.valid_from,
        valid_until=decision.valid_until or old.valid_until,
        created_at=old.created_at,
        feedback_score=old.feedback_score,
        embedding_model=old.embedding_model,
    )
    return replace(
        union,
        memory=memory,
        canonical_key=row.canonical_key,
        subject_key=row.subject_key,
        object_key=row.object_key if old.object is not None else _object_key(memory, candidate),
        single_valued=row.single_valued,
        confirmed_at=max(row.confirmed_at or old.valid_from, decision.confirmed_at),
        first_confirmed_at=min(row.first_confirmed_at or old.valid_from, decision.confirmed_at),
    )


def _object(old: Memory, candidate: Candidate) -> str | None:
    """The row's object; that of the statement where the row names the same relation without one."""
    if old.object is not None or old.relation is None or old.relation != candidate.relation:
        return old.object
    return candidate.statement.object


def _object_key(memory: Memory, candidate: Candidate) -> str | None:
    return candidate.object_key if memory.object is not None else None


def _importance(old: Memory, candidate: Candidate) -> int:
    # The usual importance of a kind is nobody's word, so it does not raise what was rated lower on purpose.
    if candidate.statement.importance is None:
        return old.importance
    return max(old.importance, candidate.importance)


def _confidence(row: Neighbour, candidate: Candidate) -> float:
    statement = candidate.statement
    agreed = corroborated(row.memory.confidence, row.sources, statement.source)
    is_same_source = statement.source is not None and normalise(statement.source) in map(
        normalise, row.sources
    )
    # One and the same source does not make itself more credible.
    return agreed if is_same_source else max(agreed, statement.confidence)


def _origin(old: Memory, candidate: Candidate) -> Origin:
    """What somebody declares rests on nothing from then on; otherwise the row stays what it was."""
    stated = candidate.statement.origin
    return stated if stated in STATED and old.origin not in STATED else old.origin
