"""What memories were derived from. The scope's row must be locked.

A link goes with either of its ends. So before a row is deleted its place as a source is given to the row that holds
the same; `unsupported` returns what has no source after that.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import Connection, text

from memory_app.db.literals import literals
from memory_app.records.records import FROM_EVIDENCE, LinkType, Retirement

_RESTING = text(
    f"""
    SELECT l.source_id AS id FROM links l
    WHERE l.scope_id = :scope AND l.target_id = ANY(:ids) AND l.type = '{LinkType.DERIVED_FROM}'
      AND l.source_id <> ALL(:ids)
    UNION
    SELECT m.successor FROM memories m
    WHERE m.scope_id = :scope AND m.id = ANY(:ids) AND m.retired_reason = '{Retirement.MERGED}'
      AND m.successor <> ALL(:ids)
    """
)
_UNSUPPORTED = text(
    f"""
    SELECT m.id FROM memories m
    WHERE m.scope_id = :scope AND m.id = ANY(:ids) AND m.retired_at IS NULL
      AND m.origin IN ({literals(FROM_EVIDENCE)})
      AND NOT EXISTS (SELECT FROM evidence e WHERE e.scope_id = :scope AND e.memory_id = m.id)
      AND NOT EXISTS (SELECT FROM links l
                      WHERE l.scope_id = :scope AND l.source_id = m.id AND l.type = '{LinkType.DERIVED_FROM}')
      AND NOT EXISTS (SELECT FROM memories p
                      WHERE p.scope_id = :scope AND p.successor = m.id AND p.retired_reason = '{Retirement.MERGED}')
    ORDER BY m.id
    """
)
_DERIVED = text(
    f"""
    WITH RECURSIVE derived AS (
        SELECT l.source_id AS id, l.target_id AS origin FROM links l
        WHERE l.scope_id = :scope AND l.target_id = ANY(:ids) AND l.type = '{LinkType.DERIVED_FROM}'
          AND l.source_id <> ALL(:ids)
        UNION
        SELECT m.successor, d.origin FROM derived d
        JOIN memories m ON m.scope_id = :scope AND m.id = d.id
        WHERE m.retired_reason = '{Retirement.MERGED}' AND m.successor <> ALL(:ids)
    )
    SELECT m.id, min(d.origin::text)::uuid AS origin FROM derived d
    JOIN memories m ON m.scope_id = :scope AND m.id = d.id
    WHERE m.retired_at IS NULL AND m.origin IN ({literals(FROM_EVIDENCE)})
    GROUP BY m.id ORDER BY m.id
    """
)
# A merged row may have been merged again, so the heir is the first in the chain that is not deleted with it.
_HAND_TO_HEIRS = text(
    f"""
    WITH RECURSIVE steps AS (
        SELECT m.id, m.successor AS heir FROM memories m
        WHERE m.scope_id = :scope AND m.id = ANY(:ids) AND m.retired_reason = '{Retirement.MERGED}'
          AND m.successor IS NOT NULL
        UNION
        SELECT s.id, m.successor FROM steps s
        JOIN memories m ON m.scope_id = :scope AND m.id = s.heir AND m.id = ANY(:ids)
        WHERE m.retired_reason = '{Retirement.MERGED}' AND m.successor IS NOT NULL
    ), heirs AS (SELECT id, heir FROM steps WHERE heir <> ALL(:ids)),
    handed AS (
        SELECT l.tenant_id, coalesce(s.heir, l.source_id) AS source_id, coalesce(t.heir, l.target_id) AS target_id,
               max(l.weight) AS weight
        FROM links l LEFT JOIN heirs s ON s.id = l.source_id LEFT JOIN heirs t ON t.id = l.target_id
        WHERE l.scope_id = :scope AND l.type = '{LinkType.DERIVED_FROM}'
          AND (l.source_id = ANY(:ids) OR l.target_id = ANY(:ids))
        GROUP BY 1, 2, 3
    )
    INSERT INTO links (tenant_id, scope_id, source_id, target_id, type, weight)
    SELECT h.tenant_id, :scope, h.source_id, h.target_id, '{LinkType.DERIVED_FROM}', h.weight FROM handed h
    WHERE h.source_id <> h.target_id AND h.source_id <> ALL(:ids) AND h.target_id <> ALL(:ids)
    ON CONFLICT DO NOTHING
    """
)
# A part may itself be taken apart at the same time; what was derived then rests on the parts of that part.
_HAND_TO_PARTS = text(
    f"""
    WITH RECURSIVE steps AS (
        SELECT m.successor AS id, m.id AS part FROM memories m
        WHERE m.scope_id = :scope AND m.successor = ANY(:ids) AND m.retired_reason = '{Retirement.MERGED}'
        UNION
        SELECT s.id, m.id FROM steps s
        JOIN memories m ON m.scope_id = :scope AND m.successor = s.part AND m.retired_reason = '{Retirement.MERGED}'
        WHERE s.part = ANY(:ids)
    )
    INSERT INTO links (tenant_id, scope_id, source_id, target_id, type, weight)
    SELECT l.tenant_id, :scope, l.source_id, s.part, '{LinkType.DERIVED_FROM}', max(l.weight)
    FROM steps s JOIN links l ON l.scope_id = :scope AND l.target_id = s.id AND l.type = '{LinkType.DERIVED_FROM}'
    WHERE s.part <> ALL(:ids) AND l.source_id <> ALL(:ids) AND l.source_id <> s.part
    GROUP BY l.tenant_id, l.source_id, s.part
    ON CONFLICT DO NOTHING
    """
)


def resting(connection: Connection, scope_id: int, ids: Sequence[UUID]) -> tuple[UUID, ...]:
    """Memories besides ``ids`` that were derived from them, or that they were merged into."""
    return tuple(connection.execute(_RESTING, {"scope": scope_id, "ids": list(ids)}).scalars())


def unsupported(connection: Connection, scope_id: int, ids: Sequence[UUID]) -> tuple[UUID, ...]:
    """Those of ``ids`` that are current, need a source, and have neither a turn nor a memory that they rest on."""
    return tuple(connection.execute(_UNSUPPORTED, {"scope": scope_id, "ids": list(ids)}).scalars())


def derived(connection: Connection, scope_id: int, ids: Sequence[UUID]) -> tuple[tuple[UUID, UUID], ...]:
    """Current memories besides ``ids`` that stand on them, each with the one it was derived from; those into which
    what was derived has been merged too."""
    rows = connection.execute(_DERIVED, {"scope": scope_id, "ids": list(ids)})
    return tuple((row.id, row.origin) for row in rows)


def hand_to_heirs(connection: Connection, scope_id: int, ids: Sequence[UUID]) -> int:
    """Before merged rows are deleted: what was derived from them rests on what they were merged into, which rests on
    what they were derived from; how many links were drawn."""
    return connection.execute(_HAND_TO_HEIRS, {"scope": scope_id, "ids": list(ids)}).rowcount


def hand_to_parts(connection: Connection, scope_id: int, ids: Sequence[UUID]) -> int:
    """Before united rows are taken apart: what was derived from them rests on their parts; how many links were
    drawn."""
    return connection.execute(_HAND_TO_PARTS, {"scope": scope_id, "ids": list(ids)}).rowcount
