"""What the write path looks at before it judges statements: in few round trips, since the scope's row is held.

The nearest rows of all statements of a transaction come from one scan of the scope, or from its search index where it
has one. What the transaction itself wrote in the meantime is compared with each statement as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, TextClause, text

from memory_app.db.literals import literals
from memory_app.db.vectors import vector_text
from memory_app.memories.ladder import Neighbour, neighbour_of
from memory_app.memories.rows.fading import SINCE
from memory_app.memories.rows.memory_rows import COLUMNS, row_of
from memory_app.records.records import HISTORICAL, Retirement


@dataclass(frozen=True, slots=True)
class Footing:
    """What holds at the moment of judging: the database's clock, the slugs of merged entities and of what each was
    merged into, whether the scope has vectors of the model and a search index for them, when those of the turns were
    said that are there, and which of the parents are."""

    now: datetime
    heirs: Mapping[str, str]
    knows_model: bool
    is_indexed: bool
    turn_times: Mapping[UUID, datetime]
    parents: frozenset[UUID]


@dataclass(frozen=True, slots=True)
class Comparison:
    """What a statement is compared with. ``subject_keys`` and ``object_keys`` are all slugs of either; ``merge`` the
    cosine from which the statements behind a row matter; ``any_object``: whatever the relations hold of the subject."""

    session_id: int | None
    kind: str
    vector: Sequence[float]
    model: str
    canonical_key: str
    subject_keys: Sequence[str]
    relations: Sequence[str]
    object_keys: Sequence[str]
    any_object: bool
    merge: float
    limit: int


SCANNED_FOR_AT_ONCE = 32
"""Statements whose nearest rows come from one scan: each is a number more to keep for every row."""

# Settings and reads in one statement: each round trip more keeps the scope's row locked for longer.
_FOOTING = text(
    """
    SELECT now() AS now, set_config('hnsw.ef_search', '60', true) AS candidates,
        set_config('hnsw.iterative_scan', 'relaxed_order', true) AS iterates,
        (SELECT s.is_indexed FROM scope_models s WHERE s.scope_id = :scope AND s.model = :model) AS is_indexed,
        t.ids AS turn_ids, t.times AS turn_times,
        ARRAY(SELECT m.id FROM memories m WHERE m.scope_id = :scope AND m.id = ANY(:parents)) AS parents,
        (SELECT jsonb_object_agg(h.alias, h.heir) FROM (
            SELECT split_part(a.key, ':', 2) AS alias, min(split_part(h.key, ':', 2)) AS heir
            FROM entities a JOIN entities h ON h.scope_id = a.scope_id AND h.id = a.merged_into
            WHERE a.scope_id = :scope AND a.merged_into IS NOT NULL
              AND split_part(a.key, ':', 2) <> split_part(h.key, ':', 2)
              AND NOT EXISTS (SELECT FROM entities o WHERE o.scope_id = a.scope_id AND o.merged_into IS NULL
                              AND split_part(o.key, ':', 2) = split_part(a.key, ':', 2))
            GROUP BY 1) h) AS heirs
    FROM (SELECT coalesce(array_agg(t.id), '{}') AS ids, coalesce(array_agg(t.at), '{}') AS times
          FROM turns t WHERE t.scope_id = ANY(:turn_scopes) AND t.id = ANY(:turns)) t
    """
)
# Materialized, or every arm below would scan the scope again.
_SCANNED = """
    scanned AS MATERIALIZED (
        SELECT n.id, n.kind, n.session_id, {distances} FROM memories n
        WHERE n.scope_id = :scope AND n.embedding_model = :model AND n.kind = ANY(:scanned_kinds)
          AND n.retired_at IS NULL AND n.valid_until IS NULL)
    {arms}"""
_SCANNED_ARM = """(SELECT {place} AS place, id FROM scanned
        WHERE kind = (CAST(:kinds AS text[]))[{number}]
          AND session_id IS NOT DISTINCT FROM (CAST(:sessions AS bigint[]))[{number}]
        ORDER BY d{place} LIMIT :limit)"""
_INDEXED_ARM = """(SELECT {place} AS place, n.id FROM memories n
        WHERE n.scope_id = {scope} AND n.embedding_model = {model} AND n.kind = (CAST(:kinds AS text[]))[{number}]
          AND n.session_id IS NULL AND n.retired_at IS NULL AND n.valid_until IS NULL
        ORDER BY CAST(n.embedding AS halfvec({dimensions})) <=> CAST(:vector_{place} AS halfvec({dimensions}))
        LIMIT :limit)"""
# OFFSET 0 keeps the inner select apart: as a part of the outer one each cosine would be computed wherever it is used.
_NEIGHBOURS = f"""
    SELECT {COLUMNS}, m.similarity,
           CASE WHEN m.similarity >= :merge THEN
               (WITH RECURSIVE behind AS (
                    SELECT p.id, p.embedding FROM memories p
                    WHERE p.scope_id = :scope AND p.successor = m.id AND p.retired_reason = '{Retirement.MERGED}'
                    UNION ALL
                    SELECT p.id, p.embedding FROM behind b
                    JOIN memories p ON p.scope_id = :scope AND p.successor = b.id
                        AND p.retired_reason = '{Retirement.MERGED}')
                SELECT min(1 - (behind.embedding <=> CAST(:vector AS halfvec))) FROM behind) END AS cohesion
    FROM (
        SELECT m.*, CASE WHEN m.embedding_model = :model
                         THEN 1 - (m.embedding <=> CAST(:vector AS halfvec)) ELSE 0 END AS similarity
        FROM memories m
        WHERE m.scope_id = :scope AND m.id IN (
            (SELECT n.id FROM (
                 SELECT p.* FROM memories p WHERE p.scope_id = :scope AND p.id = ANY(:near)
                 UNION ALL
                 SELECT p.* FROM memories p
                 WHERE p.scope_id = :scope AND p.id >= {{since}} AND p.stored_at = now() AND NOT p.id = ANY(:near)) n
             WHERE n.embedding_model = :model AND n.kind = :kind AND n.session_id IS NOT DISTINCT FROM :session
               AND n.retired_at IS NULL AND n.valid_until IS NULL
             ORDER BY n.embedding <=> CAST(:vector AS halfvec) LIMIT :limit)
            UNION
            (SELECT n.id FROM memories n
             WHERE n.scope_id = :scope AND n.session_id IS NOT DISTINCT FROM :session AND n.kind = :kind
               AND n.canonical_key = :canonical_key
               AND (n.retired_at IS NULL OR n.retired_reason IN ({literals(HISTORICAL)})))
            UNION
            (SELECT n.id FROM memories n
             WHERE n.scope_id = :scope AND n.kind = :kind AND n.subject_key = ANY(:subject_keys)
               AND n.relation = ANY(:relations) {{same_object}}
               AND (n.retired_at IS NULL OR n.retired_reason IN ({literals(HISTORICAL)})))
        ) OFFSET 0) m
    """
_OF_ONE_OBJECT = text(_NEIGHBOURS.format(since=SINCE, same_object="AND n.object_key = ANY(:object_keys)"))
_OF_ANY_OBJECT = text(_NEIGHBOURS.format(since=SINCE, same_object=""))


def footing(
    connection: Connection,
    scope_id: int,
    *,
    model: str,
    turn_ids: Sequence[UUID],
    parents: Sequence[UUID],
    turn_scopes: Sequence[int],
) -> Footing:
    """What holds now; of the turns and parents those that are there.

    Sets how the index is gone through for the rest of the transaction.
    """
    # The index also holds rows of other kinds and retired ones: without the iterative scan too few would remain.
    values = {
        "scope": scope_id,
        "model": model,
        "turns": list(turn_ids),
        "parents": list(parents),
        "turn_scopes": list(turn_scopes),
    }
    row = connection.execute(_FOOTING, values).one()
    return Footing(
        now=row.now,
        heirs=row.heirs or {},
        # No row at all is NULL, a model without a search index is false.
        knows_model=row.is_indexed is not None,
        is_indexed=bool(row.is_indexed),
        turn_times=dict(zip(row.turn_ids, row.turn_times, strict=True)),
        parents=frozenset(row.parents),
    )


def nearest(
    connection: Connection, scope_id: int, comparisons: Sequence[Comparison], *, is_indexed: bool = False
) -> list[tuple[UUID, ...]]:
    """For each statement the nearest current rows of its kind, as the scope is now: one look for all of them.

    A few more than the statement's limit, since what one statement changes may take rows from the list of another.
    """
    ids_by_place: list[list[UUID]] = [[] for _ in comparisons]
    # The search index holds the user's memories; those of a session are few, and scanned.
    by_index = [place for place, item in enumerate(comparisons) if is_indexed and item.session_id is None]
    by_scan = sorted(set(range(len(comparisons))) - set(by_index))
    for start in range(0, len(by_scan), SCANNED_FOR_AT_ONCE):
        places = by_scan[start : start + SCANNED_FOR_AT_ONCE]
        _collect(
            connection,
            _scan_statement(len(places)),
            scope_id=scope_id,
            comparisons=comparisons,
            places=places,
            into=ids_by_place,
        )
    if by_index:
        first = comparisons[by_index[0]]
        statement = _indexed_statement(
            scope_id, first.model, dimensions=len(first.vector), count=len(by_index)
        )
        _collect(
            connection,
            statement,
            scope_id=scope_id,
            comparisons=comparisons,
            places=by_index,
            into=ids_by_place,
        )
    return [tuple(ids) for ids in ids_by_place]


def _collect(
    connection: Connection,
    statement: TextClause,
    *,
    scope_id: int,
    comparisons: Sequence[Comparison],
    places: Sequence[int],
    into: list[list[UUID]],
) -> None:
    """Append the ids that the statement returns to the list of the comparison each belongs to."""
    batch = [comparisons[place] for place in places]
    kinds = [item.kind for item in batch]
    values: dict[str, Any] = {
        "scope": scope_id,
        "model": batch[0].model,
        "kinds": kinds,
        "scanned_kinds": sorted(set(kinds)),
        "sessions": [item.session_id for item in batch],
        # What one statement changes may take rows from the list of another, so each list is longer than its limit.
        "limit": max(item.limit for item in batch) + len(comparisons) - 1,
        **{f"vector_{number}": vector_text(item.vector) for number, item in enumerate(batch)},
    }
    for row in connection.execute(statement, values):
        into[places[row.place]].append(row.id)


def neighbours(
    connection: Connection,
    scope_id: int,
    comparison: Comparison,
    *,
    near: Sequence[UUID],
    heirs: Mapping[str, str],
) -> tuple[Neighbour, ...]:
    """The nearest current rows of the kind, the row that says the same, and the rows that it may have to do with as a
    fact, history included; most similar first.

    ``near`` is what `nearest` returned for it, ``heirs`` as in the footing. Rows that this transaction stored since are
    looked through besides.
    """
    values = {
        "scope": scope_id,
        "session": comparison.session_id,
        "kind": comparison.kind,
        "vector": vector_text(comparison.vector),
        "model": comparison.model,
        "canonical_key": comparison.canonical_key,
        "subject_keys": list(comparison.subject_keys),
        "relations": list(comparison.relations),
        "object_keys": list(comparison.object_keys),
        "merge": comparison.merge,
        "limit": comparison.limit,
        "near": list(near),
    }
    statement = _OF_ANY_OBJECT if comparison.any_object else _OF_ONE_OBJECT
    rows = [
        neighbour_of(row_of(row), heirs, similarity=float(row.similarity), cohesion=row.cohesion)
        for row in connection.execute(statement, values)
    ]
    return tuple(sorted(rows, key=lambda row: (-row.similarity, row.memory.id)))


@lru_cache(maxsize=SCANNED_FOR_AT_ONCE)
def _scan_statement(count: int) -> TextClause:
    """One scan that keeps for each row how far it is from each of ``count`` vectors."""
    distances = ", ".join(
        f"n.embedding <=> (SELECT CAST(:vector_{place} AS halfvec)) AS d{place}" for place in range(count)
    )
    arms = " UNION ALL ".join(_SCANNED_ARM.format(place=place, number=place + 1) for place in range(count))
    return text("WITH " + _SCANNED.format(distances=distances, arms=arms))


@lru_cache(maxsize=1024)
def _indexed_statement(scope_id: int, model: str, *, dimensions: int, count: int) -> TextClause:
    """A statement of the scope's own: its number and model are literals, or the partial index would not fit."""
    # A colon would begin a parameter of SQLAlchemy.
    literal = "'" + model.replace("'", "''").replace(":", "\\:") + "'"
    fixed = {"scope": int(scope_id), "model": literal, "dimensions": int(dimensions)}
    return text(
        " UNION ALL ".join(
            _INDEXED_ARM.format(place=place, number=place + 1, **fixed) for place in range(count)
        )
    )
