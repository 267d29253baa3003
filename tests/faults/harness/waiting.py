"""Waiting for a condition, never for a time."""

from __future__ import annotations

import time
from collections.abc import Callable

POLL_SECONDS = 0.05
PATIENCE = 4
"""How much longer than on a quiet machine something may take. What it took is recorded; only the count of it fails."""


def wait_until(condition: Callable[[], object], description: str, *, seconds: float) -> float:
    """Seconds until ``condition()`` was true; fails with ``description`` after ``seconds`` times `PATIENCE`."""
    began = time.monotonic()
    while not condition():
        if time.monotonic() - began > seconds * PATIENCE:
            raise AssertionError(f"{description}: not within {seconds * PATIENCE:g} s")
        time.sleep(POLL_SECONDS)
    return time.monotonic() - began


def wait_for_more(count: Callable[[], int], more: int, description: str, *, seconds: float) -> float:
    """Seconds until ``count()`` has grown by ``more`` from what it is now."""
    goal = count() + more
    return wait_until(lambda: count() >= goal, description, seconds=seconds)
