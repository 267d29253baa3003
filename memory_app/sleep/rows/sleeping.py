"""Queries of a sleep cycle: merge depths, heirs, topics, duplicates, and runs of the scope."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import BigInteger, Connection, Row, bindparam, or_, select, text

from memory_app.db.expressions import among
from memory_app.db.literals import literals
from memory_app.db.tables.memories import links, memories
from memory_app.db.tables.search import speakers as speakers_table
from memory_app.memories.rows.memory_rows import NewMemory
from memory_app.records.records import LinkType, Retirement
from memory_app.records.run import OPEN, RunName, RunState
from memory_app.sleep.rules import Topic

_BEHIND = f"""
    WITH RECURSIVE behind AS (
        SELECT m.id AS top, m.id, 0 AS depth FROM memories m WHERE m.scope_id = :scope AND m.id = ANY(:ids)
        UNION ALL
        SELECT b.top, p.id, b.depth + 1 FROM behind b
        JOIN memories p ON p.scope_id = :scope AND p.successor = b.id AND p.retired_reason = '{Retirement.MERGED}'
    )
"""
_DEPTHS = text(_BEHIND + "SELECT top, max(depth) AS depth FROM behind GROUP BY top")
_HEIRS = text(
    """
    WITH RECURSIVE after AS (
        SELECT m.id AS first, m.id, m.successor, m.retired_at FROM memories m
        WHERE m.scope_id = ANY(:scopes) AND m.id = ANY(:ids)
        UNION ALL
        SELECT a.first, m.id, m.successor, m.retired_at FROM after a
        JOIN memories m ON m.scope_id = ANY(:scopes) AND m.id = a.successor AND a.retired_at IS NOT NULL
    )
    SELECT a.first AS id, a.id AS heir, o.text, h.text AS heir_text,
           CASE WHEN o.embedding_model = h.embedding_model THEN 1 - (o.embedding <=> h.embedding) ELSE 0 END AS cosine
    FROM after a
    JOIN memories o ON o.scope_id = ANY(:scopes) AND o.id = a.first
    JOIN memories h ON h.scope_id = ANY(:scopes) AND h.id = a.id
    WHERE a.retired_at IS NULL
    """
)
# Patterns do not count as evidence of a pattern.
_TOPICS = text(
    """
    SELECT e.id, e.label, m.id AS memory_id, m.valid_from
    FROM mentions n
    JOIN memories m ON m.scope_id = n.scope_id AND m.id = n.memory_id
    JOIN entities e ON e.scope_id = n.scope_id AND e.id = n.entity_id
    WHERE n.scope_id = :scope AND m.retired_at IS NULL AND e.merged_into IS NULL
      AND m.synthesis_type IS DISTINCT FROM 'pattern'
      AND n.entity_id IN (SELECT entity_id FROM mentions WHERE scope_id = :scope
                          GROUP BY entity_id HAVING count(*) >= :least)
    ORDER BY e.id, m.valid_from, m.id
    """
)
_STORED_KEYS = select(memories.c.canonical_key).where(
    memories.c.scope_id == bindparam("scope"), among(memories.c.canonical_key, "keys")
)
_DUPLICATES = text(
    """
    SELECT v.place FROM unnest(CAST(:sessions AS bigint[]), CAST(:kinds AS text[]), CAST(:keys AS text[]))
        WITH ORDINALITY AS v(session_id, kind, key, place)
    WHERE EXISTS (SELECT FROM memories m
        WHERE m.scope_id = :scope AND m.session_id IS NOT DISTINCT FROM v.session_id AND m.kind = v.kind
          AND m.canonical_key = v.key AND m.retired_at IS NULL AND m.valid_until IS NULL
          AND NOT m.id = ANY(:besides))
    """
)
_LINKED = select(links.c.source_id, links.c.target_id).where(
    links.c.scope_id == bindparam("scope"), links.c.type == LinkType.SIMILAR_TO.value
)
_CURRENT = select(memories.c.id).where(
    memories.c.scope_id == bindparam("scope"), memories.c.retired_at.is_(None)
)
_SPEAKERS = select(speakers_table.c.name).where(speakers_table.c.scope_id == bindparam("scope"))
_SESSION = bindparam("session", type_=BigInteger)
_SESSION_MEMORIES = _CURRENT.where(
    memories.c.session_id.is_not(None), or_(_SESSION.is_(None), memories.c.session_id == _SESSION)
).order_by(memories.c.id)
# Only a cycle that changed something and was not undone starts a cool-down.
_LAST_CYCLE = text(
    f"""
    SELECT now() - max(finished_at) FROM runs
    WHERE tenant_id = :tenant AND scope_id = :scope AND name = '{RunName.SLEEP}' AND state = '{RunState.DONE}'
      AND id <> :besides AND report ->> 'applied' = 'true' AND CAST(report ->> 'changes' AS integer) > 0
      AND report ->> 'undone_at' IS NULL AND options ->> 'dry_run' IS DISTINCT FROM 'true'
    """
)
_OPEN_CYCLE = text(
    f"""
    SELECT id FROM runs WHERE tenant_id = :tenant AND scope_id = :scope AND name = :name
      AND state IN ({literals(OPEN)}) ORDER BY created_at LIMIT 1
    """
)
_CARRY = text(
    """
    UPDATE memories m SET repeat_count = m.repeat_count + o.repeat_count - 1,
        recall_count = m.recall_count + o.recall_count,
        feedback_score = greatest(-1, least(1, m.feedback_score + o.feedback_score)),
        last_seen = greatest(m.last_seen, o.last_seen),
        last_recalled = greatest(m.last_recalled, o.last_recalled)
    FROM memories o
    WHERE m.scope_id = :scope AND m.id = :id AND o.scope_id = :scope AND o.id = :source
    """
)


@dataclass(frozen=True, slots=True)
class Heir:
    """The current row that holds what a memory said: itself, or what it was merged into. ``cosine`` between both."""

    id: UUID
    text: str
    own_text: str
    cosine: float


def depths(connection: Connection, scope_id: int, ids: Sequence[UUID]) -> dict[UUID, int]:
    """The depth of the merges behind each memory; 0 for one that nothing was merged into."""
    rows = connection.execute(_DEPTHS, {"scope": scope_id, "ids": list(ids)})
    return {row.top: int(row.depth) for row in rows}


def heirs(connection: Connection, scope_ids: Sequence[int], ids: Sequence[UUID]) -> dict[UUID, Heir]:
    """For each memory that is still current, or that others follow, the current row at the end."""
    rows = connection.execute(_HEIRS, {"scopes": list(scope_ids), "ids": list(ids)})
    return {row.id: _heir(row) for row in rows}


def _heir(row: Row[Any]) -> Heir:
    return Heir(id=row.heir, text=row.heir_text, own_text=row.text, cosine=float(row.cosine))


def topics(connection: Connection, scope_id: int, *, least: int) -> tuple[Topic, ...]:
    """Entities that at least ``least`` memories mention, and those memories, oldest first."""
    memory_ids: dict[int, list[UUID]] = defaultdict(list)
    times: dict[int, list[datetime]] = defaultdict(list)
    labels: dict[int, str] = {}
    for row in connection.execute(_TOPICS, {"scope": scope_id, "least": least}):
        memory_ids[row.id].append(row.memory_id)
        times[row.id].append(row.valid_from)
        labels[row.id] = row.label
    return tuple(
        Topic(entity_id=id, label=label, memories=tuple(memory_ids[id]), at=tuple(times[id]))
        for id, label in labels.items()
    )


def stored_keys(connection: Connection, scope_id: int, keys: Sequence[str]) -> frozenset[str]:
    """Which of the canonical keys were ever stored in the scope: what was retired is not stored again."""
    return frozenset(connection.execute(_STORED_KEYS, {"scope": scope_id, "keys": list(keys)}).scalars())


def duplicates(
    connection: Connection, scope_id: int, rows: Sequence[NewMemory], *, excluding: Sequence[UUID]
) -> frozenset[int]:
    """Places of those ``rows`` whose statement a current row makes already, not counting ``excluding``."""
    values = {
        "scope": scope_id,
        "sessions": [new.session_id for new in rows],
        "kinds": [new.row.memory.kind for new in rows],
        "keys": [new.row.canonical_key for new in rows],
        "besides": list(excluding),
    }
    # ORDINALITY counts from 1.
    return frozenset(place - 1 for place in connection.execute(_DUPLICATES, values).scalars())


def linked_pairs(connection: Connection, scope_id: int) -> frozenset[frozenset[UUID]]:
    """Pairs of memories that are linked as similar, whichever end the link began at."""
    return frozenset(frozenset(row) for row in connection.execute(_LINKED, {"scope": scope_id}))


def current_ids(connection: Connection, scope_id: int) -> frozenset[UUID]:
    """Ids of every current memory of the scope."""
    return frozenset(connection.execute(_CURRENT, {"scope": scope_id}).scalars())


def speakers(connection: Connection, scope_id: int) -> tuple[str, ...]:
    """Names of those who speak in the scope."""
    return tuple(connection.execute(_SPEAKERS, {"scope": scope_id}).scalars())


def session_memories(connection: Connection, scope_id: int, *, session_id: int | None) -> tuple[UUID, ...]:
    """Current memories that belong to a session, or to any."""
    return tuple(connection.execute(_SESSION_MEMORIES, {"scope": scope_id, "session": session_id}).scalars())


def since_last_cycle(
    connection: Connection, tenant_id: int, scope_id: int, *, excluding: UUID
) -> timedelta | None:
    """How long ago the last cycle of the scope ended that changed something, was no dry run and was not undone."""
    values = {"tenant": tenant_id, "scope": scope_id, "besides": excluding}
    return connection.execute(_LAST_CYCLE, values).scalar_one()  # type: ignore[no-any-return]


def open_run(connection: Connection, tenant_id: int, scope_id: int, *, name: str) -> UUID | None:
    """A run of that name on the scope which is not done yet."""
    values = {"tenant": tenant_id, "scope": scope_id, "name": name}
    return connection.execute(_OPEN_CYCLE, values).scalar_one_or_none()


def add_counts(connection: Connection, scope_id: int, memory_id: UUID, *, source: UUID) -> None:
    """Add the repeat, recall and feedback counts of ``source`` to those of a memory."""
    connection.execute(_CARRY, {"scope": scope_id, "id": memory_id, "source": source})
