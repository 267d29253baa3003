"""The schema of the database and what its roles are given, as the settings say."""

from __future__ import annotations

from memory_app.db import app_role, migrate, shard_move
from memory_app.db.catalog import Difference
from memory_app.db.migrate import Logins
from memory_app.db.servers import owner_setting
from memory_app.db.shard_move import Moved, Say
from memory_app.errors import InvalidInput
from memory_app.settings import Settings
from memory_app.tenancy.access import owner_url


def upgrade(settings: Settings) -> str:
    """Bring the databases to the newest schema, as their owner, and give the application's role its password and its
    defaults; the new revision. Raises `Misconfigured` without an owner's address, `StoreUnavailable`."""
    return migrate.upgrade(home_of(settings), session_defaults(settings), servers=servers_of(settings))


def add_shards(settings: Settings, count: int, *, server: str | None = None) -> tuple[int, ...]:
    """Make shards for new users, as the owner of the database; their numbers. ``server`` None: beside the home shard.

    Raises as `upgrade`, `InvalidInput` for a server that the settings do not name, `Conflict` where there are too many.
    """
    servers = servers_of(settings)
    if server is not None and server not in servers:
        raise InvalidInput(
            f"server: the settings name no owner of {server!r}; set {owner_setting(server)}", field="server"
        )
    return migrate.add_shards(
        home_of(settings), session_defaults(settings), count, servers=servers, server=server
    )


def move_shard(
    settings: Settings, shard: int, *, to: str, source_url: str | None = None, say: Say = lambda _: None
) -> Moved:
    """Move a shard to another server, as the owner of the tables. Raises as `shard_move.move`."""
    return shard_move.move(
        home_of(settings),
        session_defaults(settings),
        shard,
        to=to,
        servers=servers_of(settings),
        source_url=source_url,
        say=say,
    )


def abort_move(settings: Settings, shard: int) -> None:
    """Take back the move of a shard that is not switched yet. Raises as `shard_move.abort`."""
    shard_move.abort(home_of(settings), shard, servers=servers_of(settings))


def drop_moved(settings: Settings, shard: int) -> tuple[str, ...]:
    """Drop what stayed of a shard where it was before; the names of the servers."""
    return shard_move.drop_moved(home_of(settings), shard, servers=servers_of(settings))


def differences(settings: Settings) -> tuple[tuple[int, Difference], ...]:
    """What each shard has otherwise than this release expects, as its owner sees it, with the shard's number."""
    return migrate.differences(home_of(settings), servers=servers_of(settings))


def home_of(settings: Settings) -> Logins:
    """How to log in to the server of the home shard. Raises `Misconfigured` without an owner's address."""
    return Logins(owner_url(settings), settings.database.url.get_secret_value())


def servers_of(settings: Settings) -> dict[str, Logins]:
    """How to log in to the other servers, as far as the settings name their owner."""
    return {
        name: Logins(server.owner_url.get_secret_value(), server.url.get_secret_value(), owner_setting(name))
        for name, server in settings.database.servers.items()
        if server.owner_url is not None
    }


def session_defaults(settings: Settings) -> dict[str, str]:
    """How sessions of the application's role behave: server setting → value."""
    database = settings.database
    return app_role.session_defaults(
        statement_timeout_ms=database.statement_timeout_ms,
        lock_timeout_ms=database.lock_timeout_ms,
        idle_transaction_timeout_ms=database.idle_transaction_timeout_ms,
        search_candidates=settings.recall.candidates,
    )
