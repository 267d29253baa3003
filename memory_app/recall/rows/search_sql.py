"""The statements of `search`, put together from what a question has: its vectors, its filters, its indexed scopes.

A clause that is not asked for is not in the statement, so that the planner never reasons about it. Every vector stands
in a sub-select of its own: read once per statement, where a cast beside the column is done again for every row.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from sqlalchemy import TextClause, text

from memory_app.db.literals import literals
from memory_app.language.sentence_type import SIGNALS, Trait
from memory_app.records.importance import HIGHEST, PROMINENT
from memory_app.records.records import HISTORICAL
from memory_app.records.scoring import RECENCY_HALF_LIFE

QUESTION_BYTES = 500
"""A longer turn that ends with a question is about more than it asks: its words say little about the answer."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What a statement depends on besides its values.

    ``models`` are the names and lengths of the query's vectors; ``indexed`` pairs a scope that has search indexes of
    its own with the places in ``models`` it has them for; ``filters`` are names of `_TURN_FILTERS` or
    `_MEMORY_FILTERS`. ``has_frequency``: the weights count how common the entities of a memory are.
    ``has_periods``: the query names times. ``has_threshold``: a row needs a cosine of at least so much.
    ``traits`` are those that weigh for it. ``is_large``: the statement is planned anew each time.
    """

    models: tuple[tuple[str, int], ...]
    indexed: tuple[tuple[int, tuple[int, ...]], ...] = ()
    filters: frozenset[str] = frozenset()
    only_ids: bool = False
    has_frequency: bool = False
    has_periods: bool = False
    has_threshold: bool = False
    traits: tuple[Trait, ...] = ()
    is_large: bool = False


_TURN_FILTERS = {
    "recorded_after": "t.accepted_at >= :recorded_after",
    "as_of": "t.at <= :as_of",
    "session": "t.session_id = :session",
    "after": "t.at >= :after",
    "before": "t.at < :before",
}
_MEMORY_FILTERS = {
    "subtypes": "m.subtype = ANY(:subtypes)",
    "tags": "m.tags && :tags",
    "min_importance": "m.importance >= :min_importance",
    "session": "(m.session_id IS NULL OR m.session_id = :session)",
    "after": "m.valid_from >= :after",
    "before": "m.valid_from < :before",
}
_HOLDS_NOW = "m.retired_at IS NULL AND (m.valid_until IS NULL OR m.valid_until > now())"
_HELD_THEN = f"""m.valid_from <= :as_of AND (m.valid_until IS NULL OR m.valid_until > :as_of)
          AND (m.retired_at IS NULL OR m.retired_reason IN ({literals(HISTORICAL)}))"""

_ASKED_WORDS = "(SELECT CAST(:keywords AS sparsevec))"
_KEYWORD = f"-(r.keywords <#> {_ASKED_WORDS})"
_IN_PERIODS = """+ :w_in_time * EXISTS (
                   SELECT FROM unnest(CAST(:period_starts AS timestamptz[]), CAST(:period_ends AS timestamptz[]))
                   AS p(start, until) WHERE {at} >= p.start AND {at} < p.until)::integer"""
RECENCY = f"""power(CAST(0.5 AS double precision),
                 greatest(CAST(extract(epoch FROM now() - {{at}}) AS double precision), 0)
                 / {RECENCY_HALF_LIFE.total_seconds():.0f})"""
"""`scoring.recency` of the column ``at``. In double precision; as numbers it takes ten times as long."""


def _traits(shape: Shape) -> str:
    """What the traits of a row add to its score."""
    return " ".join(
        f"+ CASE WHEN traits & {trait.value} <> 0 THEN :w_{signal} ELSE 0 END"
        for trait, signal in SIGNALS.items()
        if trait in shape.traits
    )


@lru_cache(maxsize=1024)
def turns(shape: Shape) -> TextClause:
    """The best turns: every signal of theirs, and what is shown of them."""
    near = _near_indexed(shape) if shape.indexed else _near_scanned(shape)
    return text(f"{_mark(shape)}WITH {near}, {_best_turns(shape)}")


def _mark(shape: Shape) -> str:
    """What tells the statements of large scopes from the others.

    PostgreSQL keeps a plan of a statement where its cost is not above the average of those made anew. What large scopes
    cost must not stand in the average of the small ones: a plan that reads everybody's rows would pass for cheap.
    """
    return "/* large */ " if shape.is_large else ""


def _best_turns(shape: Shape) -> str:
    return f"""scaled AS (
        SELECT scope_id, id, session_id, seq, role, speaker, at, traits, is_question, similarity,
               keyword / greatest(max(keyword) OVER (), 1e-9) AS keyword, max(keyword) OVER () AS scale
        FROM near
    ), placed AS (
        SELECT scope_id, id, role, speaker, at, traits, session_id, similarity, keyword, scale,
               greatest(CASE WHEN lag(seq) OVER w = seq - 1 THEN lag(similarity) OVER w END,
                        CASE WHEN lead(seq) OVER w = seq + 1 THEN lead(similarity) OVER w END, 0)
                   AS neighbour_similarity,
               greatest(CASE WHEN lag(seq) OVER w = seq - 1 THEN lag(keyword) OVER w END,
                        CASE WHEN lead(seq) OVER w = seq + 1 THEN lead(keyword) OVER w END, 0)
                   AS neighbour_keyword,
               greatest(CASE WHEN lag(seq, 2) OVER w = seq - 2 THEN lag(keyword, 2) OVER w END,
                        CASE WHEN lead(seq, 2) OVER w = seq + 2 THEN lead(keyword, 2) OVER w END, 0)
                   AS second_neighbour_keyword,
               max(keyword) OVER (PARTITION BY session_id) AS session_keyword,
               CASE WHEN role = 'user' AND lag(seq) OVER w = seq - 1 AND lag(is_question) OVER w
                         AND lag(speaker) OVER w <> speaker THEN lag(keyword) OVER w ELSE 0 END AS answers
        FROM scaled
        WINDOW w AS (PARTITION BY session_id ORDER BY seq)
    ), scored AS (
        SELECT *, :w_similarity * similarity + :w_keyword * keyword
               + :w_neighbour_similarity * neighbour_similarity + :w_neighbour_keyword * neighbour_keyword
               + :w_second_neighbour_keyword * second_neighbour_keyword
               + :w_session_keyword * session_keyword + :w_answers * answers
               + :w_named_person * (speaker = ANY(:speakers))::integer
               + :w_user_role * (role = 'user')::integer
               {_traits(shape)}
               + :w_same_session * coalesce((session_id = :current_session)::integer, 0)
               {_in_time(shape, "at")}
               + CASE WHEN :w_recency = 0 THEN 0 ELSE :w_recency * {RECENCY.format(at="at")} END AS score
        FROM placed
    ), best AS (
        SELECT * FROM scored {_near_enough(shape)} ORDER BY score DESC, at DESC LIMIT :most
    )
    SELECT b.id, b.scope_id, s.name, t.seq, b.role, b.speaker, t.text, b.at, b.traits, b.similarity, b.keyword,
           b.neighbour_similarity, b.neighbour_keyword, b.second_neighbour_keyword, b.session_keyword, b.answers,
           b.scale
    FROM best b JOIN turns t ON t.scope_id = b.scope_id AND t.id = b.id
    JOIN sessions s ON s.scope_id = b.scope_id AND s.id = b.session_id
    ORDER BY b.score DESC, b.at DESC
    """


@lru_cache(maxsize=1024)
def memories(shape: Shape) -> TextClause:
    """The best memories: every signal the database sees, and the whole rows; pinned ones first."""
    if shape.only_ids:
        scored = f"scored AS MATERIALIZED ({_scored_memories(shape, 'm.scope_id = ANY(:scopes) AND m.id = ANY(:ids)')})"
    elif shape.indexed:
        scored = _memories_indexed(shape)
    else:
        scored = f"scored AS MATERIALIZED ({_scored_memories(shape, 'm.scope_id = ANY(:scopes)')})"
    return text(
        f"{_mark(shape)}WITH {scored}, {_SHARED if shape.has_frequency else _NOTHING_SHARED}, {_best_memories(shape)}"
    )


_SHARED = """popular AS (
        SELECT n.entity_id, CAST(count(*) AS double precision) AS n FROM mentions n
        WHERE n.scope_id = ANY(:scopes) GROUP BY n.entity_id
    ), shared AS (
        SELECT n.memory_id, max(p.n) / (SELECT max(n) FROM popular) AS frequency
        FROM mentions n JOIN popular p ON p.entity_id = n.entity_id
        WHERE n.scope_id = ANY(:scopes) AND n.memory_id IN (SELECT id FROM scored) GROUP BY n.memory_id
    ), counted AS (
        SELECT s.*, coalesce(h.frequency, 0) AS frequency FROM scored s LEFT JOIN shared h ON h.memory_id = s.id
    )"""
"""The signal ``frequency``: memories about each one's commonest entity, as a share of those about the commonest."""

