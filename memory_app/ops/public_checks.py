"""Share checks of the whole system between callers, who may ask without a key and any number of times."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from anyio import CapacityLimiter, to_thread

T = TypeVar("T")

# With threads of their own, so that a check that hangs takes none from the calls of tenants.
LOOKS = 2
"""Checks at the same time."""


@dataclass(slots=True)
class Looks:
    """Runs checks. Who asks while a check is under way gets its result, so that a thousand cost no more than one."""

    threads: CapacityLimiter = field(default_factory=lambda: CapacityLimiter(LOOKS))
    _under_way: dict[str, asyncio.Task[Any]] = field(default_factory=dict)

    async def see(self, name: str, look: Callable[[], T]) -> T:
        """What ``look``, called in a thread, returns or raises."""
        task = self._under_way.get(name)
        # A task can be awaited only in the event loop that made it.
        if task is None or task.done() or task.get_loop() is not asyncio.get_running_loop():
            task = asyncio.create_task(to_thread.run_sync(look, limiter=self.threads))
            self._under_way[name] = task
        # A caller who hangs up must not cancel the check for the others.
        result: T = await asyncio.shield(task)
        return result
