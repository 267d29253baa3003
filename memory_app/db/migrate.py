"""Bring a database to the newest schema, as its owner, while others work in it."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType

import psycopg
import structlog
from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, Engine, make_url, text
from sqlalchemy.exc import DBAPIError

import migrations
from memory_app.db import app_role, catalog, prerequisites, revision, validation
from memory_app.db.db import connect_owner, translated
from memory_app.db.faults import OWNER_SETTING
from memory_app.db.servers import Servers, owner_setting
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
_SCHEMAS = text(
    """SELECT CAST(right(nspname, 4) AS smallint) AS shard FROM pg_namespace
    WHERE nspname ~ '^shard_\\d{4}$' AND to_regclass(nspname || '.alembic_version') IS NOT NULL ORDER BY 1"""
)
_LISTED = text("SELECT id FROM public.shards")
_OTHER_SHARDS = text("SELECT id AS shard, server, moves_to FROM public.shards WHERE id > 0 ORDER BY id")
_NEXT_SHARD = text("SELECT coalesce(max(id), 0) + 1 FROM public.shards")
_ENTER = text("INSERT INTO public.shards (id, revision, server) VALUES (:shard, :revision, :server)")
_LISTED_REVISION = text("SELECT revision FROM public.shards WHERE id = :shard")
_NOTE_REVISION = text("UPDATE public.shards SET revision = :revision WHERE id = :shard")
SEQUENCES = text(
    """SELECT CAST(c.oid AS regclass)::text FROM pg_class c
    WHERE c.relnamespace = CAST(:schema AS text)::regnamespace AND c.relkind = 'S'"""
)
_COPY_TENANTS = text(
    "INSERT INTO tenants OVERRIDING SYSTEM VALUE SELECT * FROM public.tenants ON CONFLICT DO NOTHING"
)


@dataclass(frozen=True, slots=True)
class Logins:
    """How the owner of the tables and the application's role log in to a server."""

    owner_url: str
    app_url: str
    owner_setting: str = OWNER_SETTING


def upgrade(
    home: Logins,
    session_defaults: Mapping[str, str],
    *,
    servers: Mapping[str, Logins] = MappingProxyType({}),
    patience_seconds: float = PATIENCE_SECONDS,
) -> str:
    """Migrate, give the application's role its password and its defaults on every server; the new revision.

    ``home`` is the server of the home shard, ``servers`` are the others by name. The tables of a shard are changed
    wholly or not at all; what its rows have to be compared with is compared then, and the next call goes on with it.
    Several at once wait for each other. Raises `StoreUnavailable` when a server is away or its tables stayed locked;
    `Misconfigured` where a server or a right of the owner is not enough, behind a pooler that shares server processes,
    and where a shard is on a server that ``servers`` lacks; `Conflict` where rows break a new constraint.
    """
    deadline = Deadline(patience_seconds)
    with opened(home, servers) as engines:
        login = Login.of(home, session_defaults)
        with translated(engines.home):
            insist(engines.home, lambda here: _upgrade(here, login), shard=HOME, deadline=deadline)
            validate(engines.home, HOME, deadline)
        for name, logins in servers.items():
            prepare(engines, name, Login.of(logins, session_defaults), deadline)
        # The home shard first, since it has the list of the others. One by one, so that the tables of each are locked
        # only for as long as its own work takes.
        for entry in _others(engines.home):
            _migrate_shard(engines, entry, deadline)
    return revision.newest()


def add_shards(
    home: Logins,
    session_defaults: Mapping[str, str],
    count: int,
    *,
    servers: Mapping[str, Logins] = MappingProxyType({}),
    server: str | None = None,
    patience_seconds: float = PATIENCE_SECONDS,
) -> tuple[int, ...]:
    """Make shards for new users, on a server of ``servers`` or that of the home shard; their numbers. Raises as
    `upgrade`, and `Conflict` when there are too many.

    One that was begun and not finished is finished by `upgrade`.
    """
    deadline = Deadline(patience_seconds)
    added = []
    with opened(home, servers) as engines:
        if server is not None:
            prepare(engines, server, Login.of(servers[server], session_defaults), deadline)
        for _ in range(count):
            with translated(engines.home), engines.home.begin() as connection:
                entry = _enter(connection, server)
            _migrate_shard(engines, entry, deadline)
            added.append(entry.shard)
    return tuple(added)


