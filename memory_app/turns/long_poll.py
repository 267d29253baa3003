"""Wait for background work on behalf of a caller over HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from memory_app.turns import tickets
from memory_app.web.auth import Call

T = TypeVar("T")


async def wait_for(call: Call, look: Callable[[], T], *, is_over: Callable[[T], bool], seconds: float) -> T:
    """What ``look`` sees once it is over, or when ``seconds`` have passed. Raises `RateLimited`, and as ``look``."""
    state = await call.work(look)
    if seconds <= 0 or is_over(state):
        return state
    with tickets.waiting(call.tenant_id):
        for pause in tickets.pauses(seconds):
            # No thread, place or connection is held meanwhile.
            await asyncio.sleep(pause)
            state = await call.work(look)
            if is_over(state):
                break
    return state
