"""Logical replication of tables from one server to another, for their owner.

A publication and a slot where the tables are, and a subscription where they go, have one name. Each step may be done
again: what is there already stays. See https://www.postgresql.org/docs/current/logical-replication.html
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import psycopg
import structlog
from psycopg import sql
from psycopg.conninfo import make_conninfo
from sqlalchemy import Connection, Engine, make_url, text
from sqlalchemy.exc import DBAPIError

from memory_app.errors import Misconfigured

log = structlog.get_logger(__name__)

END_SECONDS = 10.0
"""For a slot to come free after its subscription is gone."""

PAUSE_SECONDS = 0.02

_POWERS = text(
    """SELECT current_user AS name, r.rolsuper OR r.rolreplication AS may_replicate,
    r.rolsuper OR r.rolbypassrls AS sees_all_rows,
    r.rolsuper OR pg_has_role(r.oid, 'pg_create_subscription', 'USAGE') AS may_subscribe,
    current_setting('wal_level') AS wal_level, current_setting('server_version_num')::integer / 10000 AS version
    FROM pg_roles r WHERE r.rolname = current_user"""
)
_HAS_PUBLICATION = text("SELECT EXISTS (SELECT FROM pg_publication WHERE pubname = :name)")
_HAS_SLOT = text(
    "SELECT EXISTS (SELECT FROM pg_replication_slots WHERE slot_name = :name AND database = current_database())"
)
_HAS_SUBSCRIPTION = text(
    """SELECT EXISTS (SELECT FROM pg_subscription s JOIN pg_database d ON d.oid = s.subdbid
    WHERE s.subname = :name AND d.datname = current_database())"""
)
_MAKE_SLOT = text("SELECT pg_create_logical_replication_slot(:name, 'pgoutput')")
_DROP_SLOT = text(
    """SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots
    WHERE slot_name = :name AND database = current_database() AND NOT active"""
)
_TABLES = text(
    """SELECT count(*) FILTER (WHERE r.srsubstate = 'r') AS ready, count(*) AS tables,
    coalesce(bool_and(s.subenabled), true) AS is_enabled
    FROM pg_subscription s JOIN pg_subscription_rel r ON r.srsubid = s.oid WHERE s.subname = :name"""
)
_LAG = text(
    """SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), confirmed_flush_lsn)::bigint FROM pg_replication_slots
    WHERE slot_name = :name"""
)


@dataclass(frozen=True, slots=True)
class Powers:
    """What a role may do on a server, and what the server is set to. ``version`` is PostgreSQL's major version."""

    name: str
    may_replicate: bool
    sees_all_rows: bool
    may_subscribe: bool
    wal_level: str
    version: int


@dataclass(frozen=True, slots=True)
class Progress:
    """How many of the tables are copied, and how many bytes of changes are still to come.

    ``is_enabled`` is False where an error has stopped the replication.
    """

    ready: int
    tables: int
    is_enabled: bool
    lag_bytes: int

    @property
    def is_copied(self) -> bool:
        return 0 < self.tables == self.ready


def powers(engine: Engine) -> Powers:
    """Those of the role that the engine logs in as."""
    with engine.connect() as connection:
        return Powers(**connection.execute(_POWERS).one()._mapping)


def publish(source: Engine, name: str, *, tables: Iterable[str]) -> None:
    """Publish the tables, and keep what is changed from now on for the subscription."""
    with source.connect() as connection:
        is_published = connection.execute(_HAS_PUBLICATION, {"name": name}).scalar_one()
    if not is_published:
        run_alone(source, f"CREATE PUBLICATION {name} FOR TABLE {', '.join(tables)}")
    # After the publication, which changes that are read from the slot are looked up in.
    with source.begin() as connection:
        if not connection.execute(_HAS_SLOT, {"name": name}).scalar_one():
            connection.execute(_MAKE_SLOT, {"name": name})


def is_subscribed(target: Engine, name: str) -> bool:
    with target.connect() as connection:
        return bool(connection.execute(_HAS_SUBSCRIPTION, {"name": name}).scalar_one())


def subscribe(target: Engine, name: str, *, source_url: str) -> None:
    """Copy what is published at ``source_url``, as the target reaches it, and follow its changes.

    Raises `Misconfigured` with the server's reason where it cannot. A subscription that is there goes on.
    """
    if is_subscribed(target, name):
        run_alone(target, f"ALTER SUBSCRIPTION {name} ENABLE")
        return
    statement = sql.SQL(
        "CREATE SUBSCRIPTION {name} CONNECTION {address} PUBLICATION {name} "
        "WITH (create_slot = false, slot_name = {slot}, disable_on_error = true)"
    ).format(
        name=sql.Identifier(name), slot=sql.Literal(name), address=sql.Literal(_libpq_address(source_url))
    )
    try:
        run_alone(target, statement.as_string())
    except DBAPIError as error:
        # The statement holds a password, and so does whatever quotes it.
        reason = error.orig.diag.message_primary if isinstance(error.orig, psycopg.Error) else None
        raise Misconfigured(
            f"the subscription could not be made: {reason}; see that the server reaches the one that has the shard, "
            "and name the address that it has from there with --source-url"
        ) from None


def progress(source: Engine, target: Engine, name: str) -> Progress:
    """How far the replication is."""
    with target.connect() as connection:
        copied = connection.execute(_TABLES, {"name": name}).one()
    with source.connect() as connection:
        lag = connection.execute(_LAG, {"name": name}).scalar_one()
    return Progress(copied.ready, copied.tables, copied.is_enabled, lag or 0)


def stop(target: Connection, name: str) -> None:
    """Let the subscription take no more changes, in the transaction of the connection."""
    target.execute(text(f"ALTER SUBSCRIPTION {name} DISABLE"))


def end_subscription(target: Engine, name: str) -> None:
    """Drop the subscription, if there is one, without asking the other server, which may be away."""
    if is_subscribed(target, name):
        for clause in ("DISABLE", "SET (slot_name = NONE)"):
            run_alone(target, f"ALTER SUBSCRIPTION {name} {clause}")
        run_alone(target, f"DROP SUBSCRIPTION {name}")


def end_publication(source: Engine, name: str) -> None:
    """Drop the slot, which keeps changes until it goes, and the publication, as far as they are there."""
    until = time.monotonic() + END_SECONDS
    while _drop_slot(source, name):
        if time.monotonic() > until:
            log.warning("replication_slot_in_use", slot=name)
            break
        time.sleep(PAUSE_SECONDS)
    run_alone(source, f"DROP PUBLICATION IF EXISTS {name}")


def _drop_slot(source: Engine, name: str) -> bool:
    """Whether the slot is still there: somebody reads from it."""
    with source.begin() as connection:
        connection.execute(_DROP_SLOT, {"name": name})
        return bool(connection.execute(_HAS_SLOT, {"name": name}).scalar_one())


def run_alone(engine: Engine, statement: str) -> None:
    """Outside of a transaction, as statements about subscriptions want it."""
    with engine.connect() as connection:
        connection.execution_options(isolation_level="AUTOCOMMIT").exec_driver_sql(
            statement.replace("%", "%%")
        )


def _libpq_address(url: str) -> str:
    address = make_url(url)
    parameters: dict[str, Any] = {
        "host": address.host,
        "port": address.port,
        "user": address.username,
        "password": address.password,
        "dbname": address.database,
        **address.query,
    }
    return make_conninfo("", **{name: value for name, value in parameters.items() if value is not None})
