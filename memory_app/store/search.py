"""Search inside a few scopes: one scan gives every row every signal that the database can see, and the best come back.

There is no global vector index: filtered by scope it finds too few rows and makes every write slow. A scan of the scope
is exact, and faster than a round trip to a model at the sizes one person reaches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

from sqlalchemy import Connection, CursorResult, Row, TextClause, text

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
    indexed_scope: int | None = None
    """The one scope among ``scope_ids`` that is too big to scan and has search indexes of its own."""
    rare_terms: tuple[int, ...] = ()
    """The rarest words of the query: what the keyword index of the big scope is asked for."""


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


_SEARCHABLE = """t.indexed_at IS NOT NULL AND t.failed_at IS NULL AND t.embedding_model = :model
          AND (CAST(:recorded_after AS timestamptz) IS NULL OR t.accepted_at >= :recorded_after)
          AND (CAST(:as_of AS timestamptz) IS NULL OR t.at <= :as_of)
          AND (CAST(:session AS text) IS NULL OR t.session_id IN (
               SELECT s.id FROM sessions s WHERE s.scope_id = ANY(:scopes) AND s.name = :session))"""

_SCORES = """t.scope_id, t.id, t.session_id, t.seq, t.role, t.speaker,
               greatest(coalesce(1 - (t.embedding <=> CAST(:vector AS halfvec)), 0), 0) AS similarity,
               coalesce(-(t.keywords <#> CAST(:keywords AS sparsevec)), 0) AS keyword"""

_SCANNED = f"""
    scored AS MATERIALIZED (
        SELECT {_SCORES} FROM turns t WHERE t.scope_id = ANY(:scopes) AND {_SEARCHABLE}
    ), hits AS (
        (SELECT session_id, seq FROM scored ORDER BY similarity DESC LIMIT :limit)
        UNION (SELECT session_id, seq FROM scored ORDER BY keyword DESC LIMIT :limit)
    ), near AS (
        SELECT * FROM scored WHERE (session_id, seq) IN (
            SELECT session_id, seq + step FROM hits, generate_series(-1, 1) AS step)
    )"""
"""The whole scope is looked at once: exact, and quick up to some ten thousand rows."""

_INDEXED = f"""
    hits AS (
        (SELECT t.id, t.session_id, t.seq FROM turns t
         WHERE t.scope_id = {{scope}} AND t.embedding_model = {{model}} AND {_SEARCHABLE}
         ORDER BY CAST(t.embedding AS halfvec({{dimensions}})) <=> CAST(:vector AS halfvec({{dimensions}}))
         LIMIT :limit)
        UNION
        SELECT t.id, t.session_id, t.seq
        FROM keyword_hits('turns', {{scope}}, CAST(:rare_terms AS integer[]), :keywords, :limit) h
        JOIN turns t ON t.scope_id = {{scope}} AND t.id = h.id
    ), wanted AS (
        SELECT DISTINCT session_id, seq + step AS seq FROM hits, generate_series(-1, 1) AS step
    ), near AS MATERIALIZED (
        SELECT {_SCORES} FROM wanted w
        JOIN turns t ON t.scope_id = {{scope}} AND t.session_id = w.session_id AND t.seq = w.seq
        WHERE {_SEARCHABLE}
    )"""
"""Two indexes of the scope's own name the hits; only these and the turns beside them are scored."""

_TURNS = """
    WITH {near}, scaled AS (
        SELECT scope_id, id, session_id, seq, role, speaker, similarity,
               keyword / greatest(max(keyword) OVER (), 1e-9) AS keyword
        FROM near
    ), placed AS (
        SELECT scope_id, id, role, speaker, similarity, keyword,
               greatest(CASE WHEN lag(seq) OVER w = seq - 1 THEN lag(similarity) OVER w END,
                        CASE WHEN lead(seq) OVER w = seq + 1 THEN lead(similarity) OVER w END, 0)
                   AS neighbour_similarity,
               greatest(CASE WHEN lag(seq) OVER w = seq - 1 THEN lag(keyword) OVER w END,
                        CASE WHEN lead(seq) OVER w = seq + 1 THEN lead(keyword) OVER w END, 0)
                   AS neighbour_keyword,
               max(keyword) OVER (PARTITION BY session_id) AS session_keyword
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
    """

_SCANNED_TURNS = text(_TURNS.format(near=_SCANNED))

_CURRENT = """m.kind = ANY(:kinds) AND m.importance >= :min_importance AND m.embedding_model = :model
          AND (CAST(:tags AS text[]) IS NULL OR m.tags && :tags)
          AND CASE WHEN CAST(:as_of AS timestamptz) IS NULL
                   THEN m.retired_at IS NULL AND (m.valid_until IS NULL OR m.valid_until > now())
                   ELSE m.valid_from <= :as_of AND (m.valid_until IS NULL OR m.valid_until > :as_of)
                        AND (m.retired_at IS NULL OR m.retired_reason IN ('superseded', 'invalidated')) END
          AND (m.session_id IS NULL OR CAST(:session AS text) IS NULL OR m.session_id IN (
               SELECT s.id FROM sessions s WHERE s.scope_id = ANY(:scopes) AND s.name = :session))"""

_INDEXED_MEMORIES = f"""
    m.scope_id = ANY(:scopes) AND (m.scope_id <> {{scope}} OR m.id IN (
        (SELECT m.id FROM memories m
         WHERE m.scope_id = {{scope}} AND m.embedding_model = {{model}} AND {_CURRENT}
         ORDER BY CAST(m.embedding AS halfvec({{dimensions}})) <=> CAST(:vector AS halfvec({{dimensions}}))
         LIMIT :limit)
        UNION
        SELECT h.id FROM keyword_hits('memories', {{scope}}, CAST(:rare_terms AS integer[]), :keywords, :limit) h
        UNION
        SELECT m.id FROM memories m WHERE m.scope_id = {{scope}} AND m.pinned))"""

_MEMORIES = f"""
    WITH scored AS MATERIALIZED (
        SELECT m.scope_id, m.id, m.importance, m.feedback_score, m.pinned, m.subject,
               greatest(coalesce(1 - (m.embedding <=> CAST(:vector AS halfvec)), 0), 0) AS similarity,
               coalesce(-(m.keywords <#> CAST(:keywords AS sparsevec)), 0) AS keyword
        FROM memories m
        WHERE {{where}} AND {_CURRENT}
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

_SCANNED_MEMORIES = text(_MEMORIES.format(where="m.scope_id = ANY(:scopes)"))


def turn_hits(connection: Connection, probe: Probe) -> tuple[TurnHit, ...]:
    """The ``probe.limit`` turns that the weights like best, with their signals, in no order."""
    rows = _asked(connection, probe, scanned=_SCANNED_TURNS, indexed=_indexed_turns)
    return tuple(_turn_hit(row) for row in rows)


def memory_hits(connection: Connection, probe: Probe) -> tuple[MemoryHit, ...]:
    """The ``probe.limit`` memories that the weights like best, pinned ones first, with their signals."""
    rows = _asked(connection, probe, scanned=_SCANNED_MEMORIES, indexed=_indexed_memories)
    return tuple(MemoryHit(stored(row), Raw(float(row.similarity), float(row.keyword))) for row in rows)


def _asked(
    connection: Connection,
    probe: Probe,
    *,
    scanned: TextClause,
    indexed: Callable[[int, str, int], TextClause],
) -> CursorResult[Any]:
    if probe.indexed_scope is None or probe.vector is None:
        return connection.execute(scanned, _values(probe))
    connection.execute(_ITERATE, {"candidates": str(min(max(probe.limit, 40), 1000))})
    return connection.execute(indexed(probe.indexed_scope, probe.model, len(probe.vector)), _values(probe))


_ITERATE = text(
    """SELECT set_config('hnsw.ef_search', :candidates, true),
              set_config('hnsw.iterative_scan', 'relaxed_order', true)"""
)
"""Without the iterative scan a filtered index gives too few rows."""


@lru_cache(maxsize=1024)
def _indexed_turns(scope_id: int, model: str, dimensions: int) -> TextClause:
    """A statement of the scope's own: its number and model are literals, or the partial index would not fit."""
    return text(
        _TURNS.format(near=_INDEXED.format(scope=int(scope_id), model=_quoted(model), dimensions=dimensions))
    )


@lru_cache(maxsize=1024)
def _indexed_memories(scope_id: int, model: str, dimensions: int) -> TextClause:
    where = _INDEXED_MEMORIES.format(scope=int(scope_id), model=_quoted(model), dimensions=dimensions)
    return text(_MEMORIES.format(where=where))


def _quoted(model: str) -> str:
    """A model's name as an SQL literal; it comes from the operator's settings, never from a caller."""
    return "'" + model.replace("'", "''").replace(":", "\\:") + "'"


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
        "rare_terms": list(probe.rare_terms),
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
