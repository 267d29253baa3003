"""What somebody looks through page by page: facts with the turn that said them, entities that stand together, growth.

Each query is bounded by its page, however much the scope holds; the growth is read from ids alone, which tell when a
row was stored.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from uuid import UUID

from sqlalchemy import Connection, text

from memory_app.db.literals import literals
from memory_app.memories.rows.facts import KIND
from memory_app.memories.rows.memory_rows import COLUMNS, memory_of
from memory_app.records.records import HISTORICAL, Memory

QUOTED_CHARS = 300
"""Of a turn, beside the fact that it said."""


@dataclass(frozen=True, slots=True)
class Saying:
    """The beginning of the turn in which a fact was said first."""

    speaker: str
    text: str
    at: datetime


@dataclass(frozen=True, slots=True)
class ToldFact:
    """A fact, ended ones included, and where it was said; None for one that was declared."""

    memory: Memory
    said: Saying | None


@dataclass(frozen=True, slots=True)
class Tie:
    """Two entities, by their ids, that stand in the same current memories, and in how many."""

    one: int
    other: int
    memories: int


# What was ended where it began never held.
_TOLD = text(
    f"""
    SELECT {COLUMNS}, said.speaker AS said_by, said.text AS said_text, said.at AS said_at
    FROM unnest(CAST(:scopes AS bigint[])) AS s(id)
    CROSS JOIN LATERAL (
        SELECT m.* FROM memories m
        WHERE m.scope_id = s.id AND m.kind = '{KIND}' AND (CAST(:before AS uuid) IS NULL OR m.id < :before)
          AND (m.retired_at IS NULL OR m.retired_reason IN ({literals(HISTORICAL)}))
          AND m.valid_until IS DISTINCT FROM m.valid_from
        ORDER BY m.id DESC LIMIT :limit) m
    LEFT JOIN LATERAL (
        SELECT t.speaker, left(t.text, {QUOTED_CHARS}) AS text, t.at FROM evidence e
        JOIN turns t ON t.scope_id = e.turn_scope_id AND t.id = e.turn_id
        WHERE e.scope_id = m.scope_id AND e.memory_id = m.id ORDER BY t.at, t.id LIMIT 1) said ON true
    ORDER BY m.id DESC LIMIT :limit
    """
)
_TIES = text(
    """
    SELECT a.entity_id AS one, b.entity_id AS other, count(*) AS memories
    FROM mentions a JOIN mentions b ON b.scope_id = a.scope_id AND b.memory_id = a.memory_id
                                   AND b.entity_id > a.entity_id
    JOIN memories m ON m.scope_id = a.scope_id AND m.id = a.memory_id
    WHERE a.scope_id = ANY(:scopes) AND a.entity_id = ANY(:ids) AND b.entity_id = ANY(:ids)
      AND m.retired_at IS NULL
    GROUP BY 1, 2 ORDER BY 3 DESC, 1, 2 LIMIT :limit
    """
)
# The first 48 bits of an id are the milliseconds since 1970, so the key of the table is enough, and no row is read.
_MILLISECONDS = "('x' || left(replace(id::text, '-', ''), 12))::bit(48)::bigint"
_DAY = f"(to_timestamp({_MILLISECONDS} / 1000.0) AT TIME ZONE 'UTC')::date"
_SINCE = """CAST(lpad(to_hex(CAST(floor(extract(epoch FROM now() - make_interval(days => :days)) * 1000) AS bigint)),
    12, '0') || repeat('0', 20) AS uuid)"""
_GROWTH = text(
    f"""
    SELECT 'memories' AS what, {_DAY} AS day, count(*) AS n FROM memories
    WHERE scope_id = :scope AND id >= {_SINCE} GROUP BY 2
    UNION ALL
    SELECT 'turns', {_DAY}, count(*) FROM turns WHERE scope_id = :scope AND id >= {_SINCE} GROUP BY 2
    ORDER BY 1, 2
    """
)
_DEGREES = text(
    """
    SELECT ends.id, count(*) AS n FROM (
        SELECT l.source_id AS id FROM links l WHERE l.scope_id = ANY(:scopes) AND l.source_id = ANY(:ids)
        UNION ALL
        SELECT l.target_id FROM links l WHERE l.scope_id = ANY(:scopes) AND l.target_id = ANY(:ids)) AS ends
    GROUP BY ends.id
    """
)


def told_facts(
    connection: Connection, scope_ids: Sequence[int], *, limit: int, before: UUID | None
) -> tuple[ToldFact, ...]:
    """Facts that hold or held, the newest row first; ``before`` is the last id of the page before."""
    rows = connection.execute(_TOLD, {"scopes": list(scope_ids), "limit": limit, "before": before})
    return tuple(
        ToldFact(
            memory_of(row),
            None if row.said_at is None else Saying(row.said_by, row.said_text, row.said_at),
        )
        for row in rows
    )


def ties(
    connection: Connection, scope_ids: Sequence[int], entity_ids: Collection[int], *, limit: int
) -> tuple[Tie, ...]:
    """Which of the entities stand in the same memories, those most often together first."""
    if not entity_ids:
        return ()
    values = {"scopes": list(scope_ids), "ids": list(entity_ids), "limit": limit}
    return tuple(Tie(**row._mapping) for row in connection.execute(_TIES, values))


def growth(connection: Connection, scope_id: int, *, days: int) -> Mapping[str, Mapping[date, int]]:
    """How many ``memories`` and ``turns`` were stored on each of the last days (UTC); days without any are left out."""
    counts: dict[str, dict[date, int]] = {"memories": {}, "turns": {}}
    for row in connection.execute(_GROWTH, {"scope": scope_id, "days": days}):
        counts[row.what][row.day] = row.n
    return counts


def degrees(connection: Connection, scope_ids: Sequence[int], ids: Collection[UUID]) -> Mapping[UUID, int]:
    """How many links begin or end at each of the memories; those without any are left out."""
    if not ids:
        return {}
    rows = connection.execute(_DEGREES, {"scopes": list(scope_ids), "ids": list(ids)})
    return {row.id: int(row.n) for row in rows}