_NOTHING_SHARED = "counted AS (SELECT *, CAST(0 AS double precision) AS frequency FROM scored)"


def _best_memories(shape: Shape) -> str:
    return f"""scaled AS (
        SELECT *, greatest(max(keyword) OVER (), :least_scale) AS scale FROM counted
    ), best AS (
        SELECT scope_id, id, traits, similarity, keyword / scale AS keyword, scale, frequency FROM scaled
        {_near_enough(shape)}
        ORDER BY pinned DESC,
                 (:w_similarity + :w_neighbour_similarity) * similarity
                 + (:w_keyword + :w_neighbour_keyword + :w_second_neighbour_keyword + :w_session_keyword)
                   * keyword / scale
                 + :w_named_person * coalesce((subject = ANY(:speakers))::integer, 0)
                 + :w_mentions * (id = ANY(:mentioning))::integer
                 + :w_same_session * coalesce((session_id = :current_session)::integer, 0)
                 {_traits(shape)}
                 {_in_time(shape, "valid_from")}
                 + CASE WHEN :w_recency = 0 THEN 0 ELSE :w_recency * {RECENCY.format(at="last_seen")} END
                 + :w_importance * importance / {HIGHEST}.0 + :w_feedback * feedback_score
                 + :w_frequency * frequency DESC
        LIMIT :most
    )
    SELECT m.id, m.scope_id, m.kind, m.text, m.subject, m.importance, m.tags, m.pinned, m.valid_from, m.valid_until,
           coalesce(m.last_seen, m.created_at) AS last_seen, m.feedback_score,
           (SELECT s.name FROM sessions s WHERE s.scope_id = m.scope_id AND s.id = m.session_id) AS session,
           b.traits, b.similarity, b.keyword, b.scale, b.frequency, {_sent_vector(shape)} AS vector
    FROM best b JOIN memories m ON m.scope_id = b.scope_id AND m.id = b.id
    """


