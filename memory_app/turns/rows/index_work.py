"""Rows of turns at work: claim them for indexing, write what search reads of them, or give them back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from sqlalchemy import Connection, text

from memory_app.db.vectors import sparse_text, terms_text, vector_text
from memory_app.records.records import HIDDEN


@dataclass(frozen=True, slots=True)
class ClaimedTurn:
    """A turn lent for indexing; ``starts`` counts this start."""

    tenant_id: int
    scope_id: int
    id: UUID
    starts: int


@dataclass(frozen=True, slots=True)
class IndexedTurn:
    """What search reads of a turn: its vector, the document side of its keyword score, the bits of `Trait`."""

    scope_id: int
    id: UUID
    embedding: Sequence[float]
    keywords: dict[int, float]
    traits: int


_CLAIM = text("SELECT tenant_id, scope_id, id, starts FROM claim_turns(:batch, :lease)")

# Only where the turn is not indexed yet: a worker whose lease ran out may come second, and must count nothing twice.
# Locked in the order of their ids, as by an erasure of a session: the two must not wait for each other in a circle.
_INDEX = text(
    """
    WITH held AS MATERIALIZED (
        SELECT t.scope_id, t.id, t.reason IS NULL OR t.reason <> ALL(CAST(:hidden AS text[])) AS is_shown FROM turns t
        JOIN unnest(CAST(:scopes AS bigint[]), CAST(:ids AS uuid[])) AS v(scope_id, id) USING (scope_id, id)
        WHERE t.indexed_at IS NULL ORDER BY t.id FOR NO KEY UPDATE OF t
    )
    UPDATE turns t
    SET indexed_at = now(), index_task_id = :task, lease_until = NULL, failures = 0, traits = v.traits,
        embedding_model = CASE WHEN h.is_shown THEN :model END,
        embedding = CASE WHEN h.is_shown THEN CAST(v.embedding AS halfvec) END,
        keywords = CASE WHEN h.is_shown THEN CAST(v.keywords AS sparsevec) END,
        terms = CASE WHEN h.is_shown THEN CAST(v.terms AS integer[]) END
    FROM unnest(CAST(:scopes AS bigint[]), CAST(:ids AS uuid[]), CAST(:embeddings AS text[]),
                CAST(:keywords AS text[]), CAST(:terms AS text[]), CAST(:traits AS smallint[]))
         AS v(scope_id, id, embedding, keywords, terms, traits)
    JOIN held h USING (scope_id, id)
    WHERE t.scope_id = v.scope_id AND t.id = v.id AND t.indexed_at IS NULL
    RETURNING t.scope_id, t.id, t.keywords IS NOT NULL AS is_searched
    """
)
# More starts than at the claim are those of later workers: they stay counted, and the last one's lease goes on. Fewer:
# somebody explained this start already. Locked in the same order as above.
_POSTPONE = text(
    """
    WITH held AS MATERIALIZED (
        SELECT t.scope_id, t.id FROM turns t
        JOIN unnest(CAST(:scopes AS bigint[]), CAST(:ids AS uuid[])) AS v(scope_id, id) USING (scope_id, id)
        ORDER BY t.id FOR NO KEY UPDATE OF t
    )
    UPDATE turns t
    SET starts = t.starts - v.starts, failures = t.failures + 1,
        lease_until = CASE WHEN t.starts > v.starts THEN t.lease_until ELSE now() + CAST(:wait AS interval) END
    FROM unnest(CAST(:scopes AS bigint[]), CAST(:ids AS uuid[]), CAST(:starts AS smallint[])) AS v(scope_id, id, starts)
    JOIN held h USING (scope_id, id)
    WHERE t.scope_id = v.scope_id AND t.id = v.id AND t.indexed_at IS NULL AND t.failed_at IS NULL
      AND t.starts >= v.starts
    """
)


def claim(connection: Connection, *, batch: int, lease: timedelta) -> tuple[ClaimedTurn, ...]:
    """Borrow unindexed turns of any session and tenant; counts a start for each."""
    rows = connection.execute(_CLAIM, {"batch": batch, "lease": lease})
    return tuple(ClaimedTurn(*row) for row in rows)


def index(
    connection: Connection, indexed: Sequence[IndexedTurn], *, model: str, task_id: UUID | None
) -> dict[UUID, bool]:
    """Write vectors; the ids that were not indexed before, so that a second worker counts nothing twice, and whether
    search finds each: one that is not to be kept has no vectors."""
    values = {
        "model": model,
        "hidden": list(HIDDEN),
        "task": task_id,
        "scopes": [turn.scope_id for turn in indexed],
        "ids": [turn.id for turn in indexed],
        "embeddings": [vector_text(turn.embedding) for turn in indexed],
        "keywords": [sparse_text(turn.keywords) for turn in indexed],
        "terms": [terms_text(turn.keywords) for turn in indexed],
        "traits": [int(turn.traits) for turn in indexed],
    }
    return {row.id: row.is_searched for row in connection.execute(_INDEX, values)}


def postpone(connection: Connection, claimed: Sequence[ClaimedTurn], wait: timedelta) -> None:
    """Give claimed turns back after a handled error; its start is explained, so it no longer counts.

    The scopes must be held (`names.share_scopes`), as by who indexes: an erasure of a person closes them and then
    deletes turns in an order of its own.
    """
    values = {
        "scopes": [turn.scope_id for turn in claimed],
        "ids": [turn.id for turn in claimed],
        "starts": [turn.starts for turn in claimed],
        "wait": wait,
    }
    connection.execute(_POSTPONE, values)
