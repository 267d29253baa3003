"""Images of the rows that a job changes, written by triggers while it works, so that all of it can be undone.

They hold keys, counters and dates, never a text. How often a memory was recalled, and when last, is no change.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Table, TextClause, bindparam, delete, text

from memory_app.db.tables.memories import evidence, links, memories, mentions
from memory_app.db.tables.sleep import images
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
_RESTORED = (
    memories.c.session_id,
    memories.c.successor,
    memories.c.retired_at,
    memories.c.retired_reason,
    memories.c.valid_from,
    memories.c.valid_until,
    memories.c.pinned,
    memories.c.importance,
    memories.c.confidence,
    memories.c.sources,
    memories.c.repeat_count,
    memories.c.recall_count,
    memories.c.feedback_score,
    memories.c.last_seen,
    memories.c.confirmed_at,
    memories.c.first_confirmed_at,
    memories.c.last_recalled,
    memories.c.origin,
    memories.c.subtype,
    memories.c.synthesis_type,
    memories.c.traits,
)
"""What a job may change of a memory, as the function `memory_state` keeps it; words that were united stay so."""
_RESTORE_MEMORIES = text(
    f"""
    WITH net AS ({_NET})
    UPDATE memories m SET {", ".join(f"{column.name} = b.{column.name}" for column in _RESTORED)}
    FROM net CROSS JOIN LATERAL jsonb_populate_record(CAST(NULL AS memories), net.before) b
    WHERE net.source = 'memories' AND net.change = '{Change.UPDATE}'
      AND m.scope_id = :scope AND m.id = CAST(net.row_key ->> 'id' AS uuid)
    """
)
_DELETE = delete(images).where(images.c.scope_id == bindparam("scope"), images.c.run_id == bindparam("run"))
_EDGES = (links, mentions, evidence)
"""Tables whose rows a job adds and takes out, and of which no text has to be kept out of an image."""


def _edge_statements(table: Table) -> tuple[TextClause, TextClause]:
    """Delete what was inserted or changed; insert what was there before."""
    key = [column.name for column in table.primary_key if column.name != "scope_id"]
    same = " AND ".join(f"t.{name} = r.{name}" for name in key)
    deletion = f"""
        WITH net AS ({_NET})
        DELETE FROM {table.name} t
        USING net CROSS JOIN LATERAL jsonb_populate_record(CAST(NULL AS {table.name}), net.row_key) r
        WHERE net.source = '{table.name}' AND t.scope_id = :scope AND {same}"""
    insertion = f"""
        WITH net AS ({_NET})
        INSERT INTO {table.name} SELECT r.*
        FROM net CROSS JOIN LATERAL jsonb_populate_record(CAST(NULL AS {table.name}), net.before) r
        WHERE net.source = '{table.name}' AND net.change <> '{Change.INSERT}'"""
    return text(deletion), text(insertion)


_EDGE_STATEMENTS = tuple(_edge_statements(table) for table in _EDGES)


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
    # Triggers read the setting, so that no statement of a cycle can forget to keep an image.
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
    connection: Connection, tenant_id: int, scope_id: int, *, run_id: UUID, inserted: Sequence[UUID]
) -> None:
    """Restore every row as before the run; ``inserted`` are the memories that it stored.

    The images of the run are deleted: it cannot be undone twice.
    """
    values = {"scope": scope_id, "run": run_id}
    # Merged rows go first: their parts could not be current beside one that has the same text.
    merges.remove(connection, tenant_id, scope_id, ids=list(inserted))
    connection.execute(_RESTORE_MEMORIES, values)
    # Links and sources after the memories, to which they refer.
    for deletion, insertion in _EDGE_STATEMENTS:
        connection.execute(deletion, values)
        connection.execute(insertion, values)
    connection.execute(_DELETE, values)
