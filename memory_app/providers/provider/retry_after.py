"""How long a server asks its callers to wait."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

LONGEST_WAIT_SECONDS = 3600.0
"""A Retry-After beyond this is cut: nobody knows today what the server does tomorrow."""


def retry_after(headers: Mapping[str, str], *, now: datetime) -> float | None:
    """Return the seconds that a server asks to wait, at most `LONGEST_WAIT_SECONDS`; None when it names none."""
    header = headers.get("retry-after")
    seconds = None if header is None else _seconds(header, now)
    # A date may have passed by the time it is read.
    return None if seconds is None else min(max(seconds, 0.0), LONGEST_WAIT_SECONDS)


def _seconds(header: str, now: datetime) -> float | None:
    """The header as seconds, in either of its two forms: a number, or a date."""
    try:
        seconds = float(header)
    except ValueError:
        return _seconds_until(header, now)
    return seconds if math.isfinite(seconds) else None


def _seconds_until(header: str, now: datetime) -> float | None:
    try:
        at = parsedate_to_datetime(header)
    except ValueError:
        return None
    # A date in "-0000" has no zone in Python; HTTP knows only UTC.
    aware = at if at.tzinfo else at.replace(tzinfo=UTC)
    return (aware - now).total_seconds()
