"""Bring a database to the newest schema, as its owner, while others work in it."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping
from pathlib import Path

import psycopg
from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, Engine, make_url, text
from sqlalchemy.exc import DBAPIError

import migrations
from memory_app.db import app_role, catalog, prerequisites, revision
from memory_app.db.db import connect_owner, translated
from memory_app.errors import Misconfigured, StoreUnavailable

MIGRATIONS = Path(migrations.__file__).parent

ADVISORY_LOCK = 0x6D656D6F7279
"""Key of the advisory lock that migrators of a database queue on ("memory" in ASCII)."""

LOCK_TIMEOUT_MS = 2_000
"""While a statement waits for its table, everybody who comes later waits behind it: well below what the application
bears (MEMORY_DATABASE__LOCK_TIMEOUT_MS). Then all is given up, and tried again a little later. Longer than PostgreSQL's
``deadlock_timeout`` (1 s), after which an autovacuum that is in the way is ended."""

ALL_TABLES_MS = 500
"""For all tables together to come free of those who read and write. Shorter than ``deadlock_timeout``, so that where a
call of the application and the migrator wait for each other, the migrator is the one who gives way."""

STATEMENT_TIMEOUT = "10min"

PATIENCE_SECONDS = 300.0
PAUSE_SECONDS = (0.2, 1.5)
"""Between two tries, at random: two migrators must not meet again and again."""

_COLLISIONS = frozenset({"55P03", "40P01", "40001"})
"""SQLSTATEs of meeting somebody else: lock time-out, deadlock, serialization."""

_SET_LIMITS = text(
    "SELECT set_config('lock_timeout', :lock_timeout, true), set_config('statement_timeout', :statement_timeout, true)"
)
_LOCK = text("SELECT pg_advisory_xact_lock(:key)")
_LIMIT_STATEMENT = text("SELECT set_config('statement_timeout', :statement_timeout, true)")
_EXISTING = text(
    "SELECT name FROM unnest(CAST(:tables AS text[])) name WHERE to_regclass(name) IS NOT NULL ORDER BY 1"
)
_LET_SCRIPT_KNOW = text(
    "SELECT set_config('search_path', :path, true), set_config('memory.tables', :tables, true)"
)


def upgrade(
    owner_url: str,
    app_url: str,
    session_defaults: Mapping[str, str],
    *,
    patience_seconds: float = PATIENCE_SECONDS,
) -> str:
    """Migrate, give the application's role the password that ``app_url`` carries and its defaults; the new revision.

    All of it or nothing. Several at once wait for each other. Raises `StoreUnavailable` when the server is away or its
    tables stayed locked; `Misconfigured` where the server or a right of the owner is not enough, and behind a pooler
    that shares server processes.
    """
    engine = connect_owner(owner_url, statement_timeout_ms=0)
    password = make_url(app_url).password
    deadline = time.monotonic() + patience_seconds
    try:
        with translated(engine):
            while not _is_upgraded(engine, str(password) if password else None, session_defaults):
                if time.monotonic() > deadline:
                    raise StoreUnavailable(
                        f"the tables stayed in use for {patience_seconds:.0f} s and nothing was changed; run "
                        "`memory migrate` again when no long transaction or other migration is under way"
                    )
                time.sleep(random.uniform(*PAUSE_SECONDS))
    finally:
        engine.dispose()
    return revision.newest()


def differences(owner_url: str) -> tuple[catalog.Difference, ...]:
    """What the database has otherwise than the code expects: what `upgrade` cannot make again, such as a column."""
    engine = connect_owner(owner_url)
    try:
        with translated(engine), engine.begin() as connection:
            return catalog.differences_of(connection)
    finally:
        engine.dispose()


def run_script(connection: Connection, name: str) -> None:
    """Run a file of SQL statements from the folder of the migrations."""
    prerequisites.run(connection, (MIGRATIONS / name).read_text(encoding="utf-8"))


def _is_upgraded(engine: Engine, password: str | None, session_defaults: Mapping[str, str]) -> bool:
    """Try once; False, and nothing is changed, when somebody else was in the way."""
    try:
        with engine.begin() as connection:
            _upgrade(connection, password, session_defaults)
    except (DBAPIError, psycopg.Error) as error:
        if _is_collision(error):
            return False
        raise
    return True


def _upgrade(connection: Connection, password: str | None, session_defaults: Mapping[str, str]) -> None:
    connection.execute(
        _SET_LIMITS, {"lock_timeout": str(LOCK_TIMEOUT_MS), "statement_timeout": STATEMENT_TIMEOUT}
    )
    # Of the transaction: it goes with it, however that ends.
    connection.execute(_LOCK, {"key": ADVISORY_LOCK})
    prerequisites.ensure(connection)
    stored = revision.stored(connection)
    if revision.is_ahead(stored):
        raise Misconfigured(str(revision.difference(stored)))
    # Temporary objects last, as functions keep this path: nobody may slip in a table of theirs.
    path = f"{prerequisites.search_path(connection)}, pg_temp"
    connection.execute(_LET_SCRIPT_KNOW, {"path": path, "tables": ",".join(catalog.TABLES)})
    run_script(connection, "base.sql")
    if stored != revision.newest():
        _lock_tables(connection)
    config = _config()
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
    # Last, as it gives rights on what the revisions made.
    run_script(connection, "access.sql")
    if password:
        app_role.write_password(connection, password)
    app_role.write_defaults(connection, session_defaults)


def _lock_tables(connection: Connection) -> None:
    """Lock every table that is there at once, since a revision changes several while others use them in any order."""
    tables = connection.execute(_EXISTING, {"tables": list(catalog.TABLES)}).scalars().all()
    if not tables:
        return
    names = ", ".join(tables)
    # Keeps autovacuum away, which would not give way within the short wait below, and holds up no read or write.
    connection.execute(text(f"LOCK TABLE {names} IN SHARE UPDATE EXCLUSIVE MODE"))
    # A lock time-out begins anew with each table, so the statement is limited as a whole.
    connection.execute(_LIMIT_STATEMENT, {"statement_timeout": str(ALL_TABLES_MS)})
    connection.execute(text(f"LOCK TABLE {names} IN ACCESS EXCLUSIVE MODE"))
    connection.execute(_LIMIT_STATEMENT, {"statement_timeout": STATEMENT_TIMEOUT})


def _is_collision(error: DBAPIError | psycopg.Error) -> bool:
    """Whether the same may work a moment later.

    Roles belong to all databases of a cluster: another migrator may make or change the same one at the same moment, and
    Postgres then refuses one of the two, with different words each time.
    """
    cause = error.orig if isinstance(error, DBAPIError) else error
    if not isinstance(cause, psycopg.Error):
        return False
    # "tuple concurrently updated", an internal error without a state of its own.
    if cause.sqlstate == "XX000":
        return "concurrently" in str(cause)
    # A unique index of the catalog: two made the same object at the same moment.
    if cause.sqlstate == "23505":
        return str(cause.diag.constraint_name).startswith("pg_")
    # The statement time-out, where it limits the wait for locks and not the work.
    if cause.sqlstate == "57014":
        return isinstance(error, DBAPIError) and str(error.statement).startswith("LOCK TABLE")
    if cause.sqlstate == "42710":
        return isinstance(error, DBAPIError) and str(error.statement).startswith("CREATE ROLE")
    return cause.sqlstate in _COLLISIONS


def _config() -> Config:
    config = Config()
    # A single % begins a reference in the format of this configuration.
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    return config
