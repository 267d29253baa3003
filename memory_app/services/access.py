"""Access: who holds a key, and whether anybody does. The tenant of everything comes from here."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import structlog
from sqlalchemy import Connection

from memory_app.errors import MemoryAppError, Unauthorized
from memory_app.runtime import Runtime
from memory_app.store import db, keys
from memory_app.store.db import transaction
from memory_app.store.keys import Caller

log = structlog.get_logger(__name__)


def look_up(runtime: Runtime, key: str) -> Caller:
    """The holder of a key according to the database. Raises `Unauthorized` or `StoreUnavailable`."""
    with transaction(runtime.engine, None) as connection:
        caller = keys.authenticate(connection, key)
    if caller is None:
        raise Unauthorized("the key is unknown, revoked or expired")
    return caller


def note_use(runtime: Runtime, caller: Caller) -> None:
    """Write down that the key was used; a database that is away costs only the note."""
    try:
        with transaction(runtime.engine, None) as connection:
            keys.note_use(connection, caller.key_id)
    except MemoryAppError as error:
        log.warning("key_use_not_noted", key_id=caller.key_id, error=error.kind)


def anonymous_caller(owner_url: str, tenant: str) -> Caller:
    """Who asks without a key: all rights on ``tenant``, which is made when it is new."""
    with owner_connection(owner_url) as connection:
        return Caller(0, keys.ensure_tenant(connection, tenant), tenant, frozenset(keys.RIGHTS))


def has_live_key(runtime: Runtime) -> bool:
    """Whether any tenant has a key that opens the door now."""
    with transaction(runtime.engine, None) as connection:
        return keys.has_live_key(connection)


@contextmanager
def owner_connection(owner_url: str) -> Iterator[Connection]:
    """A transaction as the database's owner, who alone makes tenants and keys."""
    engine = db.connect(owner_url, pool_size=1, pool_overflow=0)
    try:
        with transaction(engine, None) as connection:
            yield connection
    finally:
        engine.dispose()