def _in_time(shape: Shape, at: str) -> str:
    """Return the clause for times that the query names, if any: it costs time for each row."""
    return _IN_PERIODS.format(at=at) if shape.has_periods else ""


def _near_enough(shape: Shape) -> str:
    return "WHERE similarity >= :threshold" if shape.has_threshold else ""


def _similarity(alias: str, shape: Shape) -> str:
    """Cosine with the query's vector of the row's own model, 0 where the query has none of that model."""
    cases = "".join(
        f" WHEN {alias}.embedding_model = {_quoted(model)}"
        f" THEN greatest(1 - ({alias}.embedding <=> {_vector(place)}), 0)"
        for place, (model, _) in enumerate(shape.models)
    )
    return f"CASE{cases} ELSE 0 END" if cases else "CAST(0 AS double precision)"


def _sent_vector(shape: Shape) -> str:
    """The embedding of a row in its binary form, if it is of the first of the models: those are compared."""
    if not shape.models:
        return "NULL"
    return f"CASE WHEN m.embedding_model = {_quoted(shape.models[0][0])} THEN halfvec_send(m.embedding) END"


def _vector(place: int) -> str:
    return f"(SELECT CAST(:vector_{place} AS halfvec))"


# --- turns --------------------------------------------------------------------------------------------------


def _searchable(shape: Shape) -> str:
    clauses = [clause for name, clause in _TURN_FILTERS.items() if name in shape.filters]
    return " AND ".join(["t.indexed_at IS NOT NULL AND t.keywords IS NOT NULL", *clauses])


def _turn_scores(shape: Shape) -> str:
    keyword = _KEYWORD.replace("r.", "t.")
    return (
        "t.scope_id, t.id, t.session_id, t.seq, t.role, t.speaker, t.at, t.traits, "
        f"(t.traits & {Trait.ASKS.value} <> 0 AND octet_length(t.text) <= {QUESTION_BYTES}) AS is_question, "
        f"{_similarity('t', shape)} AS similarity, "
        f"coalesce({keyword}, 0) AS keyword"
    )


def _near_scanned(shape: Shape) -> str:
    """The whole scope is looked at once: exact, and quick up to some ten thousand rows."""
    return f"""all_turns AS MATERIALIZED (
        SELECT {_turn_scores(shape)} FROM turns t WHERE t.scope_id = ANY(:scopes) AND {_searchable(shape)}
    ), hits AS (
        (SELECT session_id, seq FROM all_turns ORDER BY similarity DESC LIMIT :candidates)
        UNION (SELECT session_id, seq FROM all_turns ORDER BY keyword DESC LIMIT :candidates)
    ), near AS (
        SELECT * FROM all_turns WHERE (session_id, seq) IN (
            SELECT session_id, seq + step FROM hits, generate_series(-1, 1) AS step)
    )"""


