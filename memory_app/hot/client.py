"""The connection to Redis, and what happens when there is none.

A call either answers within the time-out or raises `HotUnavailable`; nothing is tried twice. After a failure
the whole process leaves Redis alone for a few seconds, then one call tries: a dead Redis costs one time-out
per pause, not one per request.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from importlib import resources
from threading import Lock
from typing import Any, Generic, TypeVar

from redis import Redis
from redis.backoff import NoBackoff
from redis.client import Pipeline
from redis.commands.core import Script
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import ReadOnlyError, RedisError
from redis.exceptions import TimeoutError as RedisTimeoutError
from redis.retry import Retry
from redis.sentinel import Sentinel

from memory_app.hot import keys
from memory_app.hot.faults import HotUnavailable, translate
from memory_app.hot.keys import Key
from memory_app.redis_url import Address

T = TypeVar("T")

PAUSE_SECONDS = 3.0
"""How long Redis is left alone after it did not answer."""

HEALTH_CHECK_SECONDS = 10
"""A connection idle for longer is tried before it is used; half-open ones are found this way."""


class Outage:
    """Whether this process leaves Redis alone at the moment. Safe between threads."""

    def __init__(
        self, *, pause_seconds: float = PAUSE_SECONDS, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._pause = pause_seconds
        self._clock = clock
        self._until: float | None = None
        self._lock = Lock()

    def admit(self) -> None:
        """Return to let the call try; `HotUnavailable` during a pause. After it, lets one call through."""
        with self._lock:
            now = self._clock()
            if self._until is None:
                return
            if now < self._until:
                raise HotUnavailable(
                    "Redis did not answer a moment ago; hot memory is left out", retry_after=self._until - now
                )
            # Before this call has an answer, so that the others leave Redis alone until it has one.
            self._until = now + self._pause

    def failed(self) -> None:
        with self._lock:
            self._until = self._clock() + self._pause

    def answered(self) -> None:
        # One assignment needs no lock, and this stands in the way of every call.
        self._until = None


@dataclass(frozen=True, slots=True)
class Commands(Generic[T]):
    """Commands for a pipeline and what their ``replies`` mean, so that several parts share one round trip."""

    replies: int
    put_to: Callable[[Pipeline], None]
    read: Callable[[Sequence[Any]], T]


@dataclass(frozen=True, slots=True)
class Hot:
    """Hot memory of one process; shared between threads, never across a fork. Made by `connect`."""

    redis: Redis = field(repr=False)
    address: Address = field(repr=False)
    prefix: str
    stream_turns: int
    stream_life: timedelta
    context_life: timedelta
    scripts: Mapping[str, Script] = field(repr=False)
    outage: Outage = field(default_factory=Outage, repr=False)

    def scope_key(self, key: Key, scope_id: int) -> str:
        return keys.scope_key(self.prefix, key, scope_id)

    def named_key(self, key: Key, name: str) -> str:
        return keys.named_key(self.prefix, key, name)

    @contextmanager
    def calling(self) -> Iterator[Redis]:
        """Around each use of Redis: every failure of it leaves as `HotUnavailable`."""
        self.outage.admit()
        try:
            yield self.redis
        except (RedisConnectionError, RedisTimeoutError) as error:
            self.outage.failed()
            raise translate(error, self.address) from error
        except ReadOnlyError as error:
            # We still talk to a server that another one has replaced; a new connection finds the one at our address.
            self.redis.connection_pool.disconnect(inuse_connections=False)
            self.outage.answered()
            raise translate(error, self.address) from error
        except RedisError as error:
            # A refusal is an answer: Redis is there, and other calls may pass.
            self.outage.answered()
            raise translate(error, self.address) from error
        self.outage.answered()

    def fetch(self, commands: Commands[T]) -> T:
        """What the replies to ``commands`` mean. Raises `HotUnavailable`."""
        return commands.read(self.fetch_all([commands]))

    def fetch_all(self, parts: Sequence[Commands[Any]]) -> list[Any]:
        """The replies to the commands of all ``parts``, in their order, in one round trip. Raises `HotUnavailable`."""
        with self.calling() as redis:
            pipeline = redis.pipeline()
            for commands in parts:
                commands.put_to(pipeline)
            return pipeline.execute()

    def run(self, script: str, names: Sequence[str], arguments: Sequence[str | int | float]) -> Any:
        """Run ``lua/<script>.lua`` on the keys ``names``. Raises `HotUnavailable`."""
        with self.calling():
            # By its digest; the client sends the text again where a restart or a flush has lost it.
            return self.scripts[script](keys=list(names), args=list(arguments))

    def ping(self) -> None:
        """Return if Redis answers; raises `HotUnavailable`."""
        with self.calling() as redis:
            redis.ping()

    def close(self) -> None:
        self.redis.close()


def connect(
    address: Address,
    *,
    prefix: str = "memory:",
    timeout_seconds: float = 1.0,
    stream_turns: int = 50,
    stream_life: timedelta = keys.STREAM.life,
    context_life: timedelta = keys.CONTEXT.life,
) -> Hot:
    """Hot memory at ``address``; opens no connection yet, Redis may be away.

    ``timeout_seconds`` bounds the connecting and each answer. ``stream_turns`` are kept for ``stream_life``.
    """
    redis = open_client(address, timeout_seconds=timeout_seconds)
    scripts = {name: redis.register_script(text) for name, text in _scripts().items()}
    return Hot(
        redis=redis,
        address=address,
        prefix=prefix,
        stream_turns=stream_turns,
        stream_life=stream_life,
        context_life=context_life,
        scripts=scripts,
    )


def open_client(address: Address, *, timeout_seconds: float) -> Redis:
    """A client that tries nothing twice; opens no connection yet. With sentinels it asks them for the primary anew for
    each connection.
    """
    tls: dict[str, Any] = {} if address.tls is None else {"ssl": True, **address.tls.options()}
    waits = {"socket_timeout": timeout_seconds, "socket_connect_timeout": timeout_seconds}
    options: dict[str, Any] = {
        **tls,
        **waits,
        "db": address.db,
        "username": address.username,
        "password": address.password,
        "socket_keepalive": True,
        "health_check_interval": HEALTH_CHECK_SECONDS,
        # By itself the client tries three times more, with growing pauses: a caller would wait for all of them.
        "retry": Retry(NoBackoff(), 0),
        # Version 3 switches off the look at an idle connection that finds it closed by the server.
        "protocol": 2,
    }
    if address.primary is None:
        host, port = address.hosts[0]
        return Redis(host, port, **options)
    sentinels = Sentinel(  # type: ignore[no-untyped-call]
        # Without user and password: those are of the Redis servers, and sentinels with a login are not supported.
        address.hosts,
        sentinel_kwargs={**tls, **waits, "retry": Retry(NoBackoff(), 0)},
        **options,
    )
    redis: Redis = sentinels.master_for(address.primary)  # type: ignore[no-untyped-call]
    return redis


def _scripts() -> dict[str, str]:
    folder = resources.files("memory_app.hot").joinpath("lua")
    return {
        file.name.removesuffix(".lua"): file.read_text(encoding="utf-8")
        for file in folder.iterdir()
        if file.name.endswith(".lua")
    }
