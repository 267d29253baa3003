"""Shards: schemas with the same tables, each of which holds the rows of some users.

The home shard is schema ``public``. It holds the directory besides: tenants, keys, agents, users with the shard that
each is in, and the list of shards. The others are ``shard_0001`` and so on, on the same server or on another one; each
has copies of the rows of the directory that its foreign keys need.

An engine is bound to a shard by `at_shard`, and `memory_app.db.db.transaction` leads its statements there. Statements
that name tables of schema ``public`` go to `directory_of` a connection, those that leave the shard of the connection
for the home shard stand in a block of `at_home`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from uuid import UUID

from psycopg.errors import UndefinedTable
from sqlalchemy import Connection, Engine, TextClause, text
from sqlalchemy.exc import ProgrammingError

from memory_app.db import branches
from memory_app.errors import ShardMissing, StoreRefused

HOME = 0

LARGEST = 4_095
"""The number of a shard has 12 bits in an id."""

ROOM_BITS = 40
"""Keys that a shard draws from its sequences begin at its number shifted by as many bits. So no two shards draw the
same one, and a row keeps its key when its user moves. All are below 2^53, which any JSON reader holds exactly."""

_OPTION = "shard"
_BOUND = "bound"
_HOME_ENGINE = "home_engine"
_HOME_PATH = "home_path"

# The path first, since a row is evaluated from left to right; then the schema of the shard before all others. A table
# that the shard lacks would be that of the home shard. So one of its tables is read, which fails where the shard is
# missing, and stays locked until the end: nobody can drop the schema meanwhile.
_LEAD = """SELECT current_setting('search_path') AS home_path,
    set_config('search_path', '{schema}, ' || current_setting('search_path'), true)
    FROM {schema}.alembic_version"""
# From here on the policies of this role hold, too (see ``access.sql``), until the transaction ends.
_BIND = text(
    """SELECT set_config('memory.agent', :agent, true),
    set_config('memory.user', :user, true), set_config('role', 'memory_bound', true)"""
)
_BIND_TO = text(
    """SELECT set_config('memory.agent', :agent, true), set_config('memory.user', :user, true),
    set_config('memory.kinds', :kinds, true)"""
)
_OTHER_SCHEMAS = text(
    """SELECT schema
    FROM (SELECT 'shard_' || lpad(id::text, 4, '0') AS schema FROM public.shards WHERE id > 0 AND server IS NULL) listed
    WHERE to_regclass(schema || '.alembic_version') IS NOT NULL ORDER BY schema"""
)
_MOVED_SCHEMAS = text(
    "SELECT CAST(nspname AS text) FROM pg_namespace WHERE nspname ~ '^moved_shard_\\d{4}$' ORDER BY 1"
)
_SET_PATH = text("SELECT set_config('search_path', :path, true)")


def schema_of(number: int) -> str:
    """The schema of a shard."""
    return "public" if number == HOME else f"shard_{number:04d}"


def missing(number: int) -> str:
    """What is said of a shard whose schema is not there."""
    return f"shard {number} is missing: there is no schema {schema_of(number)}; restore it from a backup"


def at_shard(engine: Engine, number: int, *, home: Engine | None = None) -> Engine:
    """The same engine, connections and all, whose transactions work in a shard. ``home``: the engine of the server that
    has the home shard, where that is another one."""
    return engine.execution_options(**{_OPTION: number, _HOME_ENGINE: home})


def shard_of(place: Engine | Connection) -> int:
    """The shard that an engine or a connection works in."""
    return int(place.get_execution_options().get(_OPTION, HOME))


@dataclass(frozen=True, slots=True)
class Bound:
    """Whose rows the transactions of a bound engine see: those of one agent, of one user, or of both; None is any."""

    agent: str | None
    user: str | None


def bound_to(engine: Engine, bound: Bound) -> Engine:
    """The same engine, connections and all, whose transactions see the rows of one agent or user only."""
    return engine.execution_options(**{_BOUND: bound})


def unbound(engine: Engine) -> Engine:
    """The same engine for what is counted of the whole tenant, on behalf of whomever."""
    return engine if bound_of(engine) is None else engine.execution_options(**{_BOUND: None})


def of_any_agent(engine: Engine) -> Engine:
    """The same engine for what is about two agents of one user: bound to the user alone."""
    bound = bound_of(engine)
    if bound is None or bound.agent is None:
        return engine
    return unbound(engine) if bound.user is None else bound_to(engine, Bound(None, bound.user))


def bound_of(place: Engine | Connection) -> Bound | None:
    """Whom an engine or a connection is bound to."""
    bound: Bound | None = place.get_execution_options().get(_BOUND)
    return bound


def home_engine_of(place: Engine | Connection) -> Engine | None:
    """The engine of the home shard, where an engine or a connection works on another server; None: on the same."""
    engine: Engine | None = place.get_execution_options().get(_HOME_ENGINE)
    return engine


def first_key(number: int) -> int:
    """The first key of a shard's sequences."""
    return (number << ROOM_BITS) + 1


