"""The database's clock, which decides; never a worker's or a server's own."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Connection, text

_NOW = text("SELECT now()")


def now(connection: Connection) -> datetime:
    """When this transaction began."""
    return connection.execute(_NOW).scalar_one()  # type: ignore[no-any-return]
