"""What a statement reads from the database, for tests."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Engine, create_engine, text
from sqlalchemy.pool import NullPool


def rows(database: Engine | str, statement: str, **values: object) -> list[Any]:
    """All rows, by name and by place; ``database`` is an engine or the address of a database without one."""
    engine = create_engine(database, poolclass=NullPool) if isinstance(database, str) else database
    with engine.connect() as connection:
        return list(connection.execute(text(statement), values))


def tables_with(owner: Engine, word: str) -> list[str]:
    """Every table in which the word still stands, in any column."""
    listed = text("SELECT table_name FROM information_schema.tables WHERE table_schema = 'public' ORDER BY 1")
    with owner.connect() as connection:
        return [
            table
            for table in connection.execute(listed).scalars()
            if connection.execute(
                text(f"SELECT EXISTS (SELECT FROM {table} t WHERE t::text ILIKE :like)"),
                {"like": f"%{word}%"},
            ).scalar_one()
        ]


def whole_rows(owner: Engine, table: str) -> list[str]:
    """Every row of a table as text, without the numbers of the transactions that changed it: an undo is a change."""
    numbers = "ARRAY['stored_xact', 'altered_xact']"
    return sorted(
        row.whole for row in rows(owner, f"SELECT (to_jsonb(t) - {numbers})::text AS whole FROM {table} t")
    )
