"""The only wiring place: settings in, one record of live parts out. Services take the record first.

Make it after a fork and close it at the end; it owns every connection of the process.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from threading import Lock
from typing import Any

import structlog
from pydantic import SecretStr
from sqlalchemy import Engine

from memory_app.broker import dropped
from memory_app.broker.dropped import Drops
from memory_app.db import db, faults, servers
from memory_app.db.backlog import Backlog
from memory_app.db.directory import Directory
from memory_app.db.lease import Returns
from memory_app.db.recent import Recent
from memory_app.db.servers import Servers
from memory_app.db.shards import HOME, Bound, bound_of, bound_to, shard_of
from memory_app.errors import MemoryAppError, Misconfigured
from memory_app.hot import breaker, hints, limits
from memory_app.hot.client import Hot
from memory_app.hot.client import connect as connect_hot
from memory_app.providers.chat import Chat
from memory_app.providers.embedders import Embedder, Formers, Options, Pooling, make_embedder
from memory_app.providers.provider import Gate, Rates, Timeouts, Wire
from memory_app.providers.provider import connect as connect_provider
from memory_app.providers.rerankers import Options as RerankOptions
from memory_app.providers.rerankers import Reranker, make_reranker
from memory_app.queue import Sender
from memory_app.settings import Chat as ChatSettings
from memory_app.settings import Embedding as EmbeddingSettings
from memory_app.settings import Rerank as RerankSettings
from memory_app.settings import Settings

log = structlog.get_logger(__name__)

USUAL_CIRCUIT = breaker.Circuit()

LOOK_AT_OTHERS_SECONDS = 1.0
"""How long a worker does what its messages say before it looks who else waits."""

STREAM_SECONDS = 1.0
"""Turns come one after the other where some were indexed so shortly before."""

HINT_LIFE_MS = 5_000
"""A hint that was lost blocks its followers for this long at most; the finder looks sooner."""


@dataclass(frozen=True, slots=True)
class Chats:
    """A small model for turns, a larger one for sessions and deep synthesis; perhaps the same."""

    small: Chat
    large: Chat
    wire: Wire

    def close(self) -> None:
        self.wire.close()


@dataclass(slots=True)
class Pace:
    """Says once in ``every_seconds`` that it is time, to one of those who ask. Safe between threads."""

    every_seconds: float
    _next: float = 0.0
    _lock: Lock = field(default_factory=Lock)

    def is_due(self) -> bool:
        now = time.monotonic()
        with self._lock:
            if now < self._next:
                return False
            self._next = now + self.every_seconds
            return True


@dataclass(slots=True)
class Stream:
    """Whether turns come one after the other: some were indexed in this process within the last ``seconds``."""

    seconds: float
    _ends: float = 0.0

    def is_under_way(self) -> bool:
        return time.monotonic() < self._ends

    def note(self) -> None:
        """Turns were indexed now."""
        self._ends = time.monotonic() + self.seconds


@dataclass(frozen=True, slots=True)
class Runtime:
    """The live parts. Safe to share between threads, never across a fork."""

    settings: Settings
    engine: Engine
    """The database, bound to the shard in which this runtime works."""
    owner: Engine | None
    """The same as the owner of its tables, where the settings name one; opened only by maintenance."""
    owners: Servers | None
    """All servers as the owner of their tables, where the settings name the one of the home shard."""
    directory: Directory
    hot: Hot
    embedder: Embedder
    formers: Formers
    """Embedders of models that rows may still wait to leave."""
    reranker: Reranker | None
    """The model that reorders recall, where the settings name one."""
    chat: Chats | None
    """Language models, where the settings name a server."""
    sender: Sender
    drops: Drops
    """How many messages were dropped at the broker; opened only by who asks."""
    backlog: Backlog
    recent: Recent
    """What this process read of limits and quotas a moment ago."""
    pace: Pace
    """When this process is to look whether it is the turn of other tenants."""
    stream: Stream
    """Whether turns come to this process one after the other."""
    returns: Returns
    """What this process borrowed and could not give back yet."""

    @property
    def shard(self) -> int:
        """The number of the shard in which this runtime works."""
        return shard_of(self.engine)

    def at(self, shard: int) -> Runtime:
        """The same parts at work in another shard. Raises `StoreUnavailable` where this code cannot work in it."""
        if shard == self.shard == HOME:
            return self
        server = self.directory.check(shard)
        engine = self.directory.servers.at(shard, server)
        # It may be on another server by now.
        if shard == self.shard and engine.pool is self.engine.pool:
            return self
        if (bound := bound_of(self.engine)) is not None:
            engine = bound_to(engine, bound)
        owner = None
        if self.owners is not None and (server is None or server in self.owners.others):
            owner = self.owners.at(shard, server)
        return replace(self, engine=engine, owner=owner)

    def bound(self, agent: str | None, user: str | None) -> Runtime:
        """The same parts for a caller who may see one agent or one user only; for one who may see all, these."""
        if agent is None and user is None:
            return self
        return replace(self, engine=bound_to(self.engine, Bound(agent, user)))

    def hint(self, task: str, *, to: str | None = None, **ids: Any) -> None:
        """Send one message that says "look", unless one is already under way. Never fails, never waits long.

        ``to`` is a queue other than the task's own. The message names the shard, unless it is the home shard.
        """
        ids |= self._place()
        try:
            if not hints.claim(self.hot, hint_name(task, **ids), life_ms=HINT_LIFE_MS):
                return
        except MemoryAppError as error:
            # Mostly the broker is the same Redis. The row is there, and a finder sends the hint.
            log.warning("hint_not_sent", task=task, reason=error.message)
            return
        self.sender.send(task, to=to, **ids)

    def send_claimed(self, task: str, **ids: Any) -> None:
        """Send the message of a hint whose name, `hint_name`, the caller has claimed. Never fails."""
        ids |= self._place()
        self.sender.send(task, **ids)

    def hint_name(self, task: str, **ids: Any) -> str:
        """What a hint of this shard is about; equal hints under way are sent once."""
        return hint_name(task, **ids, **self._place())

    def _place(self) -> dict[str, int]:
        return {} if self.shard == HOME else {"shard": self.shard}

    def close(self) -> None:
        self.sender.close()
        self.drops.close()
        if self.chat is not None:
            self.chat.close()
        if self.reranker is not None:
            self.reranker.close()
        self.hot.close()
        self.directory.servers.dispose()
        if self.owners is not None:
            self.owners.dispose()


def hint_name(task: str, **ids: Any) -> str:
    """What a hint is about; equal hints under way are sent once."""
    # In the order of their names, whatever the order at the call.
    return ":".join([task, *(str(ids[key]) for key in sorted(ids))])


def build(settings: Settings) -> Runtime:
    """Wire the parts; opens no connection yet. Raises `Misconfigured` for an embedder that cannot be loaded
    and for an address of Redis that cannot be one.
    """
    hot = connect_hot(
        settings.redis_address,
        prefix=settings.redis.prefix,
        timeout_seconds=settings.redis.timeout_seconds,
        stream_turns=settings.hot.stream_turns,
        stream_life=timedelta(days=settings.hot.stream_days),
        context_life=timedelta(seconds=settings.context.cache_seconds),
    )
    places = app_servers(settings)
    owners = owner_servers(settings)
    return Runtime(
        settings=settings,
        engine=places.home,
        owner=None if owners is None else owners.home,
        owners=owners,
        directory=Directory(places),
        hot=hot,
        embedder=embedder_of(settings.embedding, hot),
        formers=Formers(),
        reranker=_reranker(settings.rerank, hot),
        chat=_chats(settings.chat, hot),
        sender=Sender(settings.broker_address, prefix=settings.redis.prefix),
        drops=dropped.connect(
            settings.broker_address,
            prefix=settings.redis.prefix,
            timeout_seconds=settings.redis.timeout_seconds,
        ),
        backlog=Backlog(settings.record.backlog_limit),
        recent=Recent(),
        pace=Pace(LOOK_AT_OTHERS_SECONDS),
        stream=Stream(STREAM_SECONDS),
        returns=Returns(),
    )


def app_engine(settings: Settings) -> Engine:
    """The database of the home shard as the application's role; opens nothing yet."""
    return _app_engine(settings, settings.database.url, setting=faults.SETTING)


