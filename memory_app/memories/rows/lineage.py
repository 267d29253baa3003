"""Queries of where a memory comes from: its turns, the rows it was made of, and the run that wrote it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import Connection, and_, bindparam, text

from memory_app.db.tables.memories import evidence as evidence_table
from memory_app.db.tables.turns import turns
from memory_app.memories.rows.memory_rows import COLUMNS, memory_of
from memory_app.memories.rows.turn_rows import TURNS, read_turn
from memory_app.records.records import LinkType, Memory, Retirement, Turn


@dataclass(frozen=True, slots=True)
class Parent:
    """A memory that another was made of. ``how`` is ``merged`` or ``superseded`` (it gave way to it), or the type of
    the link between them."""

    memory: Memory
    how: str


@dataclass(frozen=True, slots=True)
class RunRow:
    """The background job that wrote a memory, by which model and prompt, and in which request or task."""

    id: UUID
    name: str
    state: str
    model: str | None
    prompt_version: str | None
    request_id: UUID | None
    task_id: UUID | None
    created_at: datetime
    finished_at: datetime | None


_EVIDENCE = (
    TURNS.join(
        evidence_table,
        and_(evidence_table.c.turn_scope_id == turns.c.scope_id, evidence_table.c.turn_id == turns.c.id),
    )
    .where(
        evidence_table.c.tenant_id == bindparam("tenant"),
        evidence_table.c.scope_id == bindparam("scope"),
        evidence_table.c.memory_id == bindparam("memory"),
    )
    .order_by(turns.c.id)
    .limit(bindparam("limit"))
)
# A merged part is its parent by both columns, successor and link: it is named once, by how it was retired.
_PARENTS = text(
    f"""
    SELECT {COLUMNS}, p.how
    FROM (
        SELECT g.id, coalesce(g.retired_reason, '{Retirement.SUPERSEDED}') AS how FROM memories g
        WHERE g.scope_id = :scope AND g.successor = :id
        UNION
        SELECT l.target_id, l.type FROM links l
        WHERE l.scope_id = :scope AND l.source_id = :id AND l.type = '{LinkType.DERIVED_FROM}'
          AND NOT EXISTS (SELECT FROM memories g WHERE g.scope_id = :scope AND g.id = l.target_id
                          AND g.successor = :id)
    ) p JOIN memories m ON m.scope_id = :scope AND m.id = p.id
    WHERE m.tenant_id = :tenant ORDER BY m.id LIMIT :limit
    """
)
_RUNS = text(
    """
    SELECT r.id, r.name, r.state, coalesce(r.model, r.report #>> '{made,model}') AS model,
           coalesce(r.prompt_version, r.report #>> '{made,prompt}') AS prompt_version, r.request_id, r.task_id,
           r.created_at, r.finished_at
    FROM runs r JOIN memories m ON m.run_id = r.id
    WHERE r.tenant_id = :tenant AND m.scope_id = :scope AND m.id = ANY(:ids)
    GROUP BY r.id ORDER BY r.id
    """
)
# UNION and not UNION ALL: it leaves out rows that were seen before, so that no circle of successors runs for ever.
_CHAIN = text(
    f"""
    WITH RECURSIVE after AS (
        SELECT m.id, m.successor FROM memories m WHERE m.tenant_id = :tenant AND m.scope_id = :scope AND m.id = :id
        UNION
        SELECT n.id, n.successor FROM after a
        JOIN memories n ON n.scope_id = :scope AND n.id = a.successor
    ), chain AS (
        SELECT id FROM after WHERE successor IS NULL
        UNION
        SELECT m.id FROM chain c JOIN memories m ON m.scope_id = :scope AND m.successor = c.id
    )
    SELECT {COLUMNS} FROM chain c JOIN memories m ON m.scope_id = :scope AND m.id = c.id
    ORDER BY m.retired_at NULLS LAST, m.id LIMIT :limit
    """
)
_MERGED_INTO = text(
    f"""
    WITH RECURSIVE behind AS (
        SELECT m.id FROM memories m WHERE m.tenant_id = :tenant AND m.scope_id = :scope AND m.id = :id
        UNION
        SELECT p.id FROM behind b
        JOIN memories p ON p.scope_id = :scope AND p.successor = b.id AND p.retired_reason = '{Retirement.MERGED}'
    )
    SELECT id FROM behind
    """
)


def evidence(
    connection: Connection, tenant_id: int, scope_id: int, *, memory_id: UUID, limit: int
) -> tuple[Turn, ...]:
    """The turns a memory rests on, oldest first."""
    values = {"tenant": tenant_id, "scope": scope_id, "memory": memory_id, "limit": limit}
    return tuple(map(read_turn, connection.execute(_EVIDENCE, values)))


def parents(
    connection: Connection, tenant_id: int, scope_id: int, *, memory_id: UUID, limit: int
) -> tuple[Parent, ...]:
    """The rows a memory was made of or took the place of, oldest first."""
    values = {"tenant": tenant_id, "scope": scope_id, "id": memory_id, "limit": limit}
    return tuple(Parent(memory_of(row), row.how) for row in connection.execute(_PARENTS, values))


def runs(connection: Connection, tenant_id: int, scope_id: int, *, ids: Sequence[UUID]) -> tuple[RunRow, ...]:
    """The jobs that wrote these memories, oldest first."""
    values = {"tenant": tenant_id, "scope": scope_id, "ids": list(ids)}
    return tuple(RunRow(*row) for row in connection.execute(_RUNS, values))


def chain(
    connection: Connection, tenant_id: int, scope_id: int, *, memory_id: UUID, limit: int
) -> tuple[Memory, ...]:
    """Every row that led to the memory or followed it, by successors: the first to be retired first, the last one
    standing at the end."""
    values = {"tenant": tenant_id, "scope": scope_id, "id": memory_id, "limit": limit}
    return tuple(map(memory_of, connection.execute(_CHAIN, values)))


def with_merged(
    connection: Connection, tenant_id: int, scope_id: int, *, memory_id: UUID
) -> tuple[UUID, ...]:
    """The memory and every row that was merged into it, however many steps back."""
    values = {"tenant": tenant_id, "scope": scope_id, "id": memory_id}
    return tuple(connection.execute(_MERGED_INTO, values).scalars())
