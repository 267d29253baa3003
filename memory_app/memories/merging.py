"""Uniting memories into one row, and taking it apart again. Both sides of every merge, whoever decided on it.

What is united is kept: each part stays as a row, retired as merged, with the united one as its successor. So a
merge can be explained and undone. The scope's row must be locked by the caller's transaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from uuid import UUID

from sqlalchemy import Connection

from memory_app.errors import Conflict
from memory_app.language.text import canonical_key
from memory_app.memories.ladder import MergedFields
from memory_app.memories.rows import evidence, links, memories, merges, sources
from memory_app.memories.rows import terms as term_store
from memory_app.memories.rows.memory_rows import NewMemory
from memory_app.records.records import LinkType, Memory, Retirement

BLOCKERS_SHOWN = 20
"""Most obstacles named in one refusal."""

CHANGE = 1e-4
"""A difference of feedback that is more than rounding."""


def version(memory: Memory) -> tuple[object, ...]:
    """What must not have changed between a plan and its merge: texts and vectors never do, and being recalled does not
    count."""
    return (
        memory.retired_at,
        memory.valid_from,
        memory.valid_until,
        memory.repeat_count,
        memory.confidence,
        memory.pinned,
        memory.feedback_score,
    )


def take_apart(
    connection: Connection, tenant_id: int, scope_id: int, merged_ids: Sequence[UUID]
) -> tuple[UUID, ...]:
    """Undo several merges, all or none; ids of the rows that are current again.

    A row that was itself merged into another of ``merged_ids`` is taken apart with it. What was derived from a united
    row rests on its parts from then on. Raises `Conflict`.
    """
    blocked = _blockers(connection, scope_id, merged_ids)
    if blocked:
        shown = "; ".join(blocked[:BLOCKERS_SHOWN])
        more = f"; and {len(blocked) - BLOCKERS_SHOWN} more" if len(blocked) > BLOCKERS_SHOWN else ""
        raise Conflict(f"the merge cannot be undone: {shown}{more}", field="id")
    inside = set(merged_ids)
    restored = [
        part.memory.id
        for part in merges.parts(connection, scope_id, merged_ids)
        if part.memory.id not in inside
    ]
    sources.hand_to_parts(connection, scope_id, merged_ids)
    merges.remove(connection, tenant_id, scope_id, list(merged_ids))
    merges.restore(connection, scope_id, restored)
    return tuple(sorted(restored))


def _blockers(connection: Connection, scope_id: int, merged_ids: Sequence[UUID]) -> list[str]:
    """Everything that has happened since and would be lost, in words."""
    found = {row.memory.id: row.memory for row in merges.rows(connection, scope_id, merged_ids)}
    parts = merges.parts(connection, scope_id, merged_ids)
    blocked = [f"{gone} is gone" for gone in merged_ids if gone not in found]
    for memory_id, memory in found.items():
        behind = [part.memory for part in parts if part.memory.successor == memory_id]
        reason = _changed(memory, behind, set(merged_ids))
        if reason is not None:
            blocked.append(f"{memory_id} {reason}")
    outside = [part.memory.id for part in parts if part.memory.id not in found]
    for part_id, twin in merges.twins(connection, scope_id, outside, besides=merged_ids):
        blocked.append(f"{part_id} was stored again as {twin}")
    return blocked


def _changed(memory: Memory, behind: Sequence[Memory], inside: set[UUID]) -> str | None:
    if memory.retired_at is not None and memory.successor not in inside:
        after = f" into {memory.successor}" if memory.successor else ""
        return f"was {memory.retired_reason}{after} since"
    if not behind:
        return "has no parts left"
    if memory.repeat_count != sum(part.repeat_count for part in behind):
        return "was said again since"
    if memory.pinned and not any(part.pinned for part in behind):
        return "was pinned since"
    if abs(memory.feedback_score - fmean(part.feedback_score for part in behind)) > CHANGE:
        return "was rated since"
    return None


def unite(
    connection: Connection, tenant_id: int, scope_id: int, new: NewMemory, parts: Sequence[UUID]
) -> UUID:
    """Store one united row in place of its parts; its id. See `unite_all`."""
    (united,) = unite_all(connection, tenant_id, scope_id, [(new, parts)])
    return united


def unite_all(
    connection: Connection,
    tenant_id: int,
    scope_id: int,
    unions: Sequence[tuple[NewMemory, Sequence[UUID]]],
) -> tuple[UUID, ...]:
    """Store united rows, each with its parts, and retire the parts in favour of them; the rows' ids, in order.

    They inherit their parts' evidence and entities. The parts leave the unique indexes first, since a united row may
    carry the very text of one of them; all of it is one transaction, and as many statements for one as for many.
    """
    memories.retire(
        connection, scope_id, [part for _, parts in unions for part in parts], reason=Retirement.MERGED
    )
    united = memories.insert_all(connection, tenant_id, scope_id, [new for new, _ in unions])
    term_store.add(connection, tenant_id, [(scope_id, new.keywords) for new, _ in unions])
    behind = {id: parts for id, (_, parts) in zip(united, unions, strict=True)}
    memories.succeed(connection, scope_id, {part: id for id, parts in behind.items() for part in parts})
    evidence.inherit(connection, scope_id, behind)
    edges = [(id, part, 1.0) for id, parts in behind.items() for part in parts]
    links.add(connection, tenant_id, scope_id, edges, type=LinkType.DERIVED_FROM)
    return united


def merged_row(
    fields: MergedFields,
    *,
    vector: Sequence[float],
    model: str,
    keywords: dict[int, float],
    session_id: int | None,
    run_id: UUID | None,
) -> NewMemory:
    """The row that ``fields`` describe; ``vector`` and ``keywords`` belong to its text."""
    return NewMemory(
        kind=fields.kind,
        text=fields.text,
        canonical_key=canonical_key(fields.text),
        subtype=fields.subtype,
        subject=fields.subject,
        relation=fields.relation,
        object=fields.object,
        subject_key=fields.subject_key,
        object_key=fields.object_key,
        single_valued=fields.single_valued,
        importance=fields.importance,
        confidence=fields.confidence,
        tags=fields.tags,
        pinned=fields.pinned,
        origin=fields.origin,
        sources=fields.sources,
        emotional_state=fields.emotional_state,
        relational_context=fields.relational_context,
        synthesis_type=fields.synthesis_type,
        valid_from=fields.valid_from,
        valid_until=fields.valid_until,
        created_at=fields.created_at,
        last_seen=fields.last_seen,
        last_recalled=fields.last_recalled,
        confirmed_at=fields.confirmed_at,
        repeat_count=fields.repeat_count,
        recall_count=fields.recall_count,
        feedback_score=fields.feedback_score,
        session_id=session_id,
        run_id=run_id,
        embedding=vector,
        embedding_model=model,
        keywords=keywords,
    )
