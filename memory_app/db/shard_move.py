"""Move a shard to another server while its users chat, by logical replication.

Every step can be begun again where it stopped. What a move has come to stands in the list of shards and in the catalogs
of both servers: a publication and a slot where the shard is, a subscription where it goes, all of one name.

    begin     the list says where the shard goes; its schema is made there, empty
    copy      PostgreSQL copies the rows and follows the changes
    close     nobody enters the shard any more; those in it are waited for, and then the last changes
    switch    the list says that the shard is there now
    clean     replication ends; the old schema stays as ``moved_shard_0003`` until `drop_moved`
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from uuid import uuid4

from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import DBAPIError

from memory_app import failpoint
from memory_app.db import catalog, migrate, replication, revision
from memory_app.db.db import translated
from memory_app.db.migrate import Deadline, Entry, Login, Logins
from memory_app.db.servers import Servers
from memory_app.db.shards import HOME, schema_of
from memory_app.errors import Conflict, InvalidInput, Misconfigured, NotFound, StoreUnavailable
from memory_app.records.server_names import HOME_SERVER

LEAST_LAG_BYTES = 1_000_000
"""The shard is closed once no more than this is still to come, so that the pause is short."""

GATE_MS = 1_500
"""For those who are in the shard to come out of it; new ones wait meanwhile, and go on where that fails."""

LAST_SECONDS = 10.0
"""For the last changes to arrive, with the shard closed."""

PAUSE_SECONDS = 0.02
LOOK_SECONDS = 1.0

Say = Callable[[str], None]

_MOVING = text(
    "SELECT id, server, revision, moves_to, is_closed FROM public.shards WHERE id = :shard FOR UPDATE"
)
_SET_TARGET = text("UPDATE public.shards SET moves_to = :to WHERE id = :shard")
_CLOSE = text("UPDATE public.shards SET is_closed = :closed WHERE id = :shard")
_SWITCH = text(
    """UPDATE public.shards SET server = nullif(moves_to, 'home'), moves_to = NULL, is_closed = false
    WHERE id = :shard AND is_closed"""
)
_HAS_SCHEMA = text("SELECT to_regnamespace(:schema) IS NOT NULL")
_GATE = text("SELECT set_config('lock_timeout', :limit, true)")
_NO_INDEXES = "UPDATE {schema}.scope_models SET is_indexed = false WHERE is_indexed"
_RENUMBER = text("SELECT public.xact_renumber()")
_LOCKED = "55P03"


@dataclass(frozen=True, slots=True)
class Moved:
    """A shard that is on another server now. ``pause_seconds``: how long nobody could write, None where that was in an
    earlier call."""

    shard: int
    source: str
    target: str
    pause_seconds: float | None


@dataclass(frozen=True, slots=True)
class _Move:
    shard: int
    source_name: str
    target_name: str
    source: Engine
    target: Engine
    home: Engine
    say: Say

    @property
    def name(self) -> str:
        return replication_name(self.shard)

    @property
    def schema(self) -> str:
        return schema_of(self.shard)

    @property
    def old_schema(self) -> str:
        """The schema that stays where the shard was."""
        return old_schema_of(self.shard)


def old_schema_of(shard: int) -> str:
    """What the schema of a shard is called where it was before it moved to another server."""
    return f"moved_{schema_of(shard)}"


def replication_name(shard: int) -> str:
    """What the publication, the slot and the subscription of a shard that moves are called."""
    return f"memory_move_{shard:04d}"


def move(
    home: Logins,
    session_defaults: Mapping[str, str],
    shard: int,
    *,
    to: str,
    servers: Mapping[str, Logins] = MappingProxyType({}),
    source_url: str | None = None,
    say: Say = lambda _: None,
    patience_seconds: float = migrate.PATIENCE_SECONDS,
) -> Moved:
    """Move a shard to a server of ``servers`` or `HOME_SERVER`, or go on with a move that was begun.

    ``source_url`` is where the server that it goes to reaches the one that it is on, where that is another address than
    ours. Raises `NotFound` for a shard that is not there, `Conflict` for one that moves elsewhere or is there already,
    `Misconfigured` where a server or a right is not enough, `StoreUnavailable` where a server is away or somebody stays
    in the shard: the move can be gone on with then.
    """
    if to != HOME_SERVER and to not in servers:
        raise InvalidInput(f"to: the settings name no owner of server {to!r}", field="to")
    deadline = Deadline(patience_seconds)
    with migrate.opened(home, servers) as engines:
        if to != HOME_SERVER:
            migrate.prepare(engines, to, Login.of(servers[to], session_defaults), deadline)
        moving, is_closed = _begin(engines, shard, to=to, say=say)
        pause: float | None = None
        with translated(moving.source), translated(moving.target):
            if not is_closed:
                logins = home if moving.source_name == HOME_SERVER else servers[moving.source_name]
                _copy(moving, source_url or logins.owner_url, deadline)
                pause = _close(moving, deadline)
            _switch(moving)
            failpoint.reach("shard_move.switched")
            _end_replication(moving)
    return Moved(shard, moving.source_name, to, pause)


def abort(home: Logins, shard: int, *, servers: Mapping[str, Logins] = MappingProxyType({})) -> None:
    """Take back a move that is not switched yet: the shard stays where it is. Raises `Conflict` where there is none."""
    with migrate.opened(home, servers) as engines:
        with engines.home.begin() as connection:
            row = connection.execute(_MOVING, {"shard": shard}).one_or_none()
        if row is None or row.moves_to is None:
            raise Conflict(f"shard {shard} is not being moved")
        moving = _of(engines, shard, source=row.server or HOME_SERVER, to=row.moves_to, say=lambda _: None)
        with translated(moving.source), translated(moving.target):
            if row.is_closed and not _is_there(moving.source, moving.schema):
                raise Conflict(f"shard {shard} is closed where it was; let `memory shards move` end")
            _end_replication(moving)
            replication.run_alone(moving.target, f"DROP SCHEMA IF EXISTS {moving.schema} CASCADE")
            _force(moving.source, shard)
        with engines.home.begin() as connection:
            connection.execute(_SET_TARGET, {"shard": shard, "to": None})
            connection.execute(_CLOSE, {"shard": shard, "closed": False})


def drop_moved(
    home: Logins, shard: int, *, servers: Mapping[str, Logins] = MappingProxyType({})
) -> tuple[str, ...]:
    """Drop what stayed of a shard where it was before it moved; the names of the servers.

    Raises `Conflict` while the shard is being moved.
    """
    dropped = []
    with migrate.opened(home, servers) as engines:
        with translated(engines.home), engines.home.begin() as connection:
            row = connection.execute(_MOVING, {"shard": shard}).one_or_none()
        if row is not None and row.moves_to is not None:
            raise Conflict(f"shard {shard} is being moved to server {row.moves_to!r}; let that end first")
        for name in (HOME_SERVER, *engines.names()):
            engine = engines.engine(None if name == HOME_SERVER else name)
            with translated(engine):
                # Of a move that died after the switch: a slot keeps changes for ever.
                replication.end_subscription(engine, replication_name(shard))
                replication.end_publication(engine, replication_name(shard))
                if _is_there(engine, old_schema_of(shard)):
                    replication.run_alone(engine, f"DROP SCHEMA {old_schema_of(shard)} CASCADE")
                    dropped.append(name)
    return tuple(dropped)


def _of(engines: Servers, shard: int, *, source: str, to: str, say: Say) -> _Move:
    here, there = (
        migrate.engine_of(engines, Entry(shard, None if name == HOME_SERVER else name))
        for name in (source, to)
    )
    return _Move(shard, source, to, here, there, engines.home, say)


def _begin(engines: Servers, shard: int, *, to: str, say: Say) -> tuple[_Move, bool]:
    """Write down where the shard goes; the move, and whether it is closed already."""
    if shard == HOME:
        raise InvalidInput("shard: the home shard stays where it is", field="shard")
    with translated(engines.home), engines.home.begin() as connection:
        row = connection.execute(_MOVING, {"shard": shard}).one_or_none()
        if row is None:
            raise NotFound(f"there is no shard {shard} in the list of shards", field="shard")
        source = row.server or HOME_SERVER
        if source == to:
            raise Conflict(f"shard {shard} is on server {to!r} already")
        if row.moves_to not in (None, to):
            raise Conflict(
                f"shard {shard} is being moved to server {row.moves_to!r}; go on with that, or --abort it"
            )
        if row.revision != revision.newest():
            raise Conflict(f"shard {shard} is at revision {row.revision}; run `memory migrate` first")
        moving = _of(engines, shard, source=source, to=to, say=say)
        if row.moves_to is None:
            with translated(moving.source), translated(moving.target):
                _check(moving)
            connection.execute(_SET_TARGET, {"shard": shard, "to": to})
        is_closed = row.is_closed
        if is_closed:
            with translated(moving.source):
                is_closed = not _is_there(moving.source, moving.schema)
            # Whoever was about to close it died, and it was written to since.
            connection.execute(_CLOSE, {"shard": shard, "closed": is_closed})
        return moving, is_closed


def _check(moving: _Move) -> None:
    source, target = replication.powers(moving.source), replication.powers(moving.target)
    here, there = f"server {moving.source_name!r}", f"server {moving.target_name!r}"
    if source.wal_level != "logical":
        raise Misconfigured(
            f"{here} has wal_level = {source.wal_level}; let an administrator run ALTER SYSTEM SET wal_level = logical "
            "there, and restart it"
        )
    if not source.may_replicate:
        raise Misconfigured(f"let an administrator of {here} run ALTER ROLE {source.name} REPLICATION")
    if not target.may_subscribe:
        raise Misconfigured(
            f"let an administrator of {there} run GRANT pg_create_subscription TO {target.name}"
        )
    if target.version < source.version:
        raise Misconfigured(
            f"{there} is PostgreSQL {target.version} and {here} is {source.version}; move to the same version or a "
            "newer one"
        )
    for schema in (moving.schema, old_schema_of(moving.shard)):
        if _is_there(moving.target, schema):
            raise Conflict(f"{there} has a schema {schema}; drop it there before the shard comes")


def _copy(moving: _Move, source_url: str, deadline: Deadline) -> None:
    """Have the rows copied and the changes followed; returns when little is still to come."""
    _make_target(moving, deadline)
    failpoint.reach("shard_move.made")
    _publish(moving)
    failpoint.reach("shard_move.published")
    with moving.target.begin() as connection:
        # Again, where a try to close the shard has put the rules in place.
        _unforce(connection, moving.schema)
    replication.subscribe(moving.target, moving.name, source_url=source_url)
    failpoint.reach("shard_move.subscribed")
    shown = None
    while True:
        progress = replication.progress(moving.source, moving.target, moving.name)
        if not progress.is_enabled:
            raise StoreUnavailable(
                f"replication of shard {moving.shard} has stopped for an error; see the log of server "
                f"{moving.target_name!r}, mend it, and run the same again"
            )
        if progress.is_copied and progress.lag_bytes < LEAST_LAG_BYTES:
            return
        if progress != shown:
            moving.say(
                f"{progress.ready} of {progress.tables} tables are copied, {progress.lag_bytes:,} bytes behind"
            )
            shown = progress
        time.sleep(LOOK_SECONDS)


def _make_target(moving: _Move, deadline: Deadline) -> None:
    """Make the schema, empty and such that rows can be written past row-level security by its owner."""
    entry = Entry(moving.shard, None if moving.target_name == HOME_SERVER else moving.target_name)
    if replication.is_subscribed(moving.target, moving.name):
        return
    # One that a process began to make before it died holds nothing yet.
    replication.run_alone(moving.target, f"DROP SCHEMA IF EXISTS {moving.schema} CASCADE")

    def make(connection: Connection) -> None:
        migrate.upgrade_shard(connection, entry, is_made=False)
        # What `upgrade_shard` copies of the directory comes with the rows.
        connection.execute(text(f"TRUNCATE {moving.schema}.tenants CASCADE"))

    migrate.insist(moving.target, make, shard=moving.shard, deadline=deadline)
    migrate.validate(moving.target, moving.shard, deadline)
    with moving.target.begin() as connection:
        # It comes with the rows: until then nobody can enter.
        connection.execute(text(f"DELETE FROM {moving.schema}.alembic_version"))


def _publish(moving: _Move) -> None:
    if not replication.powers(moving.source).sees_all_rows:
        # Who replicates reads as the owner, from whom forced row-level security hides all rows.
        with moving.source.begin() as connection:
            migrate.lock_tables(connection, moving.shard)
            _unforce(connection, moving.schema)
    tables = [f"{moving.schema}.{table}" for table in catalog.TABLES]
    replication.publish(moving.source, moving.name, tables=tables)


def _close(moving: _Move, deadline: Deadline) -> float:
    """Close the shard where it is; for how many seconds nobody could write when it is switched at once."""
    while True:
        try:
            return _try_to_close(moving)
        except DBAPIError as error:
            if getattr(error.orig, "sqlstate", None) != _LOCKED:
                raise
            if deadline.is_over:
                raise StoreUnavailable(
                    f"somebody stayed in shard {moving.shard} for {deadline.seconds:.0f} s; it is copied and goes on "
                    "where it is: run the same again"
                ) from error
            # They came in before us, and others wait behind us; let those go on first.
            moving.say("somebody is in the shard for long; tried again")
            time.sleep(LOOK_SECONDS)


def _try_to_close(moving: _Move) -> float:
    schema = moving.schema
    with moving.source.begin() as source:
        source.execute(_GATE, {"limit": str(GATE_MS)})
        began = time.monotonic()
        # Each transaction of the shard has read this table first, and holds it until its end.
        source.execute(text(f"LOCK TABLE {schema}.alembic_version IN ACCESS EXCLUSIVE MODE"))
        _wait_for_last(moving)
        with moving.target.begin() as target:
            _take_over(moving, source, target)
        failpoint.reach("shard_move.ready")
        with moving.home.begin() as home:
            home.execute(_CLOSE, {"shard": moving.shard, "closed": True})
        failpoint.reach("shard_move.closed")
        # Whoever waits for the table, or comes by an older list, finds none.
        source.execute(text(f"ALTER SCHEMA {schema} RENAME TO {moving.old_schema}"))
    failpoint.reach("shard_move.renamed")
    _switch(moving)
    return time.monotonic() - began


def _wait_for_last(moving: _Move) -> None:
    """Wait until all that was committed so far has arrived: changes arrive in the order of their commits, so a row that
    is written now is the last."""
    # Every shard has the table, and only that of the home shard is used.
    table, id = f"{moving.schema}.decisions", uuid4()
    with moving.source.begin() as connection:
        connection.execute(text(f"INSERT INTO {table} (id) VALUES (:id)"), {"id": id})
    until = time.monotonic() + LAST_SECONDS
    with moving.target.connect() as connection:
        alone = connection.execution_options(isolation_level="AUTOCOMMIT")
        while not alone.execute(
            text(f"SELECT EXISTS (SELECT FROM {table} WHERE id = :id)"), {"id": id}
        ).scalar_one():
            if time.monotonic() > until:
                raise StoreUnavailable(
                    f"the last changes of shard {moving.shard} did not arrive within {LAST_SECONDS:.0f} s; it goes on "
                    "where it is: run the same again"
                )
            time.sleep(PAUSE_SECONDS)


def _take_over(moving: _Move, source: Connection, target: Connection) -> None:
    """Make the copy ready for those who come: its counters, its rules, what it says of indexes."""
    replication.stop(target, moving.name)
    for sequence in source.execute(migrate.SEQUENCES, {"schema": moving.schema}).scalars().all():
        row = source.execute(text(f"SELECT last_value, is_called FROM {sequence}")).one()
        target.execute(
            text("SELECT setval(CAST(:sequence AS regclass), :value, :called)"),
            {"sequence": sequence, "value": row.last_value, "called": row.is_called},
        )
    # Tables that are small and that others refer to: enough to see that the rows came at all.
    for table in ("scopes", "sessions", "alembic_version"):
        count = text(f"SELECT count(*) FROM {moving.schema}.{table}")
        there, here = (place.execute(count).scalar_one() for place in (source, target))
        if there != here:
            raise Conflict(f"table {table} has {there} rows, and {here} came; nothing was switched")
    target.execute(text(f"DELETE FROM {moving.schema}.decisions"))
    target.execute(text(_NO_INDEXES.format(schema=moving.schema)))
    migrate.set_path(target, moving.shard)
    migrate.run_script(target, "access.sql")
    target.execute(_RENUMBER)
    if moving.target_name == HOME_SERVER:
        migrate.copy_tenants(target)


def _switch(moving: _Move) -> None:
    """Say in the list that the shard is where it was going. It is closed by now."""
    with moving.home.begin() as home:
        home.execute(_SWITCH, {"shard": moving.shard})


def _end_replication(moving: _Move) -> None:
    replication.end_subscription(moving.target, moving.name)
    replication.end_publication(moving.source, moving.name)


def _unforce(connection: Connection, schema: str) -> None:
    """Let the owner, as whom rows are copied, see and write all rows; for everybody else nothing changes."""
    for table in catalog.TABLES:
        connection.execute(text(f"ALTER TABLE {schema}.{table} NO FORCE ROW LEVEL SECURITY"))


def _force(engine: Engine, shard: int) -> None:
    with engine.begin() as connection:
        migrate.set_path(connection, shard)
        migrate.run_script(connection, "access.sql")


def _is_there(engine: Engine, schema: str) -> bool:
    with engine.connect() as connection:
        return bool(connection.execute(_HAS_SCHEMA, {"schema": schema}).scalar_one())
