"""Promote memories of a session to memories of the scope, through the write path."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from sqlalchemy import Connection

from memory_app.memories import remember
from memory_app.memories.remember import Place, Prepared
from memory_app.memories.rows import evidence
from memory_app.memories.rows import memories as memory_rows
from memory_app.records.records import MemoryRow, Retirement, Statement, content_of
from memory_app.runtime import Runtime
from memory_app.sleep.rows import sleeping
from memory_app.tenancy.policy import Policy


@dataclass(frozen=True, slots=True)
class Promotable:
    """A memory of a session and the statement it becomes, embedded."""

    row: MemoryRow
    prepared: Prepared


def prepare(runtime: Runtime, memories: Sequence[MemoryRow], *, policy: Policy) -> tuple[Promotable, ...]:
    """Make memories of a session ready to promote. Calls the embedder once; opens no transaction."""
    statements = [_statement(row) for row in memories]
    prepared = remember.prepare(runtime, statements, policy=policy)
    # A statement is given an importance by its words; the memory has earned its own.
    return tuple(
        Promotable(row, replace(item, importance=row.memory.importance))
        for row, item in zip(memories, prepared, strict=True)
    )


def promote(
    connection: Connection,
    runtime: Runtime,
    place: Place,
    *,
    promotable: Sequence[Promotable],
    carry: bool = True,
) -> tuple[UUID, ...]:
    """Write each into the scope and retire the session's row in its favour; ids of the rows in the scope.

    With ``carry`` the scope's row takes over the repeat, recall and feedback counts.
    """
    ids = []
    for item in promotable:
        origin = item.row.memory.id
        # Through the write path: the scope may say the same already, and then its row is reinforced.
        remembered = remember.write(connection, runtime, place, prepared=item.prepared)
        evidence.inherit(connection, place.scope_id, {remembered.id: [origin]})
        if carry:
            sleeping.add_counts(connection, place.scope_id, remembered.id, source=origin)
        memory_rows.retire(
            connection, place.scope_id, [origin], reason=Retirement.MERGED, successor=remembered.id
        )
        ids.append(remembered.id)
    return tuple(ids)


def _statement(row: MemoryRow) -> Statement:
    return Statement(
        **content_of(row.memory),
        importance=row.memory.importance,
        valid_from=row.memory.valid_from,
        said_at=row.confirmed_at,
        source=row.sources[0] if row.sources else None,
    )
