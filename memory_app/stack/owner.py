"""The database as its owner, who alone changes the schema and sees tenants and keys."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from sqlalchemy import Connection

from memory_app.errors import Misconfigured
from memory_app.settings import Settings
from memory_app.store import db


@contextlib.contextmanager
def owner_connection(settings: Settings) -> Iterator[Connection]:
    """One transaction. Raises `Misconfigured` when the settings do not name the owner."""
    engine = db.connect(owner_url(settings), pool_size=1, pool_overflow=0)
    try:
        with db.transaction(engine, None) as connection:
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
