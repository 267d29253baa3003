"""Many rows at once, for measurements: copies of a scope under other names, and the barest write there is."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, text

from memory_app.db import db

_COLUMNS = text(
    """SELECT string_agg(quote_ident(column_name), ', ' ORDER BY ordinal_position) FROM information_schema.columns
    WHERE table_schema = 'public' AND table_name = :table
      AND column_name NOT IN ('id', 'scope_id', 'session_id', 'run_id', 'successor')"""
)
_BARE_TABLE = text("CREATE TABLE IF NOT EXISTS bare_rows (id bigint GENERATED ALWAYS AS IDENTITY, said text)")
_BARE_GRANT = text("GRANT SELECT, INSERT ON bare_rows TO memory_app")
_BARE_INSERT = text("INSERT INTO bare_rows (said) VALUES (:said)")


def copy_memories(connection: Connection, source_scope_id: int, scope_ids: Sequence[int]) -> int:
    """Give each of the scopes the memories and term counts of another one of the same tenant; memories written."""
    written = {}
    for table in ("memories", "terms"):
        columns = connection.execute(_COLUMNS, {"table": table}).scalar_one()
        copying = text(
            f"""INSERT INTO {table} (scope_id, {columns})
            SELECT target, {columns} FROM {table}, unnest(CAST(:targets AS bigint[])) AS target
            WHERE scope_id = :source"""
        )
        values = {"source": source_scope_id, "targets": list(scope_ids)}
        written[table] = connection.execute(copying, values).rowcount
    return written["memories"]


def make_bare_table(connection: Connection) -> None:
    """A table without index, key or policy, which the application may write to. Needs the owner's connection."""
    connection.execute(_BARE_TABLE)
    connection.execute(_BARE_GRANT)


def insert_bare(connection: Connection, said: str) -> None:
    connection.execute(_BARE_INSERT, {"said": said})


def settle(owner_url: str, *tables: str) -> None:
    """Do what autovacuum would begin to do a while after so many rows, in the middle of what is timed.

    Only for ``tables`` that were filled: an empty one that was vacuumed is planned as one that stays empty.
    """
    engine = db.connect_owner(owner_url, statement_timeout_ms=0)
    try:
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.execute(text(f"VACUUM (ANALYZE) {', '.join(tables)}"))
    finally:
        engine.dispose()
