"""Links between memories: drawn from one end, followed by graph expansion from either."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Row, text

from memory_app.memories.link_id import LinkId
from memory_app.records.records import LinkType


@dataclass(frozen=True, slots=True)
class Link:
    """One edge, seen from ``source_id``, whichever end it was drawn from. ``weight`` 0–1."""

    source_id: UUID
    target_id: UUID
    type: str
    weight: float


@dataclass(frozen=True, slots=True)
class DrawnLink:
    """One edge in the direction in which it was drawn. ``weight`` 0–1."""

    source_id: UUID
    target_id: UUID
    type: str
    weight: float
    created_at: datetime


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

_DRAWN = "l.source_id, l.target_id, l.type, l.weight, l.created_at"
_IS_LINK = "l.scope_id = :scope AND l.source_id = :source AND l.target_id = :target AND l.type = :type"
_READ = text(f"SELECT {_DRAWN} FROM links l WHERE {_IS_LINK}")
_REMOVE = text(f"DELETE FROM links l WHERE {_IS_LINK}")
_DRAWN_AT = text(
    f"""
    SELECT {_DRAWN} FROM links l WHERE l.scope_id = :scope AND l.source_id = :id
    UNION ALL
    SELECT {_DRAWN} FROM links l WHERE l.scope_id = :scope AND l.target_id = :id
    ORDER BY weight DESC, created_at DESC, source_id, target_id, type LIMIT :limit
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
_RANKED = f"""
    SELECT k.*, row_number() OVER (
               PARTITION BY k.id ORDER BY k.weight DESC, k.created_at DESC, k.other, k.type) AS place
    FROM (
        SELECT l.source_id AS id, l.target_id AS other, l.type, l.weight, l.created_at, l.ctid AS row FROM links l
        WHERE l.scope_id = :scope AND l.source_id = ANY(:ids) AND l.type <> '{LinkType.DERIVED_FROM}'
        UNION ALL
        SELECT l.target_id, l.source_id, l.type, l.weight, l.created_at, l.ctid FROM links l
        WHERE l.scope_id = :scope AND l.target_id = ANY(:ids) AND l.type <> '{LinkType.DERIVED_FROM}') k"""
_CUT = text(
    f"DELETE FROM links WHERE ctid = ANY(ARRAY(SELECT r.row FROM ({_RANKED}) r WHERE r.place > :most))"
)
"""By their places in the table, which the lock on the scope's row keeps: a join would be planned for the few links that
the scope had when statistics were taken."""
_FULL = text(f"SELECT r.id, r.weight FROM ({_RANKED}) r WHERE r.place = :most")

Edge = tuple[UUID, UUID, float]
"""Where a link begins, where it ends, and its weight, 0–1."""


def add(
    connection: Connection,
    tenant_id: int,
    scope_id: int,
    *,
    edges: Iterable[Edge],
    type: LinkType,
    limit: int | None = None,
) -> None:
    """Draw typed links between memories of the scope.

    With ``limit`` a memory at either end keeps its strongest links only, as many as that; equal ones give way to newer.
    What says where a memory comes from is neither counted nor cut.
    """
    # A CHECK refuses a link of a memory to itself, and would fail the whole statement.
    drawn = [edge for edge in edges if edge[0] != edge[1]]
    if not drawn:
        return
    sources, targets, weights = zip(*drawn, strict=True)
    values = {
        "tenant": tenant_id,
        "scope": scope_id,
        "type": type,
        "sources": list(sources),
        "targets": list(targets),
        "weights": list(weights),
    }
    connection.execute(_ADD, values)
    if limit is not None:
        # A new link counts at both of its ends.
        ends = {*sources, *targets}
        connection.execute(_CUT, {"scope": scope_id, "ids": list(ends), "most": limit})


def full(connection: Connection, scope_id: int, ids: Sequence[UUID], *, limit: int) -> dict[UUID, float]:
    """Those of the memories that have ``limit`` links already, with the weight of the weakest that counts: only a
    stronger one would stay."""
    if not ids:
        return {}
    rows = connection.execute(_FULL, {"scope": scope_id, "ids": list(set(ids)), "most": limit})
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
    return tuple(
        Link(
            row.source_id,
            row.target_id,
            type=row.type,
            weight=float(row.weight),
        )
        for row in rows
    )


def read(connection: Connection, scope_id: int, link: LinkId) -> DrawnLink | None:
    row = connection.execute(_READ, _named(scope_id, link)).one_or_none()
    return None if row is None else _drawn(row)


def drawn_at(connection: Connection, scope_id: int, memory_id: UUID, *, limit: int) -> tuple[DrawnLink, ...]:
    """Links that begin or end at a memory, strongest first, in the direction in which they were drawn."""
    rows = connection.execute(_DRAWN_AT, {"scope": scope_id, "id": memory_id, "limit": limit})
    return tuple(map(_drawn, rows))


def remove(connection: Connection, scope_id: int, link: LinkId) -> bool:
    """Delete one link; False where there is none."""
    return connection.execute(_REMOVE, _named(scope_id, link)).rowcount == 1


def _named(scope_id: int, link: LinkId) -> dict[str, object]:
    return {"scope": scope_id, "source": link.source, "target": link.target, "type": link.type}


def _drawn(row: Row[Any]) -> DrawnLink:
    return DrawnLink(
        row.source_id,
        row.target_id,
        type=row.type,
        weight=float(row.weight),
        created_at=row.created_at,
    )
