"""What a scope holds, seen by decay and capacity: strengths without texts, the recoverable stage, and its end."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Interval, Row, bindparam, delete, func, null, select, text, update

from memory_app.db.literals import literals
from memory_app.db.tables.jobs import runs
from memory_app.db.tables.memories import links, memories
from memory_app.db.tables.sleep import images
from memory_app.db.tables.tenancy import scopes
from memory_app.memories import vital
from memory_app.records.records import RECOVERABLE, LinkType, Memory, Retirement

PURGED = (*RECOVERABLE, Retirement.MERGED)
"""Reasons of retirement after which a memory is deleted some days later."""

# Links are counted once for the whole scope; a count for each memory would be a look at two indexes each. The bit of
# what is vital is missing in rows of older releases, which have the relation.
_HELD = text(
    f"""
    WITH ends AS (
        SELECT l.source_id AS id FROM links l WHERE l.scope_id = :scope
        UNION ALL
        SELECT l.target_id FROM links l WHERE l.scope_id = :scope
    ), degrees AS (SELECT id, count(*) AS n FROM ends GROUP BY id)
    SELECT m.id, m.kind, m.created_at, m.valid_from, m.importance, m.confidence, m.pinned, m.last_seen,
           m.last_recalled, m.repeat_count, m.recall_count, m.feedback_score, coalesce(d.n, 0) AS degree,
           m.traits & {vital.BIT} <> 0 OR coalesce(m.relation IN ({literals(vital.RELATIONS)}), false) AS is_vital
    FROM memories m LEFT JOIN degrees d ON d.id = m.id
    WHERE m.scope_id = :scope AND m.retired_at IS NULL
      AND (CAST(:session AS bigint) IS NULL OR m.session_id = :session)
    ORDER BY m.id
    """
)
# The limit inside stops the counting early, which a plain count(*) cannot.
_COUNT = text(
    """SELECT count(*) FROM (SELECT FROM memories
       WHERE scope_id = :scope AND retired_at IS NULL LIMIT :most) AS counted"""
)
_LINK_COUNT = select(func.count()).where(links.c.scope_id == bindparam("scope"))
SINCE = """CAST(lpad(to_hex(CAST(floor(extract(epoch FROM now()) * 1000) AS bigint)), 12, '0') || repeat('0', 20)
    AS uuid)"""
"""The least id that a row may have which this transaction wrote."""

# Own rows are those stored at the start of this transaction, which now() returns throughout; the least id keeps the
# look to the end of the index. NULL plus anything stays NULL, so an unknown bound stays unknown.
_NOTE_WRITTEN = text(
    f"""
    UPDATE scopes c SET
        most_memories = c.most_memories + (
            SELECT count(*) FROM memories m
            WHERE m.scope_id = :scope AND m.id >= {SINCE} AND m.stored_at = now() AND m.retired_at IS NULL),
        most_links = c.most_links + (
            SELECT count(*) FROM links l
            WHERE l.scope_id = :scope AND l.source_id >= {SINCE} AND l.created_at = now())
    WHERE c.id = :scope RETURNING c.most_memories AS memories, c.most_links AS links
    """
)
_NOTE_COUNTED = update(scopes).where(scopes.c.id == bindparam("scope"))
# Merged rows have a longer stage and a number of their own: undoing a merge needs its parts for months.
_OVERDUE = text(
    f"""
    SELECT id FROM (
        SELECT id, retired_at, retired_reason, row_number() OVER (
                   PARTITION BY retired_reason = '{Retirement.MERGED}' ORDER BY retired_at DESC, id DESC) AS place
        FROM memories
        WHERE scope_id = :scope AND retired_reason IN ({literals(PURGED)})
    ) gone
    WHERE place > :most
       OR retired_at <= now() - CASE WHEN retired_reason = '{Retirement.MERGED}' THEN CAST(:merged AS interval)
                                     ELSE CAST(:recoverable AS interval) END
    """
)
_NEXT_OVERDUE = text(
    f"""
    SELECT min(retired_at + CASE WHEN retired_reason = '{Retirement.MERGED}' THEN CAST(:merged AS interval)
                                 ELSE CAST(:recoverable AS interval) END)
    FROM memories WHERE scope_id = :scope AND retired_reason IN ({literals(PURGED)})
    """
)
_REVIVE = (
    update(memories)
    .where(
        memories.c.scope_id == bindparam("scope"),
        memories.c.id == bindparam("memory"),
        memories.c.retired_reason.in_(RECOVERABLE),
    )
    .values(retired_at=null(), retired_reason=null(), last_seen=func.now())
)
_TRIM_LINKS = text(
    f"""
    DELETE FROM links l USING (
        SELECT source_id, target_id, type FROM links WHERE scope_id = :scope AND type <> '{LinkType.DERIVED_FROM}'
        ORDER BY weight, created_at, source_id, target_id
        LIMIT greatest((SELECT count(*) FROM links WHERE scope_id = :scope) - :most, 0)) weak
    WHERE l.scope_id = :scope AND l.source_id = weak.source_id AND l.target_id = weak.target_id AND l.type = weak.type
    """
)
_OLD_RUNS = select(runs.c.id).where(
    runs.c.scope_id == bindparam("scope"),
    runs.c.finished_at <= func.now() - bindparam("age", type_=Interval),
)
_DROP_IMAGES = delete(images).where(images.c.scope_id == bindparam("scope"), images.c.run_id.in_(_OLD_RUNS))


@dataclass(frozen=True, slots=True)
class Bounds:
    """No more current memories and links than these are in a scope; None: nobody has counted them."""

    memories: int | None
    links: int | None


@dataclass(frozen=True, slots=True)
class LinkedMemory:
    """A current memory without its text, and the number of its links."""

    memory: Memory
    degree: int
    is_vital: bool = False


def current(
    connection: Connection, scope_id: int, *, session_id: int | None = None
) -> tuple[LinkedMemory, ...]:
    """Every current memory of the scope, or of one session of it."""
    rows = connection.execute(_HELD, {"scope": scope_id, "session": session_id})
    return tuple(map(_linked_memory, rows))


def current_count(connection: Connection, scope_id: int, *, limit: int) -> int:
    """How many current memories there are; counting stops at ``limit``."""
    return int(connection.execute(_COUNT, {"scope": scope_id, "most": limit}).scalar_one())


def link_count(connection: Connection, scope_id: int) -> int:
    """How many links of whatever type there are; reads all of their index."""
    return int(connection.execute(_LINK_COUNT, {"scope": scope_id}).scalar_one())


def note_written(connection: Connection, scope_id: int) -> Bounds:
    """Add what this transaction stored to what may be there; the new bounds. The scope's row must be locked.

    Adds the memories and those links that begin at one of them. Who makes memories current again, or links older ones,
    must call `forget_bounds`.
    """
    row = connection.execute(_NOTE_WRITTEN, {"scope": scope_id}).one()
    return Bounds(row.memories, row.links)


def note_memories(connection: Connection, scope_id: int, count: int | None) -> None:
    """There are no more current memories than ``count``; None: nobody knows."""
    connection.execute(_NOTE_COUNTED, {"scope": scope_id, "most_memories": count})


def note_links(connection: Connection, scope_id: int, count: int | None) -> None:
    """There are no more links than ``count``; None: nobody knows."""
    connection.execute(_NOTE_COUNTED, {"scope": scope_id, "most_links": count})


def forget_bounds(connection: Connection, scope_id: int) -> None:
    """Have the next write count: rows came into the scope, or are current again, that `note_written` does not see."""
    note_memories(connection, scope_id, None)
    note_links(connection, scope_id, None)


def overdue(
    connection: Connection, scope_id: int, *, recoverable: timedelta, merged: timedelta, limit: int
) -> tuple[UUID, ...]:
    """Retired rows whose recoverable stage is over, and the oldest of more than ``limit`` of them."""
    values = {"scope": scope_id, "recoverable": recoverable, "merged": merged, "most": limit}
    return tuple(connection.execute(_OVERDUE, values).scalars())


def next_overdue(
    connection: Connection, scope_id: int, *, recoverable: timedelta, merged: timedelta
) -> datetime | None:
    """When the next recoverable stage ends."""
    values = {"scope": scope_id, "recoverable": recoverable, "merged": merged}
    return connection.execute(_NEXT_OVERDUE, values).scalar_one()  # type: ignore[no-any-return]


def revive(connection: Connection, scope_id: int, memory_id: UUID) -> bool:
    """Make an expired or evicted row current again, as if just seen; False when it is neither."""
    return connection.execute(_REVIVE, {"scope": scope_id, "memory": memory_id}).rowcount == 1


def trim_links(connection: Connection, scope_id: int, *, limit: int) -> int:
    """Delete the weakest links above ``limit``; how many went.

    Where a memory comes from (``derived_from``) is never cut, also where that alone is more than ``limit``: without it
    nobody could say why the memory is there, undo what made it, or forget it with its source. Those links are few for
    each memory, and go with either end.
    """
    return connection.execute(_TRIM_LINKS, {"scope": scope_id, "most": limit}).rowcount


def drop_images(connection: Connection, scope_id: int, *, age: timedelta) -> int:
    """Forget what jobs older than ``age`` changed; they cannot be undone any more."""
    return connection.execute(_DROP_IMAGES, {"scope": scope_id, "age": age}).rowcount


def _linked_memory(row: Row[Any]) -> LinkedMemory:
    memory = Memory(
        id=row.id,
        kind=row.kind,
        text="",
        created_at=row.created_at,
        valid_from=row.valid_from,
        importance=row.importance,
        confidence=row.confidence,
        pinned=row.pinned,
        last_seen=row.last_seen,
        last_recalled=row.last_recalled,
        repeat_count=row.repeat_count,
        recall_count=row.recall_count,
        feedback_score=row.feedback_score,
    )
    return LinkedMemory(memory, int(row.degree), row.is_vital)