def differences(
    home: Logins, *, servers: Mapping[str, Logins] = MappingProxyType({})
) -> tuple[tuple[int, catalog.Difference], ...]:
    """What a shard has otherwise than the code expects: what `upgrade` cannot make again, such as a column."""
    with opened(home, servers) as engines:
        return tuple(
            (entry.shard, difference)
            for entry in (Entry(HOME, None), *_others(engines.home))
            for difference in _differences_of(engine_of(engines, entry), entry.shard)
        )


@contextmanager
def opened(home: Logins, servers: Mapping[str, Logins]) -> Iterator[Servers]:
    def connect(logins: Logins) -> Engine:
        return connect_owner(logins.owner_url, statement_timeout_ms=0, setting=logins.owner_setting)

    engines = Servers(connect(home), {name: partial(connect, logins) for name, logins in servers.items()})
    try:
        yield engines
    finally:
        engines.dispose()


def engine_of(engines: Servers, entry: Entry) -> Engine:
    if entry.server is not None and entry.server not in engines.names():
        raise Misconfigured(
            f"shard {entry.shard} is on server {entry.server!r}; set {owner_setting(entry.server)} to its address "
            "as the owner of the tables",
            field="database.servers",
        )
    return engines.engine(entry.server)


def _differences_of(engine: Engine, shard: int) -> tuple[catalog.Difference, ...]:
    with translated(engine), engine.begin() as connection:
        return catalog.differences_of(connection, shard=shard)


def run_script(connection: Connection, name: str) -> None:
    """Run a file of SQL statements from the folder of the migrations."""
    prerequisites.run(connection, (MIGRATIONS / name).read_text(encoding="utf-8"))


@dataclass(frozen=True, slots=True)
class Login:
    """What the application's role gets: its password, unless it has none, and how its sessions behave."""

    password: str | None
    session_defaults: Mapping[str, str]

    @classmethod
    def of(cls, logins: Logins, session_defaults: Mapping[str, str]) -> Login:
        password = make_url(logins.app_url).password
        return cls(str(password) if password else None, session_defaults)

    def write(self, connection: Connection) -> None:
        if self.password:
            app_role.write_password(connection, self.password)
        app_role.write_defaults(connection, self.session_defaults)


@dataclass(frozen=True, slots=True)
class Entry:
    """A shard in the list, and the name of its server; None: that of the home shard."""

    shard: int
    server: str | None
    moves_to: str | None = None


