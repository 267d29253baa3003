"""Look up time zones by name, as users set them."""

from __future__ import annotations

from zoneinfo import ZoneInfo, ZoneInfoNotFoundError


def zone_of(name: str) -> ZoneInfo:
    """Return the time zone; UTC for a name that is none."""
    try:
        return ZoneInfo(name)
    # An absolute path or one with ".." is a ValueError.
    except (ZoneInfoNotFoundError, ValueError):
        return ZoneInfo("UTC")
