"""Copy everything from one database into another one that is empty, and compare the two.

For the step from the embedded servers to servers of one's own. Redis is not copied: hot memory is rebuilt. The target
gets all of it or nothing; the source is only read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import Connection, Engine

from memory_app.db import db
from memory_app.db.db import translated
from memory_app.errors import Conflict, Misconfigured, Permanent
from memory_app.hot.client import connect as connect_hot
from memory_app.settings import Settings
from memory_app.tenancy import schema
from memory_app.tenancy.access import owner_url
from memory_app.transfer.rows import copy

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Moved:
    """Rows by table, and the revision that both databases have."""

    revision: str
    rows: Mapping[str, int]


def move(source: Settings, target: Settings, *, say: Say) -> Moved:
    """Copy the database of ``source`` into that of ``target``; ``say`` is told each step.

    Both are brought to the newest schema first. Nothing may write to the source meanwhile: writers are kept out.
    Raises `Misconfigured` for servers that cannot be used, `Conflict` when the target is not empty or somebody works
    in one of the two, `StoreUnavailable`. Then the target is as empty as it was.
    """
    _check_redis(target)
    say("bringing the source to the newest schema")
    schema.upgrade(source)
    say("bringing the target to the newest schema")
    revision = schema.upgrade(target)
    # No time limit: COPY of a large table is one statement.
    engines = [db.connect_owner(owner_url(each), statement_timeout_ms=0) for each in (source, target)]
    try:
        with translated(engines[1]):
            rows = _copy(*engines, say=say)
            say("gathering statistics")
            # Autovacuum would gather them only later; until then queries are planned as if the tables were empty.
            with engines[1].begin() as connection:
                copy.analyze(connection)
    finally:
        for engine in engines:
            engine.dispose()
    return Moved(revision, rows)


def _check_redis(target: Settings) -> None:
    # Not used here, but better to fail before the copy than at the first start with the new servers.
    hot = connect_hot(
        target.redis_address,
        prefix=target.redis.prefix,
        timeout_seconds=target.redis.timeout_seconds,
        stream_turns=target.hot.stream_turns,
        stream_life=timedelta(days=target.hot.stream_days),
        context_life=timedelta(seconds=target.context.cache_seconds),
    )
    with closing(hot):
        hot.ping()


def _copy(source: Engine, target: Engine, *, say: Say) -> Mapping[str, int]:
    with source.begin() as reading, target.begin() as writing:
        copy.prepare(reading, one_state=True)
        copy.prepare(writing)
        _claim(reading, writing)
        rows: dict[str, int] = {}
        for table in copy.TABLES:
            rows[table] = _copy_table(reading, writing, table, say=say)
        copy.close_target(writing)
    return rows


def _claim(reading: Connection, writing: Connection) -> None:
    """Lock both databases, and refuse a target that cannot take the rows."""
    encoding = copy.encoding(writing)
    # Another encoding lacks characters that people have written.
    if encoding != "UTF8":
        raise Misconfigured(
            f"the target database has the encoding {encoding}; make one with ENCODING 'UTF8' and move into that"
        )
    if others := copy.other_shards(reading):
        raise Conflict(
            f"the source has {others} shards besides the first; move it with pg_dump, which takes all of them, "
            "or move their users to shard 0 first (`memory shards move-user`)"
        )
    copy.lock_source(reading)
    # Before the look for rows: row-level security hides them from the owner until then.
    copy.open_target(writing)
    full = copy.full_tables(writing)
    if full:
        raise Conflict(
            f"the target is not empty: there are rows in {', '.join(full)}; move into a new database, or drop this "
            "one and create it again"
        )


def _copy_table(reading: Connection, writing: Connection, table: str, *, say: Say) -> int:
    """Copy one table and compare it; how many rows it has."""
    columns = copy.columns(reading, table)
    target_columns = copy.columns(writing, table)
    if columns != target_columns:
        different = ", ".join(sorted({*columns} ^ {*target_columns}))
        raise Misconfigured(
            f"table {table} has not the same columns on both sides ({different}); `memory doctor` says which is wrong"
        )
    copy.copy_table(
        reading,
        writing,
        table=table,
        columns=columns,
        on_bytes=lambda sent: say(f"{table}: {sent / 1e6:.0f} MB"),
    )
    copy.copy_counters(reading, writing, table)
    before = copy.fingerprint(reading, table, columns)
    after = copy.fingerprint(writing, table, columns)
    if before != after:
        raise Permanent(
            f"table {table} differs after the copy: {before.rows} rows in the source, {after.rows} in the target, "
            "or other values; nothing was copied"
        )
    if after.rows:
        say(f"{table}: {after.rows} rows")
    return after.rows
