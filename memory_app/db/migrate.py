"""Bring a database to the newest schema, as its owner, while others work in it."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import psycopg
import structlog
from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, Engine, make_url, text
from sqlalchemy.exc import DBAPIError

import migrations
from memory_app.db import app_role, catalog, prerequisites, revision, validation
from memory_app.db.db import connect_owner, translated
from memory_app.db.shards import HOME, LARGEST, first_key, schema_of
from memory_app.errors import Conflict, Misconfigured, StoreUnavailable

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

log = structlog.get_logger(__name__)

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
    """SELECT :schema || '.' || name FROM unnest(CAST(:tables AS text[])) name
    WHERE to_regclass(:schema || '.' || name) IS NOT NULL ORDER BY 1"""
)
_LET_SCRIPT_KNOW = text(
    """SELECT set_config('search_path', :path, true), set_config('memory.tables', :tables, true),
    set_config('memory.shard', :shard, true)"""
)
# A schema without an entry comes of a list that is older than the schema, as after a restore.
_UNLISTED_SHARDS = text(
    """SELECT CAST(right(nspname, 4) AS smallint) AS shard FROM pg_namespace
    WHERE nspname ~ '^shard_\\d{4}$' AND to_regclass(nspname || '.alembic_version') IS NOT NULL
    AND CAST(right(nspname, 4) AS smallint) NOT IN (SELECT id FROM public.shards) ORDER BY 1"""
)
_OTHER_SHARDS = text("SELECT id FROM public.shards WHERE id > 0 ORDER BY id")
_NEXT_SHARD = text("SELECT coalesce(max(id), 0) + 1 FROM public.shards")
_ENTER = text("INSERT INTO public.shards (id, revision) VALUES (:shard, :revision)")
_LISTED_REVISION = text("SELECT revision FROM public.shards WHERE id = :shard")
_NOTE_REVISION = text("UPDATE public.shards SET revision = :revision WHERE id = :shard")
_SEQUENCES = text(
    """SELECT CAST(c.oid AS regclass)::text FROM pg_class c
    WHERE c.relnamespace = CAST(:schema AS text)::regnamespace AND c.relkind = 'S'"""
)
_COPY_TENANTS = text(
    "INSERT INTO tenants OVERRIDING SYSTEM VALUE SELECT * FROM public.tenants ON CONFLICT DO NOTHING"
)


def upgrade(
    owner_url: str,
    app_url: str,
    session_defaults: Mapping[str, str],
    *,
    patience_seconds: float = PATIENCE_SECONDS,
) -> str:
    """Migrate, give the application's role the password that ``app_url`` carries and its defaults; the new revision.

    The tables of a shard are changed wholly or not at all; what its rows have to be compared with is compared then, and
    the next call goes on with it. Several at once wait for each other. Raises `StoreUnavailable` when the server is
    away or its tables stayed locked; `Misconfigured` where the server or a right of the owner is not enough, and behind
    a pooler that shares server processes; `Conflict` where rows break a new constraint.
    """
    engine = connect_owner(owner_url, statement_timeout_ms=0)
    password = make_url(app_url).password
    login = _Login(str(password) if password else None, session_defaults)
    deadline = _Deadline(patience_seconds)
    try:
        with translated(engine):
            _insist(engine, lambda connection: _upgrade(connection, login), shard=HOME, deadline=deadline)
            _validate(engine, HOME, deadline)
            # The home shard first, since it has the list of the others. One by one, so that the tables of each are
            # locked only for as long as its own work takes.
            for shard in _others(engine):
                _migrate_shard(engine, shard, deadline)
    finally:
        engine.dispose()
    return revision.newest()


def add_shards(owner_url: str, count: int, *, patience_seconds: float = PATIENCE_SECONDS) -> tuple[int, ...]:
    """Make shards for new users; their numbers. Raises as `upgrade`, and `Conflict` when there are too many.

    One that was begun and not finished is finished by `upgrade`.
    """
    engine = connect_owner(owner_url, statement_timeout_ms=0)
    deadline = _Deadline(patience_seconds)
    added = []
    try:
        with translated(engine):
            for _ in range(count):
                with engine.begin() as connection:
                    shard = _enter(connection)
                _migrate_shard(engine, shard, deadline)
                added.append(shard)
    finally:
        engine.dispose()
    return tuple(added)


def differences(owner_url: str) -> tuple[tuple[int, catalog.Difference], ...]:
    """What a shard has otherwise than the code expects: what `upgrade` cannot make again, such as a column."""
    engine = connect_owner(owner_url)
    try:
        with translated(engine):
            return tuple(
                (shard, difference)
                for shard in (HOME, *_others(engine))
                for difference in _differences_of(engine, shard)
            )
    finally:
        engine.dispose()


def _differences_of(engine: Engine, shard: int) -> tuple[catalog.Difference, ...]:
    with engine.begin() as connection:
        return catalog.differences_of(connection, shard=shard)


def run_script(connection: Connection, name: str) -> None:
    """Run a file of SQL statements from the folder of the migrations."""
    prerequisites.run(connection, (MIGRATIONS / name).read_text(encoding="utf-8"))


@dataclass(frozen=True, slots=True)
class _Login:
    """What the application's role gets: its password, unless it has none, and how its sessions behave."""

    password: str | None
    session_defaults: Mapping[str, str]