def _near_indexed(shape: Shape) -> str:
    """Two indexes of the scope's own name the hits; only these and the turns beside them are scored."""
    where = _searchable(shape)
    arms = [
        f"(SELECT t.scope_id, t.id FROM turns t WHERE t.scope_id = {scope} AND {where} {_nearest('t', shape, place)})"
        for scope, places in shape.indexed
        for place in places
    ]
    arms += [
        f"SELECT CAST({scope} AS bigint), h.id "
        f"FROM keyword_hits('turns', {scope}, :anchors, {_ASKED_WORDS}, :nearest) h"
        for scope, _ in shape.indexed
    ]
    return f"""hits AS ({" UNION ".join(arms)}), wanted AS (
        SELECT DISTINCT t.scope_id, t.session_id, t.seq + step AS seq
        FROM hits h JOIN turns t ON t.scope_id = h.scope_id AND t.id = h.id, generate_series(-1, 1) AS step
    ), near AS MATERIALIZED (
        SELECT {_turn_scores(shape)} FROM wanted w
        JOIN turns t ON t.scope_id = w.scope_id AND t.session_id = w.session_id AND t.seq = w.seq
        WHERE {where}
        UNION ALL
        SELECT {_turn_scores(shape)} FROM turns t WHERE t.scope_id = ANY(:scanned) AND {where}
    )"""


# --- memories -----------------------------------------------------------------------------------------------


def _current(shape: Shape) -> str:
    clauses = [clause for name, clause in _MEMORY_FILTERS.items() if name in shape.filters]
    return " AND ".join(
        ["m.kind = ANY(:kinds)", _HELD_THEN if "as_of" in shape.filters else _HOLDS_NOW, *clauses]
    )


def _scored_memories(shape: Shape, where: str) -> str:
    return f"""SELECT m.scope_id, m.id, m.session_id, m.importance, m.feedback_score, m.pinned, m.subject,
               m.valid_from, m.last_seen, m.traits, {_similarity("m", shape)} AS similarity,
               coalesce({_KEYWORD.replace("r.", "m.")}, 0) AS keyword
        FROM memories m WHERE {where} AND {_current(shape)}"""


def _memories_indexed(shape: Shape) -> str:
    arms = [
        f"(SELECT m.scope_id, m.id FROM memories m WHERE m.scope_id = {scope} AND {_current(shape)} "
        f"{_nearest('m', shape, place)})"
        for scope, places in shape.indexed
        for place in places
    ]
    arms += [
        f"SELECT CAST({scope} AS bigint), h.id "
        f"FROM keyword_hits('memories', {scope}, :anchors, {_ASKED_WORDS}, :nearest) h"
        for scope, _ in shape.indexed
    ]
    scopes = ", ".join(str(scope) for scope, _ in shape.indexed)
    arms += [
        f"""(SELECT m.scope_id, m.id FROM memories m WHERE m.scope_id IN ({scopes}) AND m.pinned
            AND (m.pinned OR m.importance >= {PROMINENT}) AND m.retired_at IS NULL
            ORDER BY m.importance DESC, m.id DESC LIMIT :nearest)""",
        f"SELECT m.scope_id, m.id FROM memories m WHERE m.scope_id IN ({scopes}) AND m.id = ANY(:mentioning)",
    ]
    return f"""found AS ({" UNION ".join(arms)}), scored AS MATERIALIZED (
        {_scored_memories(shape, "(m.scope_id, m.id) IN (SELECT f.scope_id, f.id FROM found f)")}
        UNION ALL
        {_scored_memories(shape, "m.scope_id = ANY(:scanned)")}
    )"""


def _nearest(alias: str, shape: Shape, place: int) -> str:
    """The end of a statement that the partial index of one model answers; its names are literals, or it would not
    fit."""
    model, dimensions = shape.models[place]
    size = int(dimensions)
    return (
        f"AND {alias}.embedding_model = {_quoted(model)} ORDER BY CAST({alias}.embedding AS halfvec({size})) "
        f"<=> (SELECT CAST(:vector_{place} AS halfvec({size}))) LIMIT :nearest"
    )


def _quoted(model: str) -> str:
    """A model's name as an SQL literal; it comes from the operator's settings, never from a caller."""
    return "'" + model.replace("'", "''").replace(":", "\\:") + "'"
