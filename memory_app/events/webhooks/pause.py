"""When a delivery that failed is tried again, and when a webhook is given up. Pure."""

from __future__ import annotations

from datetime import datetime, timedelta
from random import Random

LONGEST_RETRY_AFTER_SECONDS = 3_600.0
"""A receiver may ask for a longer pause than ours, but not for silence."""


def pause_seconds(
    attempt: int, *, base_seconds: float, longest_seconds: float, retry_after: float | None, dice: Random
) -> float:
    """The seconds until the next try, after ``attempt`` (from 1) failed: doubled each time, with jitter of a half, and
    at least what the receiver asked for, up to an hour."""
    # 2**64 seconds are beyond any limit; larger powers only cost time.
    pause = min(longest_seconds, base_seconds * 2.0 ** min(attempt - 1, 64))
    pause *= dice.uniform(0.5, 1.0)
    return max(pause, min(retry_after or 0.0, LONGEST_RETRY_AFTER_SECONDS))


def is_given_up(failing_since: datetime | None, *, now: datetime, after: timedelta) -> bool:
    """Whether every try has failed for so long that no further one is made by itself."""
    return failing_since is not None and now - failing_since >= after
