"""Rate limits shared by all processes: token buckets in Redis, on the clock of Redis.

They fail open: without Redis everything is allowed, because a limit protects the service and must not be what
stops it. What may never be passed belongs into the database.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from memory_app.hot.client import Hot
from memory_app.hot.faults import HotUnavailable
from memory_app.hot.keys import LIMIT, milliseconds


@dataclass(frozen=True, slots=True)
class Taking:
    """``cost`` tokens of the bucket ``name``, which holds ``burst`` and gains ``rate_per_second``."""

    name: str
    rate_per_second: float
    burst: float
    cost: float = 1.0


@dataclass(frozen=True, slots=True)
class Verdict:
    """``retry_after_seconds``: 0 when allowed, else when the same request passes if nobody else asks.

    ``refused_by``: the bucket that has to be waited for, by its place among the takings.
    """

    allowed: bool
    retry_after_seconds: float = 0.0
    refused_by: int | None = None


def take(hot: Hot, name: str, *, rate_per_second: float, burst: float, cost: float = 1.0) -> Verdict:
    """`take_all` from one bucket."""
    return take_all(hot, [Taking(name, rate_per_second, burst, cost)])


def take_all(hot: Hot, takings: Sequence[Taking]) -> Verdict:
    """Take from several buckets in one call of Redis: from all of them, or from none when one refuses.

    A cost above the burst passes when the bucket is full. A bucket that nobody used for a day counts as full. Never
    raises for Redis.
    """
    arguments: list[float] = [milliseconds(LIMIT.life)]
    for taking in takings:
        # A bucket never holds more than the burst: a greater cost would wait for ever.
        arguments += [taking.rate_per_second, taking.burst, min(taking.cost, taking.burst)]
    try:
        refused, wait_ms = hot.run(
            "limit_take", [hot.named_key(LIMIT, taking.name) for taking in takings], arguments
        )
    except HotUnavailable:
        return Verdict(allowed=True)
    if not refused:
        return Verdict(allowed=True)
    return Verdict(allowed=False, retry_after_seconds=wait_ms / 1000, refused_by=refused - 1)
