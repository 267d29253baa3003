"""Access: who holds a key, and whether anybody does. The tenant of everything comes from here."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import structlog
from sqlalchemy import Connection

from memory_app.db import db
from memory_app.db.db import transaction
from memory_app.db.shards import HOME
from memory_app.errors import MemoryAppError, Misconfigured, Unauthorized
from memory_app.settings import Settings
from memory_app.tenancy.rows import keys
from memory_app.tenancy.rows.keys import Caller

if TYPE_CHECKING:  # Commands about keys need no embedder and no broker.
    from memory_app.runtime import Runtime

log = structlog.get_logger(__name__)


def look_up(runtime: Runtime, key: str) -> Caller:
    """The holder of a key according to the database. Raises `Unauthorized` or `StoreUnavailable`."""
    with transaction(runtime.at(HOME).engine, None) as connection:
        caller = keys.authenticate(connection, key)
    if caller is None:
        raise Unauthorized("the key is unknown, revoked or expired")
    return caller


def holder(runtime: Runtime, tenant_id: int, key_id: int) -> Caller:
    """The holder of a key of the tenant that was shown before. Raises `Unauthorized` or `StoreUnavailable`."""
    with transaction(runtime.at(HOME).engine, tenant_id) as connection:
        caller = keys.holder(connection, key_id)
    if caller is None:
        raise Unauthorized("the key is revoked or expired")
    return caller


def note_use(runtime: Runtime, caller: Caller) -> None:
    """Write down that the key was used; a database that is away costs only the note."""
    try:
        with transaction(runtime.at(HOME).engine, None) as connection:
            keys.note_use(connection, caller.key_id)
    except MemoryAppError as error:
        log.warning("key_use_not_noted", key_id=caller.key_id, error=error.kind)


def anonymous_caller(settings: Settings, tenant: str) -> Caller:
    """Who asks without a key: all rights on ``tenant``, which is made when it is new."""
    with owner_connection(settings) as connection:
        return Caller(
            # Keys are numbered from 1.
            key_id=0,
            tenant_id=keys.ensure_tenant(connection, tenant),
            tenant=tenant,
            rights=frozenset(keys.RIGHTS),
        )


def has_live_key(runtime: Runtime) -> bool:
    """Whether any tenant has a key that opens the door now."""
    with transaction(runtime.at(HOME).engine, None) as connection:
        return keys.has_live_key(connection)


@contextmanager
def owner_connection(settings: Settings) -> Iterator[Connection]:
    """A transaction as the database's owner, who alone makes tenants and keys. Raises as `owner_url`."""
    # An engine for this once: the owner may do everything, so no pool keeps a connection of theirs open.
    engine = db.connect_owner(owner_url(settings))
    try:
        with transaction(engine, None) as connection:
            yield connection
    finally:
        engine.dispose()


def owner_url(settings: Settings) -> str:
    """The address with the owner's name in it; `Misconfigured` when there is none."""
    url = settings.database.owner_url
    if url is None:
        raise Misconfigured(
            "MEMORY_DATABASE__OWNER_URL is not set; the application's role may not do this",
            field="database.owner_url",
        )
    return url.get_secret_value()
