"""Promotion: what proved itself in a session becomes a memory of the scope, through the one write path."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from sqlalchemy import Connection

from memory_app.memories import remember
from memory_app.memories.remember import Place, Prepared
from memory_app.memories.rows import evidence, memories
from memory_app.records.records import MemoryRow, Retirement, Statement, content_of
from memory_app.runtime import Runtime
from memory_app.sleep.rows import sleeping
from memory_app.tenancy.policy import Policy


@dataclass(frozen=True, slots=True)
class Promotable:
    """A memory of a session and the statement it becomes, embedded."""

    row: MemoryRow
    prepared: Prepared


def prepare(runtime: Runtime, chosen: Sequence[MemoryRow], *, policy: Policy) -> tuple[Promotable, ...]:
    """Make memories ready; one call to the embedder. Opens no transaction."""
    made = remember.prepare(runtime, [_statement(one) for one in chosen], policy=policy)
    return tuple(
        Promotable(one, replace(prepared, importance=one.memory.importance))
        for one, prepared in zip(chosen, made, strict=True)
    )


def promote(
    connection: Connection,
    runtime: Runtime,
    place: Place,
    chosen: Sequence[Promotable],
    *,
    carry: bool = True,
) -> tuple[UUID, ...]:
    """Write each into the scope and retire the session's row in its favour; ids of the rows in the scope.

    With ``carry`` the counts go along: how often it was said and recalled, and what was thought of it.
    """
    written = []
    for one in chosen:
        origin = one.row.memory.id
        kept = remember.write(connection, runtime, place, one.prepared)
        evidence.inherit(connection, place.scope_id, {kept.id: [origin]})
        if carry:
            sleeping.carry(connection, place.scope_id, kept.id, source=origin)
        memories.retire(connection, place.scope_id, [origin], reason=Retirement.MERGED, successor=kept.id)
        written.append(kept.id)
    return tuple(written)


def _statement(row: MemoryRow) -> Statement:
    return Statement(
        **content_of(row.memory),
        importance=row.memory.importance,
        valid_from=row.memory.valid_from,
        source=row.sources[0] if row.sources else None,
    )
