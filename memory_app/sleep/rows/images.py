"""Images of the rows that a job changes, written by triggers while it works, so that all of it can be undone.

They hold keys, counters and dates, never a text. How often a memory was recalled, and when last, is no change.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, text

from memory_app.memories.rows import merges
from memory_app.records.run import Change

_BEGIN = text("SELECT set_config('memory.run', :run, true)")
_END = text("SELECT set_config('memory.run', '', true)")

_NET = """
    SELECT DISTINCT ON (i.source, i.row_key) i.source, i.row_key, i.change, i.before,
           last_value(i.after) OVER (PARTITION BY i.source, i.row_key ORDER BY i.id
                                     ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS after
    FROM images i WHERE i.scope_id = :scope AND i.run_id = :run
    ORDER BY i.source, i.row_key, i.id
"""
"""The first state and the last of each row that the run changed; ``change`` is what it did first."""

_MEMORIES = text(
    f"""
    WITH net AS ({_NET})
    SELECT CAST(net.row_key ->> 'id' AS uuid) AS id, net.change, net.before, net.after,
           CASE WHEN m.id IS NOT NULL THEN memory_state(m) END AS state
    FROM net LEFT JOIN memories m ON m.scope_id = :scope AND m.id = CAST(net.row_key ->> 'id' AS uuid)
    WHERE net.source = 'memories' ORDER BY 1
    """
)
_RESTORE_MEMORIES = text(
    f"""
    WITH net AS ({_NET})
    UPDATE memories m SET
        session_id = b.session_id, successor = b.successor, retired_at = b.retired_at,
        retired_reason = b.retired_reason, valid_from = b.valid_from, valid_until = b.valid_until, pinned = b.pinned,
        importance = b.importance, confidence = b.confidence, sources = b.sources, repeat_count = b.repeat_count,
        recall_count = b.recall_count, feedback_score = b.feedback_score, last_seen = b.last_seen,
        confirmed_at = b.confirmed_at, last_recalled = b.last_recalled
    FROM net CROSS JOIN LATERAL jsonb_populate_record(CAST(NULL AS memories), net.before) b
    WHERE net.source = 'memories' AND net.change = '{Change.UPDATE}'
      AND m.scope_id = :scope AND m.id = CAST(net.row_key ->> 'id' AS uuid)
    """
)
_KEYS = {
    "links": ("source_id", "target_id", "type"),
    "mentions": ("memory_id", "entity_id"),
    "evidence": ("memory_id", "turn_scope_id", "turn_id"),
}


@dataclass(frozen=True, slots=True)
class RowImage:
    """A memory that a run changed: what it did first, and the states before, after and now (None: no such row)."""

    id: UUID
    change: Change
    before: dict[str, Any] | None
    after: dict[str, Any] | None
    state: dict[str, Any] | None


def begin(connection: Connection, run_id: UUID) -> None:
    """Keep an image of every row that is changed from here on, until `end` or the end of the transaction."""
    connection.execute(_BEGIN, {"run": str(run_id)})


def end(connection: Connection) -> None:
    """Stop keeping images."""
    connection.execute(_END)


def rows_of_run(connection: Connection, scope_id: int, run_id: UUID) -> tuple[RowImage, ...]:
    """The memories that a run changed."""
    rows = connection.execute(_MEMORIES, {"scope": scope_id, "run": run_id})
    return tuple(
        RowImage(id=row.id, change=Change(row.change), before=row.before, after=row.after, state=row.state)
        for row in rows
    )


def restore(
    connection: Connection, tenant_id: int, scope_id: int, run_id: UUID, *, inserted: Sequence[UUID]
) -> None:
    """Restore every row as before the run; ``inserted`` are the memories that it stored.

    The images of the run are deleted: it cannot be undone twice.
    """
    values = {"scope": scope_id, "run": run_id}
    # Merged rows go first: their parts could not be current beside one that has the same text.
    merges.remove(connection, tenant_id, scope_id, list(inserted))
    connection.execute(_RESTORE_MEMORIES, values)
    for source, columns in _KEYS.items():
        for statement in _edge_statements(source, columns):
            connection.execute(text(statement), values)
    connection.execute(text("DELETE FROM images WHERE scope_id = :scope AND run_id = :run"), values)


def _edge_statements(source: str, columns: Sequence[str]) -> tuple[str, str]:
    """Delete what was inserted or changed; insert what was there before."""
    same = " AND ".join(f"t.{column} = r.{column}" for column in columns)
    deletion = f"""
        WITH net AS ({_NET})
        DELETE FROM {source} t
        USING net CROSS JOIN LATERAL jsonb_populate_record(CAST(NULL AS {source}), net.row_key) r
        WHERE net.source = '{source}' AND t.scope_id = :scope AND {same}"""
    insertion = f"""
        WITH net AS ({_NET})
        INSERT INTO {source} SELECT r.*
        FROM net CROSS JOIN LATERAL jsonb_populate_record(CAST(NULL AS {source}), net.before) r
        WHERE net.source = '{source}' AND net.change <> '{Change.INSERT}'"""
    return deletion, insertion
