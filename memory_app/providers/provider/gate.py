"""What stands before every call of a provider: a shared rate limit and a shared circuit breaker.

Both live in Redis, which models do not know; the wiring hands them in as functions. Both let everything through
when Redis is away. The limit stands outside the breaker: waiting our own turn is no failure of the provider.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Protocol

from memory_app import metrics
from memory_app.errors import MemoryAppError, RateLimited


class Verdict(Protocol):
    @property
    def allowed(self) -> bool: ...

    @property
    def retry_after_seconds(self) -> float: ...


class Take(Protocol):
    """Takes ``cost`` from the bucket ``name``, as `memory_app.hot.limits.take` does."""

    def __call__(self, name: str, *, rate_per_second: float, burst: float, cost: float) -> Verdict: ...


Passage = Callable[[int], AbstractContextManager[Callable[[int], None]]]
"""Entered with the tokens a call is about to send. Gives a function that notes the tokens that came back.

Raises `RateLimited` or `CircuitOpen` instead of letting the call through; sees the call's own error.
"""


@dataclass(frozen=True, slots=True)
class Rates:
    """Of one provider, over all processes; 0 means no limit. A bucket holds what ``burst_seconds`` bring."""

    requests_per_minute: float = 0.0
    tokens_per_minute: float = 0.0
    burst_seconds: float = 10.0
    patience_seconds: float = 5.0
    """Waited for a turn before `RateLimited` sends the work back."""


@contextmanager
def open_gate(tokens: int) -> Iterator[Callable[[int], None]]:
    """No limit, no breaker."""
    yield lambda spent: None


class Gate:
    """A `Passage` of one provider ``name``. ``guarded`` is entered around the call, as `hot.breaker.guarded` is."""

    def __init__(
        self,
        name: str,
        *,
        take: Take,
        guarded: Callable[[], AbstractContextManager[None]],
        rates: Rates = Rates(),
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._name = name
        self._take = take
        self._guarded = guarded
        self._rates = rates
        self._sleep = sleep

    @contextmanager
    def __call__(self, tokens: int) -> Iterator[Callable[[int], None]]:
        outcome = "error"
        try:
            with self._passed(tokens) as spend, metrics.timed(metrics.model_seconds, self._name):
                yield spend
            outcome = "ok"
        except MemoryAppError as error:
            outcome = error.kind
            raise
        finally:
            metrics.model_calls.labels(self._name, outcome).inc()

    @contextmanager
    def _passed(self, tokens: int) -> Iterator[Callable[[int], None]]:
        """Behind limits and breaker."""
        patience = self._wait_for(
            f"{self._name}:requests",
            per_minute=self._rates.requests_per_minute,
            cost=1,
            patience=self._rates.patience_seconds,
        )
        self._wait_for(
            f"{self._name}:tokens",
            per_minute=self._rates.tokens_per_minute,
            cost=tokens,
            patience=patience,
        )
        with self._guarded():
            yield self._spend

    def _wait_for(self, bucket: str, *, per_minute: float, cost: float, patience: float) -> float:
        """Take ``cost``, waiting at most ``patience`` seconds, and return what is over of it."""
        while per_minute:
            verdict = self._draw(bucket, per_minute, cost)
            if verdict.allowed:
                break
            # A wait that was rounded to nothing would ask Redis in a circle.
            pause = max(verdict.retry_after_seconds, 0.01)
            if pause > patience:
                raise RateLimited(f"{self._name}: the limit of our own is reached", retry_after=pause)
            self._sleep(pause)
            patience -= pause
        return patience

    def _spend(self, tokens: int) -> None:
        """What came back counts too. It is spent already, so a bucket that lacks it is emptied."""
        per_minute = self._rates.tokens_per_minute
        if not per_minute or tokens <= 0:
            return
        bucket = f"{self._name}:tokens"
        verdict = self._draw(bucket, per_minute, tokens)
        if not verdict.allowed:
            # How long it would take to fill up tells how much is in it.
            rest = min(tokens, self._burst(per_minute)) - verdict.retry_after_seconds * per_minute / 60
            self._draw(bucket, per_minute, max(rest, 0.0))

    def _burst(self, per_minute: float) -> float:
        return max(per_minute * self._rates.burst_seconds / 60, 1.0)

    def _draw(self, bucket: str, per_minute: float, cost: float) -> Verdict:
        burst = self._burst(per_minute)
        return self._take(bucket, rate_per_second=per_minute / 60, burst=burst, cost=cost)