class Deadline:
    """Until when it is tried again."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._at = time.monotonic() + seconds

    @property
    def is_over(self) -> bool:
        return time.monotonic() > self._at


def insist(engine: Engine, work: Callable[[Connection], None], *, shard: int, deadline: Deadline) -> None:
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


def _enter(connection: Connection, server: str | None) -> Entry:
    """Enter the next shard into the list, still without a schema."""
    _begin(connection)
    _check_not_ahead(connection)
    _list_again(connection, connection, None)
    shard = int(connection.execute(_NEXT_SHARD).scalar_one())
    if shard > LARGEST:
        raise Conflict(f"there are {LARGEST} shards already, and no more can be told apart")
    connection.execute(_ENTER, {"shard": shard, "revision": None, "server": server})
    return Entry(shard, server)


def _list_again(connection: Connection, home: Connection, server: str | None) -> None:
    """Enter shards that are there, on the server of the connection, into the list that lacks them."""
    listed = set(home.execute(_LISTED).scalars())
    for shard in connection.execute(_SCHEMAS).scalars().all():
        if shard not in listed:
            stored = revision.stored(connection, shard=shard)
            home.execute(_ENTER, {"shard": shard, "revision": stored, "server": server})
            log.warning("shard_listed_again", shard=shard, server=server)


def prepare(engines: Servers, server: str, login: Login, deadline: Deadline) -> None:
    """Make what a server beside that of the home shard needs before it can hold shards."""
    engine = engines.engine(server)

    def make_ready(connection: Connection) -> None:
        _begin(connection)
        prerequisites.ensure(connection)
        prerequisites.check_two_phases(connection, server)
        login.write(connection)
        with engines.home.begin() as home:
            _list_again(connection, home, server)

    with translated(engine):
        insist(engine, make_ready, shard=HOME, deadline=deadline)


def _migrate_shard(engines: Servers, entry: Entry, deadline: Deadline) -> None:
    if entry.moves_to is not None:
        # What a migration changes does not travel with the rows.
        raise Conflict(
            f"shard {entry.shard} is being moved to server {entry.moves_to!r}; let `memory shards move` end, or take "
            "the move back with --abort, and migrate then"
        )
    engine, shard = engine_of(engines, entry), entry.shard
    with engines.home.begin() as home:
        is_made = home.execute(_LISTED_REVISION, {"shard": shard}).scalar_one() is not None
    with translated(engine):
        insist(
            engine,
            lambda connection: upgrade_shard(connection, entry, is_made=is_made),
            shard=shard,
            deadline=deadline,
        )
        validate(engine, shard, deadline)
        with engine.begin() as connection:
            stored = revision.stored(connection, shard=shard)
    if stored is not None:
        with translated(engines.home), engines.home.begin() as home:
            home.execute(_NOTE_REVISION, {"shard": shard, "revision": stored})


def validate(engine: Engine, shard: int, deadline: Deadline) -> None:
    """Compare the rows of a shard with the constraints that a revision added, while others read and write them."""
    with engine.begin() as connection:
        constraints = validation.pending(connection, shard)
    for constraint in constraints:
        work = partial(_validate_one, constraint=constraint)
        insist(engine, work, shard=shard, deadline=deadline)
    if constraints:
        insist(engine, lambda connection: _hide_from_owner(connection, shard), shard=shard, deadline=deadline)


def _validate_one(connection: Connection, constraint: validation.Pending) -> None:
    _begin(connection)
    # Nobody waits for this one.
    connection.execute(_LIMIT_STATEMENT, {"statement_timeout": "0"})
    validation.validate(connection, constraint)


def _hide_from_owner(connection: Connection, shard: int) -> None:
    """Let row-level security hold for the owner again, who had to see the rows."""
    _begin(connection)
    set_path(connection, shard)
    lock_tables(connection, shard)
    run_script(connection, "access.sql")


def _upgrade(connection: Connection, login: Login) -> None:
    """Migrate the home shard."""
    _begin(connection)
    prerequisites.ensure(connection)
    _check_not_ahead(connection)
    _apply(connection, HOME)
    _list_again(connection, connection, None)
    login.write(connection)


def upgrade_shard(connection: Connection, entry: Entry, *, is_made: bool) -> None:
    """Migrate a shard other than the home shard; makes its schema if it is new."""
    _begin(connection)
    shard = entry.shard
    schema = schema_of(shard)
    is_new = revision.stored(connection, shard=shard) is None
    if is_new and is_made:
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
    if entry.server is None:
        # On another server the first user of a tenant brings it.
        copy_tenants(connection)


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
    set_path(connection, shard)
    run_script(connection, "base.sql")
    if revision.stored(connection, shard=shard) != revision.newest():
        lock_tables(connection, shard)
    config = _config()
    config.attributes["connection"] = connection
    config.attributes["schema"] = schema_of(shard)
    command.upgrade(config, "head")
    # Last, as it gives rights on what the revisions made.
    run_script(connection, "access.sql")


def set_path(connection: Connection, shard: int) -> None:
    """Lead the scripts to a shard, and tell them what it has."""
    # Temporary objects last, as functions keep this path: nobody may slip in a table of theirs.
    path = f"{prerequisites.search_path(connection, schema=schema_of(shard))}, pg_temp"
    connection.execute(
        _LET_SCRIPT_KNOW, {"path": path, "tables": ",".join(catalog.TABLES), "shard": str(shard)}
    )


def _others(home: Engine) -> tuple[Entry, ...]:
    """The shards beside the home shard."""
    with translated(home), home.begin() as connection:
        return tuple(Entry(**row._mapping) for row in connection.execute(_OTHER_SHARDS))


def _start_sequences(connection: Connection, shard: int) -> None:
    """Let the shard draw keys that no other shard draws."""
    for sequence in connection.execute(SEQUENCES, {"schema": schema_of(shard)}).scalars().all():
        first = first_key(shard)
        connection.execute(text(f"ALTER SEQUENCE {sequence} MINVALUE {first} START {first} RESTART {first}"))


def copy_tenants(connection: Connection) -> None:
    """What foreign keys of the shard refer to. Later ones are written with the tenant itself."""
    connection.execute(_COPY_TENANTS)


def lock_tables(connection: Connection, shard: int) -> None:
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
