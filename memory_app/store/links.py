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
    SELECT :tenant, :scope, v.source, v.target, :type, max(v.weight)
    FROM unnest(CAST(:sources AS uuid[]), CAST(:targets AS uuid[]), CAST(:weights AS real[]))
        AS v(source, target, weight)
    GROUP BY v.source, v.target
    ON CONFLICT (scope_id, source_id, target_id, type) DO UPDATE SET weight = excluded.weight
    """
)
_OF_END = """SELECT l.source_id, l.target_id, l.type, l.weight, l.created_at FROM links l
        WHERE l.scope_id = :scope AND l.{end} = e.id AND l.type <> 'derived_from'"""
_RANKED = f"""
    SELECT e.id, k.*, row_number() OVER (
               PARTITION BY e.id ORDER BY k.weight DESC, k.created_at DESC, k.source_id, k.target_id, k.type) AS place
    FROM (SELECT DISTINCT v.id FROM unnest(CAST(:ids AS uuid[])) AS v(id)) e
    CROSS JOIN LATERAL (
        {_OF_END.format(end="source_id")}
        UNION ALL
        {_OF_END.format(end="target_id")}) k"""
_CUT = text(
    f"""
    DELETE FROM links l USING (SELECT r.* FROM ({_RANKED}) r WHERE r.place > :most) weak
    WHERE l.scope_id = :scope AND l.source_id = weak.source_id AND l.target_id = weak.target_id AND l.type = weak.type
    """
)
_FULL = text(f"SELECT r.id, r.weight FROM ({_RANKED}) r WHERE r.place = :most")

Edge = tuple[UUID, UUID, float]
"""Where a link begins, where it ends, and its weight, 0–1."""


def add(
    connection: Connection,
    tenant_id: int,
    scope_id: int,
    edges: Iterable[Edge],
    *,
    type: str,
    most: int | None = None,
) -> None:
    """Draw typed links between memories of the scope.

    With ``most`` a memory at either end keeps its strongest links only, as many as that; equal ones give way to newer.
    What says where a memory comes from is neither counted nor cut.
    """
    drawn = [edge for edge in edges if edge[0] != edge[1]]
    if not drawn:
        return
    values = {
        "tenant": tenant_id,
        "scope": scope_id,
        "type": type,
        "sources": [source for source, _, _ in drawn],
        "targets": [target for _, target, _ in drawn],
        "weights": [weight for _, _, weight in drawn],
    }
    connection.execute(_ADD, values)
    if most is not None:
        ends = [end for source, target, _ in drawn for end in (source, target)]
        connection.execute(_CUT, {"scope": scope_id, "ids": ends, "most": most})


def full(connection: Connection, scope_id: int, ids: Sequence[UUID], *, most: int) -> dict[UUID, float]:
    """Those of the memories that have ``most`` links already, with the weight of the weakest that counts: only a
    stronger one would stay."""
    if not ids:
        return {}
    rows = connection.execute(_FULL, {"scope": scope_id, "ids": list(ids), "most": most})
    return {row.id: float(row.weight) for row in rows}


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
