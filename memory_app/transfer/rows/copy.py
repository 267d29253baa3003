"""Copy all rows of one database into another that is migrated and empty, table by table, without holding them.

The caller holds one transaction on each side: the source's keeps writers out and sees one state, the target's is
committed when everything was compared. Rows travel in the text form of COPY, which is the same on every version.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import sql
from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from memory_app.db.tables import metadata
from memory_app.errors import Conflict, StoreUnavailable

# Sorted by foreign keys: a row cannot be stored before the one that it refers to.
TABLES = tuple(table.name for table in metadata.sorted_tables)
"""Each after those that it refers to."""

# The list of shards belongs to no tenant, and neither do decisions.
_ROW_LEVEL_SECURITY = tuple(name for name in TABLES if name not in ("shards", "decisions"))

SCHEMA = "public"
PROGRESS_BYTES = 50_000_000

# Fingerprints compare the text of whole rows, and these settings decide how times, numbers and bytes are written. The
# time-outs of the role are lifted: one table may take longer than any statement of the product.
_SET_FORMS = text(
    """
    SELECT set_config('timezone', 'UTC', true), set_config('datestyle', 'ISO, MDY', true),
           set_config('intervalstyle', 'postgres', true), set_config('extra_float_digits', '1', true),
           set_config('bytea_output', 'hex', true), set_config('client_encoding', 'UTF8', true),
           set_config('lock_timeout', :lock_timeout, true), set_config('statement_timeout', '0', true),
           set_config('idle_in_transaction_session_timeout', '0', true)
    """
)
_ONE_STATE = text("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
_COLUMNS = text(
    """
    SELECT a.attname::text FROM pg_attribute a
    WHERE a.attrelid = CAST(:table AS regclass) AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
    ORDER BY 1
    """
)
_COUNTERS = text(
    """
    SELECT a.attname::text AS column, pg_get_serial_sequence(:table, a.attname) AS sequence FROM pg_attribute a
    WHERE a.attrelid = CAST(:table AS regclass) AND a.attnum > 0 AND NOT a.attisdropped AND a.attidentity <> ''
    """
)
_OTHER_SHARDS = text("SELECT count(*) FROM public.shards WHERE id > 0")
_ENCODING = text("SELECT current_setting('server_encoding')")

LOCK_NOT_AVAILABLE = "55P03"

# Long enough for a worker that ends its transaction, short enough to tell a person that something still runs.
LOCK_TIMEOUT = "10s"


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """How many rows a table has, and a sum over digests of all of them in which their order does not matter."""

    rows: int
    checksum: int


def prepare(connection: Connection, *, one_state: bool = False) -> None:
    """Set up the transaction so that values have the same text on both sides and locks are not waited for long."""
    # The isolation level first: PostgreSQL refuses to change it after any query of the transaction.
    if one_state:
        connection.execute(_ONE_STATE)
    connection.execute(_SET_FORMS, {"lock_timeout": LOCK_TIMEOUT})


def encoding(connection: Connection) -> str:
    return str(connection.execute(_ENCODING).scalar_one())


def lock_source(connection: Connection) -> None:
    """Keep writers out of all tables until the end of the transaction. Raises `Conflict` when somebody works there."""
    tables = ", ".join(map(_named, TABLES))
    with _alone("source"):
        # SHARE stops writers and lets readers go on.
        connection.execute(text(f"LOCK TABLE {tables} IN SHARE MODE"))


def open_target(connection: Connection) -> None:
    """Lock the tables and let their owner see and write all rows. Raises `Conflict` when somebody works there."""
    with _alone("target"):
        for table in _ROW_LEVEL_SECURITY:
            connection.execute(text(f"ALTER TABLE {_named(table)} NO FORCE ROW LEVEL SECURITY"))
        for table in TABLES:
            # The rows that triggers keep are copied, too; with the triggers on, they would be counted twice.
            connection.execute(text(f"ALTER TABLE {_named(table)} DISABLE TRIGGER USER"))


def close_target(connection: Connection) -> None:
    """Put back what `open_target` changed."""
    # The partial search indexes of big scopes are no rows: they are not copied, and maintenance builds them again.
    connection.execute(text("UPDATE scope_models SET is_indexed = false WHERE is_indexed"))
    # They came with the numbers of transactions of the source's cluster, to which this one has perhaps not come.
    connection.execute(text("SELECT public.xact_renumber()"))
    for table in TABLES:
        connection.execute(text(f"ALTER TABLE {_named(table)} ENABLE TRIGGER USER"))
    for table in _ROW_LEVEL_SECURITY:
        connection.execute(text(f"ALTER TABLE {_named(table)} FORCE ROW LEVEL SECURITY"))


def other_shards(connection: Connection) -> int:
    """How many shards there are beside the home shard."""
    return int(connection.execute(_OTHER_SHARDS).scalar_one())


def full_tables(connection: Connection) -> tuple[str, ...]:
    """Tables that hold a row. `open_target` must have run, or the owner may see none."""

    def has_rows(table: str) -> bool:
        statement = text(f"SELECT EXISTS (SELECT FROM {_named(table)})")
        return bool(connection.execute(statement).scalar_one())

    return tuple(filter(has_rows, TABLES))


def columns(connection: Connection, table: str) -> tuple[str, ...]:
    """Names of the columns in alphabetical order."""
    # An upgraded table has its columns in another order than one that was just made, so their own order says nothing.
    return tuple(connection.execute(_COLUMNS, {"table": _named(table)}).scalars())


def copy_table(
    source: Connection,
    target: Connection,
    *,
    table: str,
    columns: Sequence[str],
    on_bytes: Callable[[int], None],
) -> None:
    """Copy the rows; ``on_bytes`` is called with the bytes copied so far, every 50 MB.

    Raises `Conflict` when the target refuses a row, `StoreUnavailable` when a server went away.
    """
    names = sql.SQL(", ").join(sql.Identifier(column) for column in columns)
    place = sql.Identifier(SCHEMA, table)
    reading = sql.SQL("COPY {} ({}) TO STDOUT").format(place, names)
    writing = sql.SQL("COPY {} ({}) FROM STDIN").format(place, names)
    copied = reported = 0
    try:
        with (
            _driver(source).cursor() as reader,
            _driver(target).cursor() as writer,
            reader.copy(reading) as rows,
            writer.copy(writing) as sink,
        ):
            for block in rows:
                sink.write(block)
                copied += len(block)
                if copied - reported >= PROGRESS_BYTES:
                    reported = copied
                    on_bytes(copied)
    except (psycopg.IntegrityError, psycopg.DataError) as error:
        # The message of the server quotes the row; the name of the rule does not.
        rule = error.diag.constraint_name or error.sqlstate
        raise Conflict(f"the target refuses a row of {table} ({rule}); nothing was copied") from error
    except psycopg.OperationalError as error:
        raise StoreUnavailable(
            f"a server went away while {table} was copied ({error.sqlstate or type(error).__name__}); nothing was "
            "copied; move again"
        ) from error


def copy_counters(source: Connection, target: Connection, table: str) -> None:
    """Let new rows get the numbers that they would have got in the source."""
    target_counters = target.execute(_COUNTERS, {"table": _named(table)})
    sequences = {row.column: row.sequence for row in target_counters}
    for row in source.execute(_COUNTERS, {"table": _named(table)}):
        last, is_called = source.execute(text(f"SELECT last_value, is_called FROM {row.sequence}")).one()
        # is_called too: without it a counter that was never used would skip its first number.
        values = {"sequence": sequences[row.column], "last": last, "is_called": is_called}
        target.execute(text("SELECT setval(CAST(:sequence AS regclass), :last, :is_called)"), values)


def fingerprint(connection: Connection, table: str, columns: Sequence[str]) -> Fingerprint:
    """What the table holds, in a form that can be compared with that of another server."""
    names = ", ".join(f't."{column}"' for column in columns)
    # 60 bits of each digest, so that their sum stays a number; a sum does not depend on the order of the rows.
    digest = f"left(encode(sha256(convert_to(ROW({names})::text, 'UTF8')), 'hex'), 15)"
    statement = f"SELECT count(*), coalesce(sum(CAST(('x' || {digest})::bit(60) AS bigint)), 0) FROM {_named(table)} t"
    # Not as text(): the colons of the casts would be taken for parameters.
    rows, checksum = connection.exec_driver_sql(statement).one()
    return Fingerprint(int(rows), int(checksum))


def analyze(connection: Connection) -> None:
    """Let the planner know the tables at once."""
    for table in TABLES:
        connection.execute(text(f"ANALYZE {_named(table)}"))


@contextmanager
def _alone(side: str) -> Iterator[None]:
    try:
        yield
    except DBAPIError as error:
        if getattr(error.orig, "sqlstate", None) != LOCK_NOT_AVAILABLE:
            raise
        raise Conflict(
            f"somebody works in the {side}: stop every part that uses it, and move again; nothing was changed"
        ) from error


def _driver(connection: Connection) -> psycopg.Connection[Any]:
    driver = connection.connection.driver_connection
    assert isinstance(driver, psycopg.Connection)
    return driver


def _named(table: str) -> str:
    return f'{SCHEMA}."{table}"'
