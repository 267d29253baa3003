"""What the write path looks at before it judges a statement: in few round trips, since the scope's row is held.

In a scope that has a search index of its own the nearest rows come from there; else the rows of the kind are scanned.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, TextClause, text

from memory_app.store.memory_rows import COLUMNS, Stored, stored
from memory_app.store.vectors import vector_text


@dataclass(frozen=True, slots=True)
class Footing:
    """What holds at the moment of judging: the database's clock, the slugs of merged entities and of what each was
    merged into, whether the scope has vectors of the model and a search index for them, and how many of the sources are
    there."""

    now: datetime
    heirs: Mapping[str, str]
    knows_model: bool
    is_indexed: bool
    sources: int


@dataclass(frozen=True, slots=True)
class Asked:
    """What a statement is compared with. ``subject_keys`` are all slugs of its subject; ``merge`` the cosine from which
    the statements behind a row matter."""

    session_id: int | None
    kind: str
    vector: Sequence[float]
    model: str
    canonical_key: str
    subject_keys: Sequence[str]
    relations: Sequence[str]
    merge: float
    limit: int


_FOOTING = text(
    """
    SELECT now() AS now, set_config('hnsw.ef_search', '60', true) AS candidates,
        set_config('hnsw.iterative_scan', 'relaxed_order', true) AS iterates,
        (SELECT s.is_indexed FROM scope_models s WHERE s.scope_id = :scope AND s.model = :model) AS is_indexed,
        (SELECT count(*) FROM turns t WHERE t.scope_id = ANY(:turn_scopes) AND t.id = ANY(:turns))
            + (SELECT count(*) FROM memories m WHERE m.scope_id = :scope AND m.id = ANY(:parents)) AS sources,
        (SELECT jsonb_object_agg(h.alias, h.heir) FROM (
            SELECT split_part(a.key, ':', 2) AS alias, min(split_part(h.key, ':', 2)) AS heir
            FROM entities a JOIN entities h ON h.scope_id = a.scope_id AND h.id = a.merged_into
            WHERE a.scope_id = :scope AND a.merged_into IS NOT NULL
              AND split_part(a.key, ':', 2) <> split_part(h.key, ':', 2)
              AND NOT EXISTS (SELECT FROM entities o WHERE o.scope_id = a.scope_id AND o.merged_into IS NULL
                              AND split_part(o.key, ':', 2) = split_part(a.key, ':', 2))
            GROUP BY 1) h) AS heirs
    """
)
_SCANNED = """
    SELECT n.id FROM memories n
    WHERE n.scope_id = :scope AND n.embedding_model = :model AND n.kind = :kind
      AND n.session_id IS NOT DISTINCT FROM :session AND n.retired_at IS NULL AND n.valid_until IS NULL
    ORDER BY n.embedding <=> CAST(:vector AS halfvec) LIMIT :limit"""
_INDEXED = """
    SELECT n.id FROM memories n
    WHERE n.scope_id = {scope} AND n.embedding_model = {model} AND n.kind = :kind
      AND n.session_id IS NULL AND n.retired_at IS NULL AND n.valid_until IS NULL
    ORDER BY CAST(n.embedding AS halfvec({dimensions})) <=> CAST(:vector AS halfvec({dimensions})) LIMIT :limit"""
_NEIGHBOURS = f"""
    SELECT {COLUMNS}, m.similarity,
           CASE WHEN m.similarity >= :merge THEN
               (WITH RECURSIVE behind AS (
                    SELECT p.id, p.embedding FROM memories p
                    WHERE p.scope_id = :scope AND p.successor = m.id AND p.retired_reason = 'merged'
                    UNION ALL
                    SELECT p.id, p.embedding FROM behind b
                    JOIN memories p ON p.scope_id = :scope AND p.successor = b.id AND p.retired_reason = 'merged')
                SELECT min(1 - (behind.embedding <=> CAST(:vector AS halfvec))) FROM behind) END AS cohesion
    FROM (
        SELECT m.*, CASE WHEN m.embedding_model = :model
                         THEN 1 - (m.embedding <=> CAST(:vector AS halfvec)) ELSE 0 END AS similarity
        FROM memories m
        WHERE m.scope_id = :scope AND m.id IN (
            ({{nearest}})
            UNION
            (SELECT n.id FROM memories n
             WHERE n.scope_id = :scope AND n.session_id IS NOT DISTINCT FROM :session AND n.kind = :kind
               AND n.canonical_key = :canonical_key
               AND (n.retired_at IS NULL OR n.retired_reason IN ('superseded', 'invalidated')))
            UNION
            (SELECT n.id FROM memories n
             WHERE n.scope_id = :scope AND n.kind = :kind AND n.subject_key = ANY(:subject_keys)
               AND n.relation = ANY(:relations)
               AND (n.retired_at IS NULL OR n.retired_reason IN ('superseded', 'invalidated')))
        ) OFFSET 0) m
    """
_SCANNING = text(_NEIGHBOURS.format(nearest=_SCANNED))


def footing(
    connection: Connection,
    scope_id: int,
    *,
    model: str,
    turn_ids: Sequence[UUID],
    parents: Sequence[UUID],
    turn_scopes: Sequence[int],
) -> Footing:
    """What holds now; ``sources`` counts those of the turns and parents that are there.

    Sets how the index is gone through for the rest of the transaction: it also holds rows of other kinds and retired
    ones, and without the iterative scan too few would be left.
    """
    values = {
        "scope": scope_id,
        "model": model,
        "turns": list(turn_ids),
        "parents": list(parents),
        "turn_scopes": list(turn_scopes),
    }
    row = connection.execute(_FOOTING, values).one()
    return Footing(
        row.now, row.heirs or {}, row.is_indexed is not None, bool(row.is_indexed), int(row.sources)
    )


def neighbours(
    connection: Connection, scope_id: int, asked: Asked, *, is_indexed: bool = False
) -> tuple[Stored, ...]:
    """The nearest current rows of the kind, the row that says the same, and every row of the same subject and relation,
    history included; most similar first."""
    values = {
        "scope": scope_id,
        "session": asked.session_id,
        "kind": asked.kind,
        "vector": vector_text(asked.vector),
        "model": asked.model,
        "canonical_key": asked.canonical_key,
        "subject_keys": list(asked.subject_keys),
        "relations": list(asked.relations),
        "merge": asked.merge,
        "limit": asked.limit,
    }
    statement = _SCANNING
    if is_indexed and asked.session_id is None:
        statement = _asking(scope_id, asked.model, len(asked.vector))
    rows = connection.execute(statement, values)
    return tuple(sorted((stored(row) for row in rows), key=lambda s: (-s.similarity, s.memory.id)))


@lru_cache(maxsize=1024)
def _asking(scope_id: int, model: str, dimensions: int) -> TextClause:
    """A statement of the scope's own: its number and model are literals, or the partial index would not fit."""
    literal: Any = "'" + model.replace("'", "''").replace(":", "\\:") + "'"
    nearest = _INDEXED.format(scope=int(scope_id), model=literal, dimensions=int(dimensions))
    return text(_NEIGHBOURS.format(nearest=nearest))
