"""A second PostgreSQL server, and what tests over two servers share."""

from __future__ import annotations

from dataclasses import dataclass

from own_servers import PostgresServer
from sqlalchemy import Engine, create_engine
from sqlalchemy.pool import NullPool

from memory_app import MemoryApp
from memory_app.records.records import NewTurn, Role, Ticket
from memory_app.records.scope import Scope

BOB = Scope("ada", "bob", "s")


@dataclass(frozen=True, slots=True)
class East:
    """The database of a test on the other server."""

    server: PostgresServer
    database: str

    @property
    def owner_url(self) -> str:
        return self.server.url(self.database)

    def engine(self) -> Engine:
        """As the owner, beyond row-level security; it looks at shard 1."""
        options = {"options": "-c search_path=shard_0001,public -c timezone=UTC"}
        return create_engine(self.owner_url, poolclass=NullPool, connect_args=options)


def say(app: MemoryApp, words: str, *, scope: Scope = BOB, key: str | None = None) -> Ticket:
    """Record a turn of a user."""
    (ticket,) = app.record_all(scope, [NewTurn(Role.USER, words, idempotency_key=key)])
    return ticket
