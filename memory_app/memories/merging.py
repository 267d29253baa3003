"""Merge memories into one row, and take a merged row apart again.

Each part stays as a row, retired as merged, with the merged row as its successor, so that a merge can be explained and
undone. The caller's transaction must hold the lock on the scope's row.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from statistics import fmean
from uuid import UUID

from sqlalchemy import Connection

from memory_app.errors import Conflict
from memory_app.memories.rows import evidence, links, memories, merges, sources
from memory_app.memories.rows import terms as term_store
from memory_app.memories.rows.memory_rows import NewMemory
from memory_app.records.records import LinkType, Memory, Retirement

OBSTACLES_LIMIT = 20
"""Most obstacles named in one refusal."""

ROUNDING = 1e-4
"""Feedback is stored in single precision: a smaller difference is no change."""


def version(memory: Memory) -> tuple[object, ...]:
    """Return the fields that must not change between a plan and its merge.

    Texts and vectors never change, and being recalled is no change.
    """
    return (
        memory.retired_at,
        memory.valid_from,
        memory.valid_until,
        memory.repeat_count,
        memory.confidence,
        memory.pinned,
        memory.feedback_score,
    )


def take_apart(connection: Connection, tenant_id: int, scope_id: int, *, memory_id: UUID) -> tuple[UUID, ...]:
    """Undo one merge and return the ids of the rows that are current again.

    Raises `Conflict` where undoing would lose a later change. What was derived from the merged row rests on its parts
    from then on.
    """
    parts = merges.parts(connection, scope_id, [memory_id])
    # Everything is checked before anything is written: a refused undo leaves the merge as it is.
    obstacles = _obstacles(connection, scope_id, memory_id, parts=[part.memory for part in parts])
    if obstacles:
        raise Conflict(f"the merge cannot be undone: {listed(obstacles)}", field="id")
    restored = [part.memory.id for part in parts]
    # The parts take over the sources before the row goes, since deleting it would delete them too.
    sources.hand_to_parts(connection, scope_id, [memory_id])
    # The row goes before its parts come back: it may have the text of one, and two such rows cannot be current.
    merges.remove(connection, tenant_id, scope_id, ids=[memory_id])
    merges.restore(connection, scope_id, restored)
    return tuple(sorted(restored))


def listed(obstacles: Sequence[str]) -> str:
    """Join what blocks an undo into one sentence; a long list is cut short."""
    sentence = "; ".join(obstacles[:OBSTACLES_LIMIT])
    more = len(obstacles) - OBSTACLES_LIMIT
    return f"{sentence}; and {more} more" if more > 0 else sentence


def _obstacles(
    connection: Connection, scope_id: int, memory_id: UUID, *, parts: Sequence[Memory]
) -> list[str]:
    """Every change since the merge that undoing it would lose, in words."""
    rows = merges.rows(connection, scope_id, [memory_id])
    if not rows:
        return [f"{memory_id} is gone"]
    change = _later_change(rows[0].memory, parts)
    obstacles = [] if change is None else [f"{memory_id} {change}"]
    part_ids = [part.id for part in parts]
    # What was said again since has a row of its own, and would stand beside the restored part.
    twins = merges.twins(connection, scope_id, part_ids, besides=[memory_id])
    return obstacles + [f"{part_id} was stored again as {twin}" for part_id, twin in twins]


def _later_change(memory: Memory, parts: Sequence[Memory]) -> str | None:
    """What happened to the merged row since, or None."""
    if memory.retired_at is not None:
        after = f" into {memory.successor}" if memory.successor else ""
        return f"was {memory.retired_reason}{after} since"
    if not parts:
        # Merged rows are deleted for good after some months; then nothing can be restored.
        return "has no parts left"
    # The union has the sum of the counts and the mean of the scores, so any other value is a later change.
    if memory.repeat_count != sum(part.repeat_count for part in parts):
        return "was said again since"
    if memory.pinned and not any(part.pinned for part in parts):
        return "was pinned since"
    if abs(memory.feedback_score - fmean(part.feedback_score for part in parts)) > ROUNDING:
        return "was rated since"
    return None


def unite_all(
    connection: Connection,
    tenant_id: int,
    scope_id: int,
    *,
    unions: Sequence[tuple[NewMemory, Sequence[UUID]]],
) -> tuple[UUID, ...]:
    """Store merged rows, each with its parts, retire the parts in favour of them and return the rows' ids, in order.

    The rows inherit their parts' evidence and entities. It takes as many statements for one row as for many.
    """
    rows = [new for new, _ in unions]
    parts = [part_ids for _, part_ids in unions]
    # The parts leave the unique indexes first, since a merged row may have the very text of one of them.
    memories.retire(connection, scope_id, list(chain.from_iterable(parts)), reason=Retirement.MERGED)
    merged_ids = memories.insert_all(connection, tenant_id, scope_id, new=rows)
    # The parts keep their share in the frequencies, since they keep their rows.
    term_store.add(connection, tenant_id, [(scope_id, new.keywords) for new in rows])
    parts_of = dict(zip(merged_ids, parts, strict=True))
    # Successors can only be named once the rows they point to are there.
    merged_of = {part: id for id, part_ids in parts_of.items() for part in part_ids}
    memories.succeed(connection, scope_id, merged_of)
    evidence.inherit(connection, scope_id, parts_of)
    edges = [(merged_id, part, 1.0) for part, merged_id in merged_of.items()]
    links.add(connection, tenant_id, scope_id, edges=edges, type=LinkType.DERIVED_FROM)
    return merged_ids
