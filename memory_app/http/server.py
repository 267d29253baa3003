"""Serving the API: one process, and no open door.

Keys are always checked. Without one only a loopback address may be served, and only where the operator named the
tenant; an address that others reach is refused as long as there is no key at all.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from sqlalchemy import Connection

from memory_app import runtime as wiring
from memory_app.errors import Misconfigured
from memory_app.http.app import create_app
from memory_app.http.auth import is_loopback
from memory_app.settings import Settings
from memory_app.store import clock, db, keys
from memory_app.store.keys import Caller

KEEP_ALIVE_SECONDS = 30
SHUTDOWN_SECONDS = 25
"""Time for requests under way; as long as workers get."""


def serve(settings: Settings) -> None:
    """Serve until stopped. Raises `Misconfigured` for an address that would stand open, before anything listens."""
    anonymous = check_door(settings)
    runtime = wiring.build(settings)
    try:
        uvicorn.run(
            create_app(runtime, anonymous=anonymous),
            host=settings.http.host,
            port=settings.http.port,
            log_config=None,
            access_log=False,  # An address holds the names of people.
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=SHUTDOWN_SECONDS,
        )
    finally:
        runtime.close()


def check_door(settings: Settings) -> Caller | None:
    """Who may ask without a key, or None. Raises `Misconfigured` where the door would stand open or lead nowhere."""
    http = settings.http
    if http.allow_anonymous_tenant is not None:
        if not is_loopback(http.host):
            raise Misconfigured(
                f"http.allow_anonymous_tenant needs a loopback http.host, not {http.host}; use keys instead",
                field="http.allow_anonymous_tenant",
            )
        return anonymous_caller(settings, http.allow_anonymous_tenant)
    if not is_loopback(http.host):
        with owner_connection(settings) as connection:
            if not has_live_key(connection):
                raise Misconfigured(
                    f"http.host {http.host} can be reached by others and there is no API key yet; "
                    "make one with `memory keys create`",
                    field="http.host",
                )
    return None


def anonymous_caller(settings: Settings, tenant: str) -> Caller:
    """All rights on the named tenant, which is made when it is new."""
    with owner_connection(settings) as connection:
        return Caller(0, keys.ensure_tenant(connection, tenant), tenant, frozenset(keys.RIGHTS))


def has_live_key(connection: Connection) -> bool:
    """Whether any tenant has a key that opens the door now. Needs the owner's connection."""
    now = clock.now(connection)
    return any(
        row.revoked_at is None and (row.expires_at is None or row.expires_at > now)
        for row in keys.listed(connection, None)
    )


@contextmanager
def owner_connection(settings: Settings) -> Iterator[Connection]:
    """A transaction as the database's owner, who alone sees keys and makes tenants."""
    url = settings.database.owner_url
    if url is None:
        raise Misconfigured(
            "database.owner_url is needed to look at keys and tenants", field="database.owner_url"
        )
    engine = db.connect(url.get_secret_value(), pool_size=1, pool_overflow=0)
    try:
        with db.transaction(engine, None) as connection:
            yield connection
    finally:
        engine.dispose()
