"""Rate limits shared by all processes: token buckets in Redis, on the clock of Redis.

They fail open: without Redis everything is allowed, because a limit protects the service and must not be what
stops it. What may never be passed belongs into the database.
"""

from __future__ import annotations

from dataclasses import dataclass

from memory_app.hot.client import Hot
from memory_app.hot.faults import HotUnavailable
from memory_app.hot.keys import LIMIT, milliseconds


@dataclass(frozen=True, slots=True)
class Verdict:
    """``retry_after_seconds``: 0 when allowed, else when the same request passes if nobody else asks."""

    allowed: bool
    retry_after_seconds: float = 0.0


def take(hot: Hot, name: str, *, rate_per_second: float, burst: float, cost: float = 1.0) -> Verdict:
    """Take ``cost`` tokens from the bucket ``name``, which holds ``burst`` and gains ``rate_per_second``.

    A cost above ``burst`` passes when the bucket is full. A bucket that nobody used for a day counts as full. Nothing
    is taken when refused. Never raises for Redis.
    """
    # A bucket never holds more than the burst: a greater cost would wait for ever.
    arguments = [rate_per_second, burst, min(cost, burst), milliseconds(LIMIT.life)]
    try:
        allowed, wait_ms = hot.run("limit_take", [hot.named_key(LIMIT, name)], arguments)
    except HotUnavailable:
        return Verdict(allowed=True)
    return Verdict(allowed=bool(allowed), retry_after_seconds=wait_ms / 1000)
