"""The PostgreSQL servers of one installation: the one that has the home shard, and others that hold further shards.

The list of shards says on which server each is, by a name; the settings say where the server of that name is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from threading import Lock

from sqlalchemy import Engine

from memory_app.db.shards import HOME, at_shard
from memory_app.errors import ShardMissing


def url_setting(server: str) -> str:
    """The setting that holds the address of a server."""
    return f"MEMORY_DATABASE__SERVERS__{server.upper()}__URL"


def owner_setting(server: str) -> str:
    """The setting that holds the address of a server for the owner of its tables."""
    return f"MEMORY_DATABASE__SERVERS__{server.upper()}__OWNER_URL"


@dataclass(slots=True)
class Servers:
    """The engines of this process, one for each server. Safe between threads.

    ``others`` make the engine of a server by its name; each is called once, when a shard of the server is first used.
    """

    home: Engine
    others: Mapping[str, Callable[[], Engine]] = field(default_factory=dict)
    _engines: dict[str, Engine] = field(default_factory=dict)
    _watchers: list[Callable[[Engine], None]] = field(default_factory=list)
    _lock: Lock = field(default_factory=Lock)

    def names(self) -> tuple[str, ...]:
        """The servers beside the one of the home shard, as the settings name them."""
        return tuple(self.others)

    def engine(self, server: str | None) -> Engine:
        """The engine of a server; None is that of the home shard. Raises `ShardMissing` where no setting names it."""
        if server is None:
            return self.home
        with self._lock:
            engine = self._engines.get(server)
            if engine is None:
                make = self.others.get(server)
                if make is None:
                    raise ShardMissing(unknown(server), retry_after=10)
                engine = self._engines[server] = make()
                for attach in self._watchers:
                    attach(engine)
            return engine

    def watch(self, attach: Callable[[Engine], None]) -> None:
        """Call ``attach`` with the engine of each server, of those that are made later, too."""
        with self._lock:
            self._watchers.append(attach)
            for engine in (self.home, *self._engines.values()):
                attach(engine)

    def at(self, shard: int, server: str | None) -> Engine:
        """The engine of a server, bound to one of its shards. Raises as `engine`."""
        if server is None:
            return at_shard(self.home, shard)
        return at_shard(self.engine(server), shard, home=at_shard(self.home, HOME))

    def dispose(self) -> None:
        """Close all connections."""
        self.home.dispose()
        with self._lock:
            for engine in self._engines.values():
                engine.dispose()


def unknown(server: str) -> str:
    """What is said of a server that this process has no address of."""
    return f"the settings of this process do not name server {server!r}; set {url_setting(server)}"
