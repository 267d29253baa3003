"""The only wiring place: settings in, one record of live parts out. Services take the record first.

Make it after a fork and close it at the end; it owns every connection of the process.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import structlog
from sqlalchemy import Engine

from memory_app.embedded import Servers
from memory_app.errors import MemoryAppError
from memory_app.hot import hints
from memory_app.hot.client import Hot
from memory_app.hot.client import connect as connect_hot
from memory_app.models.embedders import Embedder, Formers, make_embedder
from memory_app.queue import Sender
from memory_app.settings import Settings
from memory_app.store import db
from memory_app.store.backlog import Backlog

log = structlog.get_logger(__name__)

HINT_LIFE_MS = 5_000
"""A hint that was lost blocks its followers for this long at most; the finder looks sooner."""


@dataclass(frozen=True, slots=True)
class Runtime:
    """The live parts. Safe to share between threads, never across a fork."""

    settings: Settings
    engine: Engine
    owner: Engine | None
    """The database as the owner of its tables, where the settings name one; opened only by maintenance."""
    hot: Hot
    embedder: Embedder
    formers: Formers
    """Embedders of models that rows may still wait to leave."""
    sender: Sender
    backlog: Backlog

    def hint(self, task: str, **ids: Any) -> None:
        """Send one message that says "look", unless one is already under way. Never fails, never waits long."""
        try:
            if not hints.claim(self.hot, hint_name(task, **ids), life_ms=HINT_LIFE_MS):
                return
        except MemoryAppError as error:
            log.warning("hint_not_sent", task=task, error=error.kind)
            return
        self.sender.send(task, **ids)

    def close(self) -> None:
        self.sender.close()
        self.hot.close()
        self.engine.dispose()
        if self.owner is not None:
            self.owner.dispose()


def hint_name(task: str, **ids: Any) -> str:
    """What a hint is about; equal hints under way are sent once."""
    return ":".join([task, *(str(ids[key]) for key in sorted(ids))])


def build(settings: Settings) -> Runtime:
    """Wire the parts; opens no connection yet. Raises `Misconfigured` for an embedder that cannot be loaded."""
    database = settings.database
    return Runtime(
        settings=settings,
        engine=db.connect(
            database.url.get_secret_value(),
            pool_size=database.pool_size,
            pool_overflow=database.pool_overflow,
            pool_timeout_seconds=database.pool_timeout_seconds,
            connect_timeout_seconds=database.connect_timeout_seconds,
            statement_timeout_ms=database.statement_timeout_ms,
            lock_timeout_ms=database.lock_timeout_ms,
            idle_transaction_timeout_ms=database.idle_transaction_timeout_ms,
            search_candidates=settings.recall.candidates,
        ),
        owner=None
        if database.owner_url is None
        else db.connect(
            database.owner_url.get_secret_value(), pool_size=1, pool_overflow=1, statement_timeout_ms=0
        ),
        hot=connect_hot(
            settings.redis.url.get_secret_value(),
            prefix=settings.redis.prefix,
            timeout_seconds=settings.redis.timeout_seconds,
            stream_turns=settings.hot.stream_turns,
            stream_life=timedelta(days=settings.hot.stream_days),
            context_life=timedelta(seconds=settings.context.cache_seconds),
        ),
        embedder=make_embedder(settings.embedding.provider, dimensions=settings.embedding.dimensions),
        formers=Formers(),
        sender=Sender(settings.redis.url.get_secret_value(), prefix=settings.redis.prefix),
        backlog=Backlog(settings.record.backlog_limit),
    )


def embedded_settings(servers: Servers, **sections: dict[str, object]) -> Settings:
    """The settings of the environment with embedded servers in place of others; ``sections`` go on top."""
    database = {"url": servers.app_url, "owner_url": servers.owner_url}
    given: dict[str, dict[str, object]] = {"database": {**database}, "redis": {"url": servers.redis_url}}
    for name, values in sections.items():
        given[name] = {**given.get(name, {}), **values}
    return Settings(data_folder=servers.folder, **given)  # type: ignore[arg-type]
