"""Patience with a database that is away while something is on loan from it.

A start is counted before the work and explained after it, because nothing runs after SIGKILL. A worker that survives
an outage of the database explains its start as soon as it can; otherwise three outages would look like three deaths,
and an innocent turn would be quarantined.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from memory_app.errors import StoreUnavailable

PAUSE_SECONDS = 0.5


def give_back(give: Callable[[], None], *, within_seconds: float) -> None:
    """Call ``give`` until it succeeds or the loan has run out anyway; then raises the last `StoreUnavailable`."""
    deadline = time.monotonic() + within_seconds
    while True:
        try:
            return give()
        except StoreUnavailable:
            if time.monotonic() + PAUSE_SECONDS > deadline:
                raise
            time.sleep(PAUSE_SECONDS)
