"""When a call is tried again, and after which pause. Pure but for the jitter."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from memory_app.client.call import Call
from memory_app.errors import MemoryAppError, NotSent, RateLimited, RequestTooSlow, Transient


@dataclass(frozen=True, slots=True)
class Retries:
    """``attempts`` counts the first one; 1 never tries again. Times are in seconds.

    The pause grows from ``first_seconds`` to ``longest_seconds``, half of it by chance, so that clients which failed
    together do not come back together. A Retry-After is waited for, unless it is longer than ``patience_seconds``: then
    the error is raised at once, and carries it.
    """

    attempts: int = 5
    first_seconds: float = 0.25
    longest_seconds: float = 8.0
    patience_seconds: float = 30.0

    def pause(self, error: MemoryAppError, call: Call[Any], *, attempt: int) -> float | None:
        """Seconds until the next attempt after the failed ``attempt`` (from 1); None: raise the error."""
        if attempt >= self.attempts or not _may_pass(error, call):
            return None
        after = error.retry_after or 0.0
        if after > self.patience_seconds:
            return None
        # 2 to the 30 would be no pause that anybody waits for, and larger powers no float.
        grown: float = min(self.first_seconds * 2.0 ** min(attempt - 1, 30), self.longest_seconds)
        return after + grown * random.uniform(0.5, 1.0)


def _may_pass(error: MemoryAppError, call: Call[Any]) -> bool:
    # These were refused before anything was done.
    if isinstance(error, NotSent | RateLimited | RequestTooSlow):
        return True
    # After others nobody knows whether it was done: a commit, or the answer, may have been lost on the way.
    return isinstance(error, Transient) and call.is_repeatable
