"""Facts on both axes of time: when they hold (``valid_from``, ``valid_until``) and when we knew of them (``stored_at``,
``retired_at``).

A row that was ended later is shown as open to a question about what was known before. Reads only.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Row, text

from memory_app.db.literals import literals
from memory_app.db.vectors import sparse_text, vector_text
from memory_app.memories.rows.memory_rows import COLUMNS, memory_of
from memory_app.records.records import HISTORICAL, Memory

KIND = "fact"


@dataclass(frozen=True, slots=True)
class FactProbe:
    """Which facts are wanted. None leaves a part open; ``subject_keys`` are slugs that mean one subject.

    ``as_of`` None asks for the whole history. ``known_at`` None asks what is known today.
    """

    scope_ids: tuple[int, ...]
    limit: int
    as_of: datetime | None
    known_at: datetime | None = None
    subject_keys: tuple[str, ...] | None = None
    relation: str | None = None
    object_keys: tuple[str, ...] | None = None
    before: UUID | None = None


@dataclass(frozen=True, slots=True)
class FactHit:
    """A fact, as it was known at the time that was asked about. ``score`` is a cosine or a keyword score.

    ``overlapping``: another value was said of the same time, of a relation that holds one at a time.
    """

    memory: Memory
    score: float | None = None
    overlapping: bool = False


# An end that was told after the moment in question was not known then.
_UNTIL = f"""CASE WHEN m.retired_at > CAST(:known_at AS timestamptz)
                      AND m.retired_reason IN ({literals(HISTORICAL)}) THEN NULL
                 ELSE m.valid_until END"""

# Two claims may hold at one time: "I moved last month" reaches back over the time in which the old home was named.
_OVERLAPPING = f"""CAST(:as_of AS timestamptz) IS NOT NULL AND m.single_valued AND EXISTS (
        SELECT FROM memories o
        WHERE o.scope_id = m.scope_id AND o.subject_key = m.subject_key AND o.relation = m.relation
          AND o.kind = m.kind AND o.single_valued AND o.id <> m.id
          AND o.object_key IS DISTINCT FROM m.object_key
          AND (o.retired_at IS NULL OR o.retired_reason IN ({literals(HISTORICAL)}))
          AND o.valid_from <= :as_of AND (o.valid_until IS NULL OR o.valid_until > :as_of)) AS overlapping"""

_WANTED = f"""m.kind = '{KIND}'
    AND (CAST(:subjects AS text[]) IS NULL OR m.subject_key = ANY(:subjects))
    AND (CAST(:relation AS text) IS NULL OR m.relation = :relation)
    AND (CAST(:objects AS text[]) IS NULL OR m.object_key = ANY(:objects))
    AND CASE WHEN CAST(:known_at AS timestamptz) IS NULL
             THEN m.retired_at IS NULL OR m.retired_reason IN ({literals(HISTORICAL)})
             ELSE m.stored_at <= :known_at
                  AND (m.retired_at IS NULL OR m.retired_at > :known_at
                       OR m.retired_reason IN ({literals(HISTORICAL)})) END
    AND (CAST(:as_of AS timestamptz) IS NULL
         OR m.valid_from <= :as_of AND coalesce(({_UNTIL}) > :as_of, true))"""

# Scope by scope, each from its newest row to the limit: sorting over all scopes would read every fact.
_NEWEST = text(
    f"""
    SELECT {COLUMNS}, {_UNTIL} AS known_until, NULL AS score, {_OVERLAPPING}
    FROM unnest(CAST(:scopes AS bigint[])) AS s(id)
    CROSS JOIN LATERAL (
        SELECT m.* FROM memories m
        WHERE m.scope_id = s.id AND (CAST(:before AS uuid) IS NULL OR m.id < :before) AND {_WANTED}
        ORDER BY m.id DESC LIMIT :limit) m
    ORDER BY m.id DESC LIMIT :limit
    """
)
# A row that was ended where it began never held, so it is no part of the history.
_HISTORY = text(
    f"""
    SELECT {COLUMNS}, {_UNTIL} AS known_until, NULL AS score, {_OVERLAPPING} FROM memories m
    WHERE m.scope_id = ANY(:scopes) AND m.valid_until IS DISTINCT FROM m.valid_from AND {_WANTED}
    ORDER BY m.relation NULLS LAST, m.valid_from, m.id LIMIT :limit
    """
)
# The inner select ranks ids and scores; the wide rows are read for those that remain.
_BY_MEANING = text(
    f"""
    SELECT {COLUMNS}, {_UNTIL} AS known_until, f.score, {_OVERLAPPING}
    FROM (
        SELECT m.scope_id, m.id, 1 - (m.embedding <=> CAST(:vector AS halfvec)) AS score FROM memories m
        WHERE m.scope_id = ANY(:scopes) AND m.embedding_model = :model AND {_WANTED}
        ORDER BY m.embedding <=> CAST(:vector AS halfvec) LIMIT :limit) f
    JOIN memories m ON m.scope_id = f.scope_id AND m.id = f.id
    WHERE f.score >= :floor ORDER BY f.score DESC, m.id
    """
)
_BY_KEYWORD = text(
    f"""
    SELECT {COLUMNS}, {_UNTIL} AS known_until, f.score, {_OVERLAPPING}
    FROM (
        SELECT m.scope_id, m.id, -(m.keywords <#> CAST(:keywords AS sparsevec)) AS score FROM memories m
        WHERE m.scope_id = ANY(:scopes) AND {_WANTED}
        ORDER BY m.keywords <#> CAST(:keywords AS sparsevec) LIMIT :limit) f
    JOIN memories m ON m.scope_id = f.scope_id AND m.id = f.id
    WHERE f.score > 0 ORDER BY f.score DESC, m.id
    """
)


def newest(connection: Connection, probe: FactProbe) -> tuple[FactHit, ...]:
    """Facts that fit, newest row first; ``probe.before`` is the last id of the page before."""
    return _hits(connection.execute(_NEWEST, _values(probe)))


def history(connection: Connection, probe: FactProbe) -> tuple[FactHit, ...]:
    """Every interval, ended ones too, by relation and then in the order of time."""
    return _hits(connection.execute(_HISTORY, _values(probe)))


def by_meaning(
    connection: Connection, probe: FactProbe, *, vector: Sequence[float], model: str, floor: float
) -> tuple[FactHit, ...]:
    """The nearest facts by cosine, none below ``floor`` (−1 lets all through)."""
    values = {**_values(probe), "vector": vector_text(vector), "model": model, "floor": floor}
    return _hits(connection.execute(_BY_MEANING, values))


def by_keyword(
    connection: Connection, probe: FactProbe, *, keywords: dict[int, float]
) -> tuple[FactHit, ...]:
    """Facts that hold a word of the query, best keyword score first."""
    return _hits(connection.execute(_BY_KEYWORD, {**_values(probe), "keywords": sparse_text(keywords)}))


def _values(probe: FactProbe) -> dict[str, Any]:
    return {
        "scopes": list(probe.scope_ids),
        "limit": probe.limit,
        "as_of": probe.as_of,
        "known_at": probe.known_at,
        "subjects": None if probe.subject_keys is None else list(probe.subject_keys),
        "relation": probe.relation,
        "objects": None if probe.object_keys is None else list(probe.object_keys),
        "before": probe.before,
    }


def _hits(rows: Iterable[Row[Any]]) -> tuple[FactHit, ...]:
    return tuple(map(_hit, rows))


def _hit(row: Row[Any]) -> FactHit:
    # As it was known then: an end that was told later is left out.
    memory = replace(memory_of(row), valid_until=row.known_until)
    score = None if row.score is None else float(row.score)
    return FactHit(memory, score=score, overlapping=row.overlapping)
