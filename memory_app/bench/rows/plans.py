"""Statements as they are sent, and their plans."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection, Engine, event


@contextmanager
def sent(engine: Engine) -> Iterator[list[tuple[str, Any]]]:
    """Statements that go through the engine, in whichever shard, during the block, with their values."""
    statements: list[tuple[str, Any]] = []

    def note(_connection: object, _cursor: object, statement: str, values: Any, *_: object) -> None:
        statements.append((statement, values))

    event.listen(engine, "before_cursor_execute", note)
    try:
        yield statements
    finally:
        event.remove(engine, "before_cursor_execute", note)


def plan(connection: Connection, statement: str, values: Any) -> Mapping[str, Any]:
    """The plan of a statement, with the time that planning took."""
    explained = connection.exec_driver_sql(f"EXPLAIN (SUMMARY, FORMAT JSON) {statement}", values)
    (found,) = explained.scalar_one()
    result: Mapping[str, Any] = found
    return result