def app_servers(settings: Settings) -> Servers:
    """All servers as the application's role; opens nothing yet."""
    others = {
        name: partial(_app_engine, settings, server.url, setting=servers.url_setting(name), pauses=True)
        for name, server in settings.database.servers.items()
    }
    return Servers(app_engine(settings), others)


def _app_engine(settings: Settings, url: SecretStr, *, setting: str, pauses: bool = False) -> Engine:
    database = settings.database
    return db.connect(
        url.get_secret_value(),
        pool_size=database.pool_size,
        pool_overflow=database.pool_overflow,
        pool_timeout_seconds=database.pool_timeout_seconds,
        connect_timeout_seconds=database.connect_timeout_seconds,
        statement_timeout_ms=database.statement_timeout_ms,
        prepared_statements=database.prepared_statements,
        setting=setting,
        pauses=pauses,
    )


def owner_servers(settings: Settings) -> Servers | None:
    """All servers as the owner of their tables, as far as the settings name that; None without the home shard's."""
    url = settings.database.owner_url
    if url is None:
        return None
    # Without a limit: building the search indexes of a big scope takes minutes.
    connect = partial(db.connect_owner, statement_timeout_ms=0)
    others = {
        name: partial(connect, server.owner_url.get_secret_value(), setting=servers.owner_setting(name))
        for name, server in settings.database.servers.items()
        if server.owner_url is not None
    }
    return Servers(connect(url.get_secret_value()), others)


