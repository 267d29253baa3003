"""Read what recall needs before it can search, in few round trips: each costs more than what it reads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import Connection, text

from memory_app.agents.rows.grants import HAS_RECEIVED
from memory_app.memories.rows.terms import ROWS
from memory_app.records.importance import PROMINENT
from memory_app.turns.rows.speakers import SPEAKERS_LIMIT

HOP_ENTITIES = 2
"""Entities taken in beside those that the query names: linked to them by memories that are pinned or important."""

PROMINENT_LIMIT = 500
"""Pinned or important memories looked through for such links."""

MENTIONING_LIMIT = 100
"""Memories per entity, the newest ones."""

HOP_SHARE = 0.5

LARGE_FROM_ROWS = 5_000
"""A scan of so many rows takes far longer than to plan it."""

_FACTS = text(
    f"""
    SELECT now() AS now,
        ARRAY(SELECT DISTINCT name FROM speakers WHERE scope_id = ANY(:scopes)
              ORDER BY name LIMIT :speakers) AS speakers,
        (SELECT jsonb_object_agg(c.term, c.n) FROM (
            SELECT term, sum(row_count) AS n FROM terms
            WHERE scope_id = ANY(:scopes) AND term = ANY(:terms) GROUP BY term) c) AS counts,
        ARRAY(SELECT DISTINCT coalesce(merged_into, id) FROM entities
              WHERE scope_id = ANY(:scopes) AND key = ANY(:keys)) AS entities,
        (SELECT jsonb_object_agg(name, id) FROM sessions
         WHERE scope_id = :scope AND name = ANY(:sessions)) AS sessions,
        (SELECT jsonb_agg(jsonb_build_array(scope_id, model, is_indexed)) FROM scope_models
         WHERE scope_id = ANY(:scopes)) AS models,
        EXISTS (SELECT FROM turns WHERE scope_id = ANY(:scopes) AND indexed_at IS NULL AND failed_at IS NULL)
            AS has_fresh_turns,
        {HAS_RECEIVED} AS has_grants
    """
)
_MENTIONING = text(
    f"""
    WITH prominent AS (
        SELECT scope_id, id FROM memories
        WHERE scope_id = ANY(:scopes) AND (pinned OR importance >= {PROMINENT}) AND retired_at IS NULL
        ORDER BY importance DESC, id DESC LIMIT :prominent
    ), hop AS (
        SELECT other.entity_id FROM prominent p
        JOIN mentions mine ON mine.scope_id = p.scope_id AND mine.memory_id = p.id AND mine.entity_id = ANY(:entities)
        JOIN mentions other ON other.scope_id = p.scope_id AND other.memory_id = p.id
            AND other.entity_id <> ALL(:entities)
        GROUP BY other.entity_id ORDER BY count(*) DESC, other.entity_id LIMIT :hops
    ), about AS (
        SELECT unnest(CAST(:entities AS bigint[])) AS entity_id, 1.0 AS share
        UNION ALL SELECT entity_id, :hop_share FROM hop
    )
    SELECT found.memory_id, max(a.share) AS share
    FROM about a CROSS JOIN LATERAL (
        SELECT m.memory_id FROM mentions m WHERE m.scope_id = ANY(:scopes) AND m.entity_id = a.entity_id
        ORDER BY m.memory_id DESC LIMIT :mentioning) found
    GROUP BY found.memory_id
    """
)


@dataclass(frozen=True, slots=True)
class ScopeModel:
    """A model of which a scope holds vectors, and whether it has search indexes for them."""

    scope_id: int
    model: str
    is_indexed: bool


@dataclass(frozen=True, slots=True)
class ScopeFacts:
    """What the scopes know of a query: ``counts`` are document frequencies by term id, ``rows`` all rows,
    ``entities`` ids of those it names, ``sessions`` ids by name."""

    now: datetime
    speakers: tuple[str, ...]
    counts: Mapping[int, int]
    rows: int
    entities: tuple[int, ...]
    sessions: Mapping[str, int]
    models: tuple[ScopeModel, ...]
    has_fresh_turns: bool
    has_grants: bool
    """Whether the scope may have been granted memories of other agents; of no meaning to who is bound to an agent."""

    @property
    def is_large(self) -> bool:
        """The searches are planned for these scopes; those of all others share plans that the server keeps."""
        return self.rows > LARGE_FROM_ROWS or any(model.is_indexed for model in self.models)


def read(
    connection: Connection,
    scope_id: int,
    scope_ids: Sequence[int],
    *,
    terms: Iterable[int],
    entity_keys: Sequence[str],
    sessions: Sequence[str],
) -> ScopeFacts:
    """Read everything that is looked up by key, in one statement; ``sessions`` are names in ``scope_id``."""
    row = connection.execute(
        _FACTS,
        {
            "scope": scope_id,
            "scopes": list(scope_ids),
            "terms": [ROWS, *terms],
            "keys": list(entity_keys),
            "sessions": list(sessions),
            "speakers": SPEAKERS_LIMIT,
        },
    ).one()
    counts = {int(term): int(n) for term, n in (row.counts or {}).items()}
    return ScopeFacts(
        now=row.now,
        speakers=tuple(row.speakers),
        counts=counts,
        rows=counts.pop(ROWS, 0),
        entities=tuple(row.entities),
        sessions=dict(row.sessions or {}),
        models=tuple(ScopeModel(*model) for model in row.models or ()),
        has_fresh_turns=row.has_fresh_turns,
        has_grants=row.has_grants,
    )


def mentioning(
    connection: Connection, scope_ids: Sequence[int], entities: Sequence[int]
) -> dict[UUID, float]:
    """Memories about the entities (1), and about at most two that strong memories link them with (half)."""
    values = {
        "scopes": list(scope_ids),
        "entities": list(entities),
        "prominent": PROMINENT_LIMIT,
        "hops": HOP_ENTITIES,
        "hop_share": HOP_SHARE,
        "mentioning": MENTIONING_LIMIT,
    }
    return {row.memory_id: float(row.share) for row in connection.execute(_MENTIONING, values)}
