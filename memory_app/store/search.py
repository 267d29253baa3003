"""Search inside a few scopes: one scan gives every row every signal that the database can see, and the best come back.

There is no global vector index: filtered by scope it finds too few rows and makes every write slow. A scan of the scope
is exact, and faster than a round trip to a model at the sizes one person reaches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, text

from memory_app.domain.records import Role, Turn
from memory_app.domain.scoring import Weights
from memory_app.store.memories import COLUMNS, Stored, stored
from memory_app.store.vectors import sparse_text, vector_text


@dataclass(frozen=True, slots=True)
class Probe:
    """What is looked for.

    ``vector`` is None where the embedder is away; ``keywords`` is the query side of BM25; ``speakers`` are the names
    in the query that belong to somebody of the scope; daily logs accepted before ``recorded_after`` are not searched.
    """

    scope_ids: tuple[int, ...]
    vector: Sequence[float] | None
    model: str
    keywords: dict[int, float]
    weights: Weights
    limit: int
    now: datetime
    speakers: tuple[str, ...] = ()
    session: str | None = None
    recorded_after: datetime | None = None
    kinds: tuple[str, ...] | None = None
    tags: tuple[str, ...] | None = None
    min_importance: int = 1
    as_of: datetime | None = None


@dataclass(frozen=True, slots=True)
class Raw:
    """Signals as the database computes them, 0–1: see `domain.scoring.Signals` for their meaning."""

    similarity: float
    keyword: float
    neighbour_similarity: float = 0.0
    neighbour_keyword: float = 0.0
    session_keyword: float = 0.0


@dataclass(frozen=True, slots=True)
class TurnHit:
    """A turn that may answer the query. ``scope_id`` says whose it is."""

    turn: Turn
    scope_id: int
    raw: Raw


@dataclass(frozen=True, slots=True)
class MemoryHit:
    """A memory that may answer the query; ``entities`` are the labels it mentions."""

    stored: Stored
    raw: Raw


_TURNS = text(
    """
    WITH scored AS MATERIALIZED (
        SELECT t.scope_id, t.id, t.session_id, t.seq, t.role, t.speaker,
               greatest(coalesce(1 - (t.embedding <=> CAST(:vector AS halfvec)), 0), 0) AS similarity,
               coalesce(-(t.keywords <#> CAST(:keywords AS sparsevec)), 0) AS keyword
        FROM turns t
        WHERE t.scope_id = ANY(:scopes) AND t.indexed_at IS NOT NULL AND t.failed_at IS NULL
          AND t.embedding_model = :model
          AND (CAST(:recorded_after AS timestamptz) IS NULL OR t.accepted_at >= :recorded_after)
          AND (CAST(:as_of AS timestamptz) IS NULL OR t.at <= :as_of)
          AND (CAST(:session AS text) IS NULL OR t.session_id IN (
               SELECT s.id FROM sessions s WHERE s.scope_id = ANY(:scopes) AND s.name = :session))
    ), scaled AS (
        SELECT scope_id, id, session_id, seq, role, speaker, similarity,
               keyword / greatest(max(keyword) OVER (), 1e-9) AS keyword
        FROM scored
    ), placed AS (
        SELECT scope_id, id, similarity, keyword, role, speaker,
               greatest(lag(similarity) OVER w, lead(similarity) OVER w, 0) AS neighbour_similarity,
               greatest(lag(keyword) OVER w, lead(keyword) OVER w, 0) AS neighbour_keyword,
               {session_keyword} AS session_keyword
        FROM scaled
        WINDOW w AS (PARTITION BY session_id ORDER BY seq)
    ), best AS (
        SELECT scope_id, id, similarity, keyword, neighbour_similarity, neighbour_keyword, session_keyword
        FROM placed
        ORDER BY :w_similarity * similarity + :w_keyword * keyword
               + :w_neighbour_similarity * neighbour_similarity + :w_neighbour_keyword * neighbour_keyword
               + :w_session_keyword * session_keyword
               + :w_named_person * (speaker = ANY(:speakers))::integer
               + :w_user_role * (role = 'user')::integer DESC
        LIMIT :limit
    )
    SELECT t.id, t.scope_id, s.name, t.seq, t.role, t.speaker, t.text, t.at, b.similarity, b.keyword,
           b.neighbour_similarity, b.neighbour_keyword, b.session_keyword
    FROM best b
    JOIN turns t ON t.scope_id = b.scope_id AND t.id = b.id
    JOIN sessions s ON s.scope_id = t.scope_id AND s.id = t.session_id
    """.replace("{session_keyword}", "max(keyword) OVER (PARTITION BY session_id)")
)

_MEMORIES = text(
    f"""
    WITH scored AS MATERIALIZED (
        SELECT m.scope_id, m.id, m.importance, m.feedback_score, m.pinned, m.subject,
               greatest(coalesce(1 - (m.embedding <=> CAST(:vector AS halfvec)), 0), 0) AS similarity,
               coalesce(-(m.keywords <#> CAST(:keywords AS sparsevec)), 0) AS keyword
        FROM memories m
        WHERE m.scope_id = ANY(:scopes) AND m.kind = ANY(:kinds) AND m.importance >= :min_importance
          AND m.embedding_model = :model
          AND (CAST(:tags AS text[]) IS NULL OR m.tags && :tags)
          AND CASE WHEN CAST(:as_of AS timestamptz) IS NULL
                   THEN m.retired_at IS NULL AND (m.valid_until IS NULL OR m.valid_until > now())
                   ELSE m.valid_from <= :as_of AND (m.valid_until IS NULL OR m.valid_until > :as_of)
                        AND (m.retired_at IS NULL OR m.retired_reason IN ('superseded', 'invalidated')) END
          AND (m.session_id IS NULL OR CAST(:session AS text) IS NULL OR m.session_id IN (
               SELECT s.id FROM sessions s WHERE s.scope_id = ANY(:scopes) AND s.name = :session))
    ), scaled AS (
        SELECT scope_id, id, similarity, pinned, subject, keyword / greatest(max(keyword) OVER (), 1e-9) AS keyword,
               importance, feedback_score
        FROM scored
    ), best AS (
        SELECT scope_id, id, similarity, keyword FROM scaled
        ORDER BY pinned DESC,
                 :w_similarity * similarity + :w_keyword * keyword
                 + :w_named_person * (subject = ANY(:speakers))::integer
                 + :w_importance * importance / 10.0 + :w_feedback * feedback_score DESC
        LIMIT :limit
    )
    SELECT {COLUMNS}, b.similarity, b.keyword
    FROM best b JOIN memories m ON m.scope_id = b.scope_id AND m.id = b.id
    """
)


def turn_hits(connection: Connection, probe: Probe) -> tuple[TurnHit, ...]:
    """The ``probe.limit`` turns that the weights like best, with their signals, in no order."""
    return tuple(_turn_hit(row) for row in connection.execute(_TURNS, _values(probe)))


def memory_hits(connection: Connection, probe: Probe) -> tuple[MemoryHit, ...]:
    """The ``probe.limit`` memories that the weights like best, pinned ones first, with their signals."""
    rows = connection.execute(_MEMORIES, _values(probe))
    return tuple(MemoryHit(stored(row), Raw(float(row.similarity), float(row.keyword))) for row in rows)


def speakers(connection: Connection, scope_ids: Sequence[int]) -> tuple[str, ...]:
    """Everybody who spoke in the scopes. A loose index scan: the cost grows with the speakers, not with the turns."""
    return tuple(connection.execute(_SPEAKERS, {"scopes": list(scope_ids)}).scalars())


_SPEAKERS = text(
    """
    WITH RECURSIVE names AS (
        SELECT (SELECT min(t.speaker) FROM turns t WHERE t.scope_id = ANY(:scopes)) AS speaker
        UNION ALL
        SELECT (SELECT min(t.speaker) FROM turns t WHERE t.scope_id = ANY(:scopes) AND t.speaker > n.speaker)
        FROM names n WHERE n.speaker IS NOT NULL
    )
    SELECT speaker FROM names WHERE speaker IS NOT NULL LIMIT 50
    """
)


def _values(probe: Probe) -> dict[str, Any]:
    weights = {f"w_{name}": getattr(probe.weights, name) for name in Weights.__slots__}
    return {
        **weights,
        "scopes": list(probe.scope_ids),
        "vector": None if probe.vector is None else vector_text(probe.vector),
        "model": probe.model,
        "keywords": sparse_text(probe.keywords),
        "speakers": list(probe.speakers),
        "session": probe.session,
        "recorded_after": probe.recorded_after,
        "as_of": probe.as_of,
        "kinds": list(probe.kinds or ()),
        "tags": list(probe.tags) if probe.tags else None,
        "min_importance": probe.min_importance,
        "limit": probe.limit,
    }


def _turn_hit(row: Row[Any]) -> TurnHit:
    return TurnHit(
        Turn(row.id, row.name, row.seq, Role(row.role), row.speaker, row.text, row.at),
        row.scope_id,
        Raw(
            float(row.similarity),
            float(row.keyword),
            float(row.neighbour_similarity),
            float(row.neighbour_keyword),
            float(row.session_keyword),
        ),
    )
