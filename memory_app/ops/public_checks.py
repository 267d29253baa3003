"""Looks at the whole system that anybody may ask for, without a key and any number of times."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from anyio import CapacityLimiter, to_thread

T = TypeVar("T")

LOOKS = 2
"""Looks at the same time. They have threads and connections that calls do not take."""


@dataclass(slots=True)
class Looks:
    """Whoever asks while a look is under way gets what it sees, so that a thousand who ask cost no more than one."""

    threads: CapacityLimiter = field(default_factory=lambda: CapacityLimiter(LOOKS))
    _under_way: dict[str, asyncio.Task[Any]] = field(default_factory=dict)

    async def see(self, name: str, look: Callable[[], T]) -> T:
        """What ``look``, called in a thread, returns or raises."""
        task = self._under_way.get(name)
        if task is None or task.done() or task.get_loop() is not asyncio.get_running_loop():
            task = asyncio.create_task(to_thread.run_sync(look, limiter=self.threads))
            self._under_way[name] = task
        # One who hangs up takes nothing from the others.
        seen: T = await asyncio.shield(task)
        return seen
