"""Links between memories: drawn from one end, followed by graph expansion from either."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import Connection, text


@dataclass(frozen=True, slots=True)
class Link:
    """One edge, seen from ``source_id``, whichever end it was drawn from. ``weight`` 0–1."""

    source_id: UUID
    target_id: UUID
    type: str
    weight: float


_AROUND = text(
    """
    SELECT source_id, target_id, type, max(weight) AS weight FROM (
        SELECT l.source_id, l.target_id, l.type, l.weight FROM links l
        WHERE l.scope_id = ANY(:scopes) AND l.source_id = ANY(:ids)
        UNION ALL
        SELECT l.target_id, l.source_id, l.type, l.weight FROM links l
        WHERE l.scope_id = ANY(:scopes) AND l.target_id = ANY(:ids)) AS seen
    GROUP BY source_id, target_id, type ORDER BY weight DESC, target_id, source_id LIMIT :limit
    """
)

_DEGREE = text(
    """
    SELECT count(*) FROM (
        SELECT FROM links l WHERE l.scope_id = :scope AND l.source_id = :id
        UNION ALL
        SELECT FROM links l WHERE l.scope_id = :scope AND l.target_id = :id) AS ends
    """
)
_ADD = text(
    """
    INSERT INTO links (tenant_id, scope_id, source_id, target_id, type, weight)
    SELECT :tenant, :scope, :source, v.id, :type, v.weight
    FROM unnest(CAST(:targets AS uuid[]), CAST(:weights AS real[])) AS v(id, weight)
    ON CONFLICT (scope_id, source_id, target_id, type) DO UPDATE SET weight = excluded.weight
    """
)


def add(
    connection: Connection,
    tenant_id: int,
    scope_id: int,
    source: UUID,
    targets: Iterable[tuple[UUID, float]],
    *,
    type: str,
) -> None:
    """Typed, weighted edges from one memory to others of the same scope."""
    pairs = [pair for pair in targets if pair[0] != source]
    if pairs:
        values = {
            "tenant": tenant_id,
            "scope": scope_id,
            "source": source,
            "type": type,
            "targets": [target for target, _ in pairs],
            "weights": [weight for _, weight in pairs],
        }
        connection.execute(_ADD, values)


def degree(connection: Connection, scope_id: int, memory_id: UUID) -> int:
    """How many links begin or end at a memory."""
    return int(connection.execute(_DEGREE, {"scope": scope_id, "id": memory_id}).scalar_one())


def around(
    connection: Connection, scope_ids: Sequence[int], ids: Sequence[UUID], *, limit: int
) -> tuple[Link, ...]:
    """Links of these memories, strongest first."""
    if not ids:
        return ()
    rows = connection.execute(_AROUND, {"scopes": list(scope_ids), "ids": list(ids), "limit": limit})
    return tuple(Link(row.source_id, row.target_id, row.type, float(row.weight)) for row in rows)
