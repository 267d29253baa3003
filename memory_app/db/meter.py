"""What statements cost, counted instead of timed: blocks and rows that the server read, statements that were sent.

Blocks are those of tables and their indexes, whether they came from memory or from disk; rows are those that scans read
and entries that indexes returned. Both come from the server's own statistics, so what triggers and functions read
counts as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Engine, event, text

_COUNTERS = text(
    """
    SELECT (SELECT sum(heap_blks_read + heap_blks_hit + coalesce(idx_blks_read + idx_blks_hit, 0)
                       + coalesce(toast_blks_read + toast_blks_hit + tidx_blks_read + tidx_blks_hit, 0))
            FROM pg_statio_user_tables)::bigint AS blocks,
           (SELECT sum(seq_tup_read) FROM pg_stat_user_tables)::bigint
               + (SELECT sum(idx_tup_read) FROM pg_stat_user_indexes)::bigint AS rows
    """
)
_LOCKS = text("SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'relation'")


@dataclass(slots=True)
class Cost:
    """Filled in when the measured block ends."""

    statements: int = 0
    blocks: int = 0
    rows: int = 0


@dataclass(slots=True)
class Meter:
    """Counts what goes through ``engine``; nothing else may use the database meanwhile."""

    engine: Engine
    owner: Engine
    statements: int = 0

    def __post_init__(self) -> None:
        event.listen(self.engine, "before_cursor_execute", self._count)
        for engine in (self.engine, self.owner):
            event.listen(engine, "checkin", _flush)

    def _count(self, *_: Any) -> None:
        self.statements += 1

    @contextmanager
    def measured(self) -> Iterator[Cost]:
        """The cost of what runs inside; also where it raises."""
        cost = Cost()
        blocks, rows = self._counters()
        sent = self.statements
        try:
            yield cost
        finally:
            cost.statements = self.statements - sent
            blocks_after, rows_after = self._counters()
            cost.blocks, cost.rows = blocks_after - blocks, rows_after - rows

    def _counters(self) -> tuple[int, int]:
        # As the owner, whose statements are not counted: reading the counters must not move them.
        with self.owner.connect() as connection:
            row = connection.execute(_COUNTERS).one()
            return int(row.blocks or 0), int(row.rows or 0)


def relation_locks(connection: Any) -> int:
    """Tables and indexes that this transaction holds locks on."""
    return int(connection.execute(_LOCKS).scalar_one())


def _flush(connection: Any, _record: Any) -> None:
    """A server process reports what it counted once a second at most, unless it is told to do so at once."""
    if connection is not None:
        connection.execute("SELECT pg_stat_force_next_flush()")
        # The pool has ended the transaction already, and this statement began another.
        connection.rollback()