def _gate(
    name: str,
    hot: Hot,
    *,
    requests: float,
    tokens: float,
    patience_seconds: float = 5.0,
    circuit: breaker.Circuit = USUAL_CIRCUIT,
) -> Gate:
    """Our own rate limit and the circuit breaker before a provider, both shared by all processes."""

    def take_from(name: str, *, rate_per_second: float, burst: float, cost: float) -> limits.Verdict:
        return limits.take(hot, name, rate_per_second=rate_per_second, burst=burst, cost=cost)

    rates = Rates(requests_per_minute=requests, tokens_per_minute=tokens, patience_seconds=patience_seconds)
    return Gate(
        name, take=take_from, guarded=lambda: breaker.guarded(hot, name, circuit=circuit), rates=rates
    )


def embedder_of(settings: EmbeddingSettings, hot: Hot) -> Embedder:
    """The embedder that the settings name, behind its limit and its circuit breaker."""
    options = Options(
        model=settings.model,
        base_url=settings.base_url,
        key=settings.key,
        timeouts=Timeouts(settings.connect_seconds, settings.total_seconds, settings.total_seconds),
        gate=_gate(
            "embedding", hot, requests=settings.requests_per_minute, tokens=settings.tokens_per_minute
        ),
        batch=settings.batch,
        ask_dimensions=settings.ask_dimensions,
        query_prefix=settings.query_prefix,
        passage_prefix=settings.passage_prefix,
        folder=settings.folder,
        pooling=Pooling(settings.pooling),
        tokens_limit=settings.tokens_limit,
    )
    return make_embedder(settings.provider, settings.dimensions, options=options)


def _reranker(settings: RerankSettings, hot: Hot) -> Reranker | None:
    if settings.provider is None:
        return None
    gate = _gate(
        "rerank",
        hot,
        requests=settings.requests_per_minute,
        tokens=0,
        # Somebody waits for the answer, and our own order is at hand.
        patience_seconds=0,
        circuit=breaker.Circuit(rest=timedelta(seconds=settings.rest_seconds)),
    )
    options = RerankOptions(
        model=settings.model,
        base_url=settings.base_url,
        key=settings.key,
        timeouts=Timeouts(settings.connect_seconds, settings.total_seconds, settings.total_seconds),
        gate=gate,
        folder=settings.folder,
        tokens_limit=settings.tokens_limit,
    )
    return make_reranker(settings.provider, options)


def _chats(settings: ChatSettings, hot: Hot) -> Chats | None:
    if settings.base_url is None:
        return None
    if settings.model is None:
        raise Misconfigured("chat.model: name the model to ask at chat.base_url", field="chat.model")
    wire = connect_provider(
        settings.base_url,
        settings.key,
        provider="the language model",
        timeouts=Timeouts(settings.connect_seconds, settings.total_seconds, settings.total_seconds),
        response_limit_bytes=settings.response_limit_bytes,
        connections=settings.connections,
    )
    gate = _gate(
        "chat",
        hot,
        requests=settings.requests_per_minute,
        tokens=settings.tokens_per_minute,
        patience_seconds=settings.patience_seconds,
        circuit=breaker.Circuit(rest=timedelta(seconds=settings.rest_seconds)),
    )

    def chat(model: str) -> Chat:
        return Chat(
            wire,
            model,
            gate=gate,
            temperature=settings.temperature,
            output_limit_tokens=settings.output_limit_tokens,
            question_seconds=settings.question_seconds,
            slow_after_seconds=settings.slow_after_seconds,
        )

    return Chats(chat(settings.model), chat(settings.large_model or settings.model), wire)
