"""How many requests and bytes a minute a key and its tenant may send, over all processes.

Token buckets in Redis that hold a minute's worth. Without Redis nothing is refused (`memory_app.hot.limits`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from memory_app import metrics
from memory_app.errors import RateLimited
from memory_app.hot import limits as buckets
from memory_app.records.limits import Limits
from memory_app.runtime import Runtime
from memory_app.tenancy.rows.keys import Caller


@dataclass(frozen=True, slots=True)
class _Rate:
    """A limit, whose it is, and the bucket that stands for it."""

    limit_name: str
    limit: int
    whose: str
    taking: buckets.Taking


def admit(runtime: Runtime, caller: Caller, *, size_bytes: int) -> None:
    """Take one request and its bytes from what the key and its tenant have; one call of Redis, none without limits.

    Nothing is taken of the one where the other refuses, so that a key which sends too much spends nothing of what the
    other keys of its tenant may send. Raises `RateLimited` naming the limit.
    """
    rates = [
        *_rates("this key", f"key-{caller.key_id}", caller.limits, size_bytes=size_bytes),
        *_rates("this tenant", f"tenant-{caller.tenant_id}", caller.tenant_limits, size_bytes=size_bytes),
    ]
    if not rates:
        return
    verdict = buckets.take_all(runtime.hot, [rate.taking for rate in rates])
    if verdict.refused_by is None:
        return
    rate = rates[verdict.refused_by]
    metrics.limited.labels(rate.limit_name).inc()
    raise RateLimited(
        f"{rate.limit_name}: {rate.whose} may send {rate.limit} a minute; try again later",
        field=rate.limit_name,
        retry_after=verdict.retry_after_seconds,
    )


def _rates(whose: str, name: str, limits: Limits, *, size_bytes: int) -> Iterator[_Rate]:
    costs = (
        ("requests_per_minute", limits.requests_per_minute, 1),
        ("bytes_per_minute", limits.bytes_per_minute, size_bytes),
    )
    for limit_name, limit, cost in costs:
        if limit is not None and cost:
            taking = buckets.Taking(
                f"{name}-{limit_name}", rate_per_second=limit / 60, burst=limit, cost=cost
            )
            yield _Rate(limit_name, limit, whose, taking)
