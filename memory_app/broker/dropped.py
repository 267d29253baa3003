"""How many messages were dropped, by reason: counted in Redis by whoever took them, for metrics and doctor.

Only the reason is counted; nothing of a message is kept.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import structlog
from redis import Redis
from redis.exceptions import RedisError

from memory_app.broker.message import DropReason
from memory_app.errors import Transient
from memory_app.hot import keys
from memory_app.hot.client import open_client
from memory_app.redis_url import Address

log = structlog.get_logger(__name__)

WRITE_EVERY_SECONDS = 1.0
"""A queue full of garbage costs one count a second, and one line in the log."""

LIFE_SECONDS = round(keys.DROPPED.life.total_seconds())


@dataclass(slots=True)
class Counting:
    """Counts of one channel that are not written yet. For one thread."""

    prefix: str
    waiting: Counter[DropReason] = field(default_factory=Counter)
    written_at: float = float("-inf")

    def is_due(self) -> bool:
        return bool(self.waiting) and time.monotonic() - self.written_at >= WRITE_EVERY_SECONDS

    def write(self, redis: Redis) -> None:
        """Without Redis the counts stay for the next time."""
        # Noted before the attempt: while Redis is away there is one attempt a second, not one for each message.
        self.written_at = time.monotonic()
        log.warning("messages_dropped", **{fault.value: count for fault, count in self.waiting.items()})
        name = _name(self.prefix)
        try:
            pipeline = redis.pipeline()
            for fault, count in self.waiting.items():
                pipeline.hincrby(name, fault.value, count)
            # Begins anew with each write, so that the counts go a day after the last drop.
            pipeline.expire(name, LIFE_SECONDS)
            pipeline.execute()
        except (RedisError, OSError) as error:
            log.warning("dropped_messages_not_counted", error=type(error).__name__)
            return
        self.waiting.clear()


class CountsUnavailable(Transient):
    """Redis did not tell how many messages were dropped."""

    kind = "counts_unavailable"


@dataclass(frozen=True, slots=True)
class Dropped:
    """``counts`` by reason, since there was none for a day; ``seconds_ago`` the last one was, None without any."""

    counts: Mapping[str, int]
    seconds_ago: float | None = None

    @property
    def total(self) -> int:
        return sum(self.counts.values())


@dataclass(frozen=True, slots=True)
class Drops:
    """Where counts and lengths of queues are read, with a connection of its own. Safe to share between threads, not
    across a fork."""

    redis: Redis = field(repr=False)
    prefix: str

    def read(self) -> Dropped:
        """Raises `CountsUnavailable`."""
        name = _name(self.prefix)
        try:
            pipeline = self.redis.pipeline()
            pipeline.hgetall(name)
            pipeline.ttl(name)
            fields, remaining_seconds = pipeline.execute()
        except (RedisError, OSError) as error:
            raise CountsUnavailable(f"Redis did not answer ({type(error).__name__})") from error
        counts = {_text(fault): int(count) for fault, count in fields.items()}
        if not counts:
            return Dropped(counts)
        # Each write sets the whole life, so what is used up of it is the time since the last drop.
        return Dropped(counts, seconds_ago=LIFE_SECONDS - remaining_seconds)

    def queue_lengths(self, queues: Sequence[str]) -> dict[str, int]:
        """Messages that wait in each queue. Raises `CountsUnavailable`."""
        try:
            pipeline = self.redis.pipeline()
            for queue in queues:
                pipeline.llen(f"{self.prefix}{queue}")
            return dict(zip(queues, pipeline.execute(), strict=True))
        except (RedisError, OSError) as error:
            raise CountsUnavailable(f"Redis did not answer ({type(error).__name__})") from error

    def close(self) -> None:
        self.redis.close()


def connect(address: Address, *, prefix: str, timeout_seconds: float) -> Drops:
    """Opens no connection yet; the broker may be away."""
    return Drops(open_client(address, timeout_seconds=timeout_seconds), prefix)


def _name(prefix: str) -> str:
    return keys.named_key(prefix, keys.DROPPED, "all")


def _text(value: bytes | str) -> str:
    return value.decode("ascii", "replace") if isinstance(value, bytes) else value
