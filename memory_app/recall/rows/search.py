"""Search inside a few scopes: every row that may answer gets every signal that the database can see, and the best come
back.

There is no global vector index: filtered by scope it finds too few rows and makes every write slow. A scan of the scope
is exact, and faster than a round trip to a model at the sizes one person reaches. A scope that grew big has indexes of
its own; where their hits are too few for the filters, the scan is asked after all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, Row, TextClause

from memory_app.db.vectors import sparse_text, vector_of, vector_text
from memory_app.language.sentence_type import ON_DEMAND, SIGNALS, Trait
from memory_app.recall.rows import search_sql
from memory_app.recall.rows.search_sql import Shape
from memory_app.records.records import Role, Turn
from memory_app.records.scoring import Weights


@dataclass(frozen=True, slots=True)
class QueryVector:
    """The question as one embedding model sees it; it is compared with rows of that model only."""

    model: str
    values: Sequence[float]


@dataclass(frozen=True, slots=True)
class IndexedScope:
    """A scope that is too big to scan, and the models for which it has vector indexes."""

    scope_id: int
    models: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Filters:
    """What narrows the rows; None leaves it open. ``session`` is a session's id.

    Daily logs accepted before ``recorded_after`` are not searched. ``after`` and ``before`` bound when a turn was said
    or from when a memory holds, half-open.
    """

    kinds: tuple[str, ...] = ()
    subtypes: tuple[str, ...] | None = None
    tags: tuple[str, ...] | None = None
    session: int | None = None
    min_importance: int | None = None
    as_of: datetime | None = None
    after: datetime | None = None
    before: datetime | None = None
    recorded_after: datetime | None = None


@dataclass(frozen=True, slots=True)
class Probe:
    """What is looked for.

    ``vectors`` is empty where the embedder is away. ``keywords`` is the query side of BM25. ``anchors`` are sets of
    terms: the keyword index of a big scope is asked for rows that hold all of any one set. ``speakers`` are the names
    in the query that belong to somebody of the scope, ``mentioning`` memories about entities of the query, ``periods``
    the times it names, ``threshold`` the least cosine. Each arm hands ``candidates`` rows to the scoring (half as many
    where indexes name the hits) and ``limit`` come back, no fewer than ``least`` if the scopes have them. ``is_large``
    as in `ScopeFacts`.
    """

    scope_ids: tuple[int, ...]
    vectors: tuple[QueryVector, ...]
    keywords: dict[int, float]
    weights: Weights
    candidates: int
    limit: int
    least: int = 1
    filters: Filters = Filters()
    speakers: tuple[str, ...] = ()
    mentioning: tuple[UUID, ...] = ()
    periods: tuple[tuple[datetime, datetime], ...] = ()
    current_session: int | None = None
    threshold: float | None = None
    indexed: tuple[IndexedScope, ...] = ()
    anchors: tuple[tuple[int, ...], ...] = ()
    is_large: bool = False


@dataclass(frozen=True, slots=True)
class Raw:
    """Signals as the database computes them, 0–1: see `records.scoring.SIGNAL_TABLE` for their meaning.

    ``scale`` is the keyword score that counts as 1 for this query.
    """

    similarity: float
    keyword: float
    neighbour_similarity: float = 0.0
    neighbour_keyword: float = 0.0
    second_neighbour_keyword: float = 0.0
    session_keyword: float = 0.0
    answers: float = 0.0
    scale: float = 0.0


@dataclass(frozen=True, slots=True)
class TurnHit:
    """A turn that may answer the query. ``scope_id`` says whose it is."""

    turn: Turn
    scope_id: int
    raw: Raw
    traits: int


@dataclass(frozen=True, slots=True)
class MemoryHit:
    """A memory that may answer the query: what is scored and shown of it.

    ``frequency`` is as in `SIGNAL_TABLE`, 0 where it has no weight. ``vector`` is the embedding, if it is of the
    first model of the probe.
    """

    id: UUID
    scope_id: int
    kind: str
    text: str
    subject: str | None
    importance: int
    tags: tuple[str, ...]
    pinned: bool
    valid_from: datetime
    valid_until: datetime | None
    last_seen: datetime
    feedback_score: float
    session: str | None
    raw: Raw
    traits: int
    frequency: float
    vector: NDArray[np.float32] | None


def turn_hits(connection: Connection, probe: Probe) -> tuple[TurnHit, ...]:
    """The ``probe.limit`` turns that the weights like best, with their signals, best first."""
    rows = _rows(
        connection, probe, statement=search_sql.turns, filters=_TURN_FILTER_NAMES, traits=tuple(Trait)
    )
    return tuple(_turn_hit(row) for row in rows)


def memory_hits(connection: Connection, probe: Probe) -> tuple[MemoryHit, ...]:
    """The ``probe.limit`` memories that the weights like best, pinned ones first, with their signals."""
    rows = _rows(
        connection, probe, statement=search_sql.memories, filters=_MEMORY_FILTER_NAMES, traits=ON_DEMAND
    )
    return tuple(_memory_hit(row) for row in rows)


def memories_by_id(
    connection: Connection, probe: Probe, ids: Sequence[UUID], *, scale: float
) -> tuple[MemoryHit, ...]:
    """Those of the memories that pass the filters, with the signals they have for the query; ``scale`` as in a hit."""
    # The ids say which rows: no index has to name them.
    shape = replace(
        _shape(probe, _MEMORY_FILTER_NAMES, ON_DEMAND),
        indexed=(),
        only_ids=True,
        has_frequency=False,
    )
    values = {**_values(probe), "ids": list(ids), "least_scale": scale}
    return tuple(_memory_hit(row) for row in connection.execute(search_sql.memories(shape), values))


_TURN_FILTER_NAMES = ("recorded_after", "as_of", "session", "after", "before")
_MEMORY_FILTER_NAMES = ("subtypes", "tags", "min_importance", "session", "as_of", "after", "before")


def _rows(
    connection: Connection,
    probe: Probe,
    *,
    statement: Callable[[Shape], TextClause],
    filters: Sequence[str],
    traits: Sequence[Trait],
) -> Sequence[Row[Any]]:
    shape, values = _shape(probe, filters, traits), _values(probe)
    rows = connection.execute(statement(shape), values).all()
    if shape.indexed and len(rows) < probe.least:
        # The filters let too few of the nearest through: nothing but the scan knows whether there are more.
        rows = connection.execute(statement(replace(shape, indexed=())), values).all()
    return rows


def _shape(probe: Probe, filters: Sequence[str], traits: Sequence[Trait]) -> Shape:
    models = tuple((vector.model, len(vector.values)) for vector in probe.vectors)
    filter_names = frozenset(name for name in filters if getattr(probe.filters, name) is not None)
    # A query without words is a list, and one session is small: both are answered by a scan.
    has_indexes = (probe.vectors or probe.anchors) and "session" not in filter_names
    places = {model: place for place, (model, _) in enumerate(models)}
    indexed = []
    for scope in probe.indexed if has_indexes else ():
        model_places = tuple(places[model] for model in scope.models if model in places)
        indexed.append((scope.scope_id, model_places))
    return Shape(
        models=models,
        indexed=tuple(indexed),
        filters=filter_names,
        has_frequency=probe.weights["frequency"] != 0,
        has_periods=bool(probe.periods),
        has_threshold=probe.threshold is not None,
        traits=tuple(trait for trait in traits if probe.weights[SIGNALS[trait]]),
        is_large=probe.is_large,
    )


def _values(probe: Probe) -> dict[str, Any]:
    weights = {f"w_{name}": float(weight) for name, weight in probe.weights.items()}
    vectors = {f"vector_{place}": vector_text(vector.values) for place, vector in enumerate(probe.vectors)}
    filters = {name: _plain(getattr(probe.filters, name)) for name in Filters.__slots__}
    indexed = {scope.scope_id for scope in probe.indexed}
    return {
        **weights,
        **vectors,
        **filters,
        "scopes": list(probe.scope_ids),
        "scanned": [scope_id for scope_id in probe.scope_ids if scope_id not in indexed],
        "keywords": sparse_text(probe.keywords),
        # As texts: an array of arrays would have to be rectangular, and the sets differ in size.
        "anchors": ["{" + ",".join(map(str, terms)) + "}" for terms in probe.anchors],
        "speakers": list(probe.speakers),
        "mentioning": list(probe.mentioning),
        "period_starts": [start for start, _ in probe.periods],
        "period_ends": [until for _, until in probe.periods],
        "current_session": probe.current_session,
        "threshold": probe.threshold,
        "candidates": probe.candidates,
        "nearest": max(probe.candidates // 2, 2 * probe.least),
        "most": probe.limit,
        # Not 0, since scores are divided by it.
        "least_scale": 1e-9,
    }


def _plain(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value


def _turn_hit(row: Row[Any]) -> TurnHit:
    # In the order of the statement's columns, and without a dictionary per row: rows are many.
    id, scope_id, session, seq, role, speaker, words, at, traits, *signals = tuple(row)
    turn = Turn(id=id, session=session, seq=seq, role=Role(role), speaker=speaker, text=words, at=at)
    return TurnHit(turn, scope_id, raw=Raw(*map(float, signals)), traits=traits)


def _memory_hit(row: Row[Any]) -> MemoryHit:
    # As in `_turn_hit`.
    id, scope_id, kind, words, subject, importance, tags, pinned, valid_from, valid_until, *others = tuple(
        row
    )
    last_seen, feedback, session, traits, similarity, keyword, scale, frequency, sent = others
    return MemoryHit(
        id=id,
        scope_id=scope_id,
        kind=kind,
        text=words,
        subject=subject,
        importance=importance,
        tags=tuple(tags),
        pinned=pinned,
        valid_from=valid_from,
        valid_until=valid_until,
        last_seen=last_seen,
        feedback_score=feedback,
        session=session,
        raw=Raw(float(similarity), float(keyword), scale=float(scale)),
        traits=traits,
        frequency=frequency,
        vector=None if sent is None else vector_of(sent),
    )