class _Deadline:
    """Until when it is tried again."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._at = time.monotonic() + seconds

    @property
    def is_over(self) -> bool:
        return time.monotonic() > self._at


def _insist(engine: Engine, work: Callable[[Connection], None], *, shard: int, deadline: _Deadline) -> None:
    """Work in one transaction, again and again while others are in the way; `StoreUnavailable` after the deadline."""
    while not _is_done(engine, work):
        if deadline.is_over:
            tables, in_it = ("tables", "") if shard == HOME else (f"tables of shard {shard}", " in it")
            raise StoreUnavailable(
                f"the {tables} stayed in use for {deadline.seconds:.0f} s and nothing was changed{in_it}; run "
                "`memory migrate` again when no long transaction or other migration is under way"
            )
        time.sleep(random.uniform(*PAUSE_SECONDS))


def _is_done(engine: Engine, work: Callable[[Connection], None]) -> bool:
    """Try once; False, and nothing is changed, when somebody else was in the way."""
    try:
        with engine.begin() as connection:
            work(connection)
    except (DBAPIError, psycopg.Error) as error:
        if _is_collision(error):
            return False
        raise
    return True


def _enter(connection: Connection) -> int:
    """Enter the next shard into the list, still without a schema; its number."""
    _begin(connection)
    _check_not_ahead(connection)
    _list_again(connection)
    shard = int(connection.execute(_NEXT_SHARD).scalar_one())
    if shard > LARGEST:
        raise Conflict(f"there are {LARGEST} shards already, and no more can be told apart")
    connection.execute(_ENTER, {"shard": shard, "revision": None})
    return shard


def _list_again(connection: Connection) -> None:
    """Enter shards that are there into the list that lacks them."""
    for shard in connection.execute(_UNLISTED_SHARDS).scalars().all():
        connection.execute(_ENTER, {"shard": shard, "revision": revision.stored(connection, shard=shard)})
        log.warning("shard_listed_again", shard=shard)


def _migrate_shard(engine: Engine, shard: int, deadline: _Deadline) -> None:
    _insist(engine, lambda connection: _upgrade_shard(connection, shard), shard=shard, deadline=deadline)
    _validate(engine, shard, deadline)


def _validate(engine: Engine, shard: int, deadline: _Deadline) -> None:
    """Compare the rows of a shard with the constraints that a revision added, while others read and write them."""
    with engine.begin() as connection:
        constraints = validation.pending(connection, shard)
    for constraint in constraints:
        work = partial(_validate_one, constraint=constraint)
        _insist(engine, work, shard=shard, deadline=deadline)
    if constraints:
        _insist(
            engine, lambda connection: _hide_from_owner(connection, shard), shard=shard, deadline=deadline
        )


def _validate_one(connection: Connection, constraint: validation.Pending) -> None:
    _begin(connection)
    # Nobody waits for this one.
    connection.execute(_LIMIT_STATEMENT, {"statement_timeout": "0"})
    validation.validate(connection, constraint)


def _hide_from_owner(connection: Connection, shard: int) -> None:
    """Let row-level security hold for the owner again, who had to see the rows."""
    _begin(connection)
    _set_path(connection, shard)
    _lock_tables(connection, shard)
    run_script(connection, "access.sql")


def _upgrade(connection: Connection, login: _Login) -> None:
    """Migrate the home shard."""
    _begin(connection)
    prerequisites.ensure(connection)
    _check_not_ahead(connection)
    _apply(connection, HOME)
    _list_again(connection)
    if login.password:
        app_role.write_password(connection, login.password)
    app_role.write_defaults(connection, login.session_defaults)


def _upgrade_shard(connection: Connection, shard: int) -> None:
    """Migrate a shard other than the home shard; makes its schema if it is new."""
    _begin(connection)
    schema = schema_of(shard)
    is_new = revision.stored(connection, shard=shard) is None
    if is_new and connection.execute(_LISTED_REVISION, {"shard": shard}).scalar_one() is not None:
        # Made anew it would be empty: its users would be strangers, and what they say would stand in the way of the
        # rows that are restored later.
        log.error(
            "shard_is_missing", shard=shard, hint="restore its schema from a backup; it is not made anew"
        )
        return
    if is_new:
        connection.execute(text(f"CREATE SCHEMA IF NOT EXISTS {schema}"))
    _apply(connection, shard)
    if is_new:
        _start_sequences(connection, shard)
    _copy_tenants(connection)
    connection.execute(_NOTE_REVISION, {"shard": shard, "revision": revision.newest()})


def _begin(connection: Connection) -> None:
    connection.execute(
        _SET_LIMITS, {"lock_timeout": str(LOCK_TIMEOUT_MS), "statement_timeout": STATEMENT_TIMEOUT}
    )
    # Of the transaction: it goes with it, however that ends.
    connection.execute(_LOCK, {"key": ADVISORY_LOCK})


def _check_not_ahead(connection: Connection) -> None:
    stored = revision.stored(connection)
    if revision.is_ahead(stored):
        raise Misconfigured(str(revision.difference(stored)))


def _apply(connection: Connection, shard: int) -> None:
    """Run the scripts and the revisions in a shard."""
    _set_path(connection, shard)
    run_script(connection, "base.sql")
    if revision.stored(connection, shard=shard) != revision.newest():
        _lock_tables(connection, shard)
    config = _config()
    config.attributes["connection"] = connection
    config.attributes["schema"] = schema_of(shard)
    command.upgrade(config, "head")
    # Last, as it gives rights on what the revisions made.
    run_script(connection, "access.sql")


def _set_path(connection: Connection, shard: int) -> None:
    """Lead the scripts to a shard, and tell them what it has."""
    # Temporary objects last, as functions keep this path: nobody may slip in a table of theirs.
    path = f"{prerequisites.search_path(connection, schema=schema_of(shard))}, pg_temp"
    connection.execute(
        _LET_SCRIPT_KNOW, {"path": path, "tables": ",".join(catalog.TABLES), "shard": str(shard)}
    )


def _others(engine: Engine) -> tuple[int, ...]:
    """The shards beside the home shard."""
    with engine.begin() as connection:
        return tuple(connection.execute(_OTHER_SHARDS).scalars())


def _start_sequences(connection: Connection, shard: int) -> None:
    """Let the shard draw keys that no other shard draws."""
    for sequence in connection.execute(_SEQUENCES, {"schema": schema_of(shard)}).scalars().all():
        first = first_key(shard)
        connection.execute(text(f"ALTER SEQUENCE {sequence} MINVALUE {first} START {first} RESTART {first}"))


def _copy_tenants(connection: Connection) -> None:
    """What foreign keys of the shard refer to. Later ones are written with the tenant itself."""
    connection.execute(_COPY_TENANTS)


def _lock_tables(connection: Connection, shard: int) -> None:
    """Lock every table of a shard at once, since a revision changes several while others use them in any order."""
    names_of = {"tables": list(catalog.TABLES), "schema": schema_of(shard)}
    tables = connection.execute(_EXISTING, names_of).scalars().all()
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
