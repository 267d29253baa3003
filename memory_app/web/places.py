"""Share the room for calls fairly between tenants: one that calls much or slowly waits, and the others do not.

A call at work holds a thread and mostly a database connection. There are few of both, so the last free places go only
to tenants that hold hardly any, and waiting calls are served in turn by tenant.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from threading import Lock

from memory_app import metrics
from memory_app.errors import RateLimited, Transient

# A quarter of the places stays free for tenants that hold fewer than their base.
RESERVED_SHARE = 4

# An eighth of the places is a tenant's base, at least one.
BASE_SHARE = 8

RETRY_AFTER_SECONDS = 1.0


@dataclass(slots=True)
class InFlight:
    """Requests of each tenant, or whoever else is counted by a number, from their headers to the end of their answer;
    more than ``limit`` are refused."""

    limit: int
    what: str = "requests of this tenant"
    _counts: Counter[int] = field(default_factory=Counter)
    _lock: Lock = field(default_factory=Lock)

    @contextmanager
    def counted(self, tenant_id: int) -> Iterator[None]:
        """Count a request during the block. Raises `RateLimited`."""
        with self._lock:
            if self._counts[tenant_id] >= self.limit:
                raise RateLimited(
                    f"{self.limit} {self.what} are under way; wait for their answers",
                    retry_after=RETRY_AFTER_SECONDS,
                )
            self._counts[tenant_id] += 1
        try:
            yield
        finally:
            with self._lock:
                self._counts[tenant_id] -= 1
                # A process may meet any number of tenants.
                if not self._counts[tenant_id]:
                    del self._counts[tenant_id]


@dataclass(frozen=True, slots=True)
class _Waiter:
    loop: asyncio.AbstractEventLoop
    granted: asyncio.Future[None]

    def wake(self) -> None:
        # A future may be touched only in the thread of its own loop.
        self.loop.call_soon_threadsafe(self._grant)

    def _grant(self) -> None:
        # The call may have been cancelled since; then it gives the place back itself.
        if not self.granted.done():
            self.granted.set_result(None)


@dataclass(slots=True)
class Places:
    """``total`` places for calls at work. A call waits ``patience_seconds`` for one. Safe between event loops."""

    total: int
    patience_seconds: float
    _held: Counter[int] = field(default_factory=Counter)
    _waiting: dict[int, deque[_Waiter]] = field(default_factory=dict)
    """By tenant, in the order in which they are served."""
    _lock: Lock = field(default_factory=Lock)

    @asynccontextmanager
    async def held(self, tenant_id: int) -> AsyncIterator[None]:
        """Hold a place during the block. Raises `Transient` when none became free in time."""
        with metrics.timed(metrics.place_seconds):
            await self._take(tenant_id)
        try:
            yield
        finally:
            self._give_back(tenant_id)

    async def _take(self, tenant_id: int) -> None:
        loop = asyncio.get_running_loop()
        with self._lock:
            if self._may_start(tenant_id):
                self._held[tenant_id] += 1
                return
            waiter = _Waiter(loop, loop.create_future())
            self._waiting.setdefault(tenant_id, deque()).append(waiter)
        try:
            async with asyncio.timeout(self.patience_seconds):
                await waiter.granted
        except TimeoutError:
            self._withdraw(tenant_id, waiter)
            metrics.limited.labels("places").inc()
            raise Transient(
                "too much is under way here; send the same again", retry_after=RETRY_AFTER_SECONDS
            ) from None
        except BaseException:
            # A cancellation is no Exception, and would leave the waiter in the queue.
            self._withdraw(tenant_id, waiter)
            raise

    def _withdraw(self, tenant_id: int, waiter: _Waiter) -> None:
        with self._lock:
            waiters = self._waiting.get(tenant_id, deque())
            if waiter in waiters:
                waiters.remove(waiter)
                if not waiters:
                    del self._waiting[tenant_id]
                return
        # It was granted in the same moment.
        self._give_back(tenant_id)

    def _give_back(self, tenant_id: int) -> None:
        with self._lock:
            self._held[tenant_id] -= 1
            if not self._held[tenant_id]:
                del self._held[tenant_id]
            while (tenant := self._next_tenant()) is not None:
                waiters = self._waiting.pop(tenant)
                waiter = waiters.popleft()
                # Back at the end of the dictionary, so that the other tenants come first.
                if waiters:
                    self._waiting[tenant] = waiters
                self._held[tenant] += 1
                waiter.wake()

    def _next_tenant(self) -> int | None:
        return next((tenant for tenant in self._waiting if self._may_start(tenant)), None)

    def _may_start(self, tenant_id: int) -> bool:
        free = self.total - self._held.total()
        is_below_base = self._held[tenant_id] < max(1, self.total // BASE_SHARE)
        return free > (0 if is_below_base else self.total // RESERVED_SHARE)