def hint_of(id: UUID) -> int:
    """The shard in which a row of this id was made, if the id was made in another shard than the home shard.

    Ids of the home shard hold a fraction of a millisecond in the place of the number, so this is a place to look first
    and no more.
    """
    return (id.int >> 64) & LARGEST


def first_statements(tenant_id: int | None, *, mode: str = "") -> bytes:
    """The statements that begin a transaction in ``mode`` (as BEGIN takes it) which sees the tenant's rows; None: no
    tenant's."""
    begin = f"BEGIN {mode}".rstrip()
    if tenant_id is None:
        return begin.encode()
    return f"{begin}; SELECT set_config('memory.tenant', '{int(tenant_id)}', true)".encode()


def enter(connection: Connection) -> None:
    """Let the transaction work in the shard of the connection, and see the rows of whom the connection is bound to.

    Raises `ShardMissing` where the shard is missing, `StoreRefused` where the role to bind to is.
    """
    number = shard_of(connection)
    if number != HOME:
        _enter(connection, number)
    bound = bound_of(connection)
    if bound is not None:
        _bind(connection, bound)


@contextmanager
def bound_to_grant(
    connection: Connection, user: str, *, agent: str | None = None, kinds: Sequence[str] = ()
) -> Iterator[None]:
    """In the block a transaction that is bound to an agent sees what the user lets it: rows of ``agent`` and that user
    only, of memories those of ``kinds``. No agent: of all agents, to read which grants there are. Others see no less.
    """
    bound = bound_of(connection)
    if bound is None or bound.agent is None:
        yield
        return
    connection.execute(_BIND_TO, {"agent": agent or "", "user": user, "kinds": ",".join(kinds)})
    yield
    # Only where the block came to its end, as in `at_home`.
    connection.execute(_BIND_TO, {"agent": bound.agent, "user": bound.user or "", "kinds": ""})


def _bind(connection: Connection, bound: Bound) -> None:
    names = {"agent": bound.agent or "", "user": bound.user or ""}
    try:
        connection.execute(_BIND, names)
    except ProgrammingError as error:
        raise StoreRefused(
            "the database does not let the application act for a key that is for one agent or one user; "
            "run `memory migrate`"
        ) from error


def _enter(connection: Connection, number: int) -> None:
    try:
        row = connection.execute(_lead(number)).one()
    except ProgrammingError as error:
        if isinstance(error.orig, UndefinedTable):
            raise ShardMissing(missing(number), retry_after=5) from error
        raise
    connection.info[_HOME_PATH] = row.home_path


@cache
def _lead(number: int) -> TextClause:
    return text(_LEAD.format(schema=schema_of(number)))


def other_schemas(connection: Connection) -> tuple[str, ...]:
    """The schemas of the shards beside the home shard that are on its server, as far as they are there."""
    return tuple(connection.execute(_OTHER_SCHEMAS).scalars())


def directory_of(connection: Connection, *, writes: bool = False) -> Connection:
    """The connection for statements that name tables of schema ``public``: this one, or where its shard is on another
    server one to the home shard that belongs to the same transaction. ``writes``: rows are changed, not only read or
    locked."""
    home = home_engine_of(connection)
    if home is None:
        return connection
    bound = bound_of(connection)
    return branches.also_in(connection, home if bound is None else bound_to(home, bound), writes=writes)


def moved_schemas(connection: Connection) -> tuple[str, ...]:
    """What shards that moved to another server left on the connection's."""
    return tuple(connection.execute(_MOVED_SCHEMAS).scalars())


@contextmanager
def at_home(connection: Connection, *, writes: bool = False) -> Iterator[Connection]:
    """In the block the transaction works in the home shard, over the connection that is given. ``writes`` as in
    `directory_of`."""
    if shard_of(connection) == HOME:
        yield connection
        return
    if home_engine_of(connection) is not None:
        yield directory_of(connection, writes=writes)
        return
    home_path = connection.info[_HOME_PATH]
    connection.execute(_SET_PATH, {"path": home_path})
    yield connection
    # Only where the block came to its end: a transaction that failed takes no statement any more, and ends anyway.
    connection.execute(_SET_PATH, {"path": f"{schema_of(shard_of(connection))}, {home_path}"})
