"""Numbers that were read from the database a moment ago, and what this process added since."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, TypeVar

Value = TypeVar("Value")

ENTRIES_LIMIT = 10_000


@dataclass(slots=True)
class Recent:
    """Values by key, each for some seconds. Safe between threads, which may read one value at the same time."""

    clock: Callable[[], float] = time.monotonic
    _values: dict[Hashable, tuple[float, Any]] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def read(self, key: Hashable, *, seconds: float, look: Callable[[], Value]) -> Value:
        """The value of ``key``, at most ``seconds`` old; ``look`` reads it anew."""
        now = self.clock()
        with self._lock:
            read_at, value = self._values.get(key, (now - seconds, None))
        if now - read_at < seconds:
            known: Value = value
            return known
        # Outside of the lock, so that nobody waits for another's query.
        value = look()
        with self._lock:
            # Simpler than to find the oldest, and it costs each key one more look.
            if len(self._values) >= ENTRIES_LIMIT:
                self._values.clear()
            self._values[key] = (now, value)
        return value

    def add(self, key: Hashable, count: int) -> None:
        """Add to a number that is known, so that it holds for what this process does until it is read again."""
        with self._lock:
            if key in self._values:
                read_at, value = self._values[key]
                self._values[key] = (read_at, value + count)
