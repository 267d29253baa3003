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
