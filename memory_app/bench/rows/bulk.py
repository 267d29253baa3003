"""Many rows at once, for measurements: copies of a scope under other names, and the barest write there is."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, Table, TextClause, text

from memory_app.db import db
from memory_app.db.expressions import column_list
from memory_app.db.tables.memories import memories
from memory_app.db.tables.search import scope_models, scope_sizes, terms

_OF_ONE_SCOPE = ("id", "scope_id", "session_id", "run_id", "successor")
"""Columns that another scope cannot have the same values in."""

_BARE_TABLE = text("CREATE TABLE IF NOT EXISTS bare_rows (id bigint GENERATED ALWAYS AS IDENTITY, said text)")
_BARE_GRANT = text("GRANT SELECT, INSERT ON bare_rows TO memory_app")
_BARE_INSERT = text("INSERT INTO bare_rows (said) VALUES (:said)")


def _copying(table: Table) -> TextClause:
    columns = column_list(column for column in table.c if column.name not in _OF_ONE_SCOPE)
    return text(
        f"""INSERT INTO {table.name} (scope_id, {columns})
        SELECT target, {columns} FROM {table.name}, unnest(CAST(:targets AS bigint[])) AS target
        WHERE scope_id = :source"""
    )


_COPIES = {table.name: _copying(table) for table in (memories, terms)}
_COPIES_OF_SIZE = tuple(_copying(table) for table in (scope_sizes, scope_models))


def copy_memories(connection: Connection, source_scope_id: int, scope_ids: Sequence[int]) -> int:
    """Give each of the scopes the memories and term counts of another one of the same tenant; memories written."""
    values = {"source": source_scope_id, "targets": list(scope_ids)}
    written = {table: connection.execute(copying, values).rowcount for table, copying in _COPIES.items()}
    return written["memories"]


def copy_size(connection: Connection, source_scope_id: int, scope_ids: Sequence[int]) -> None:
    """Note for each of the scopes the size and the models of another one, by which maintenance finds a big scope."""
    for copying in _COPIES_OF_SIZE:
        connection.execute(copying, {"source": source_scope_id, "targets": list(scope_ids)})


def make_bare_table(connection: Connection) -> None:
    """A table without index, key or policy, which the application may write to. Needs the owner's connection."""
    connection.execute(_BARE_TABLE)
    connection.execute(_BARE_GRANT)


def insert_bare(connection: Connection, text: str) -> None:
    connection.execute(_BARE_INSERT, {"said": text})


def settle(owner_url: str, *, tables: Sequence[str]) -> None:
    """Do what autovacuum would begin to do a while after so many rows, in the middle of what is timed.

    Only for ``tables`` that were filled: an empty one that was vacuumed is planned as one that stays empty.
    """
    engine = db.connect_owner(owner_url, statement_timeout_ms=0)
    try:
        # VACUUM refuses to run inside of a transaction.
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.execute(text(f"VACUUM (ANALYZE) {', '.join(tables)}"))
    finally:
        engine.dispose()
