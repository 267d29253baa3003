"""Look up time zones by name, as users set them, or by an offset such as "+09:00", as times carry them."""

from __future__ import annotations

import re
import struct
from datetime import datetime, timedelta
from functools import cache
from io import BytesIO
from zoneinfo import ZoneInfo

_OFFSET = re.compile(r"(?P<sign>[+-])(?P<hours>0\d|1[0-4]):(?P<minutes>[0-5]\d)")

_TOLD_OFFSET = re.compile(
    r"(?:UTC|GMT) ?(?P<sign>[+\-−])(?P<hours>0?\d|1[0-4])(?::?(?P<minutes>[0-5]\d))?", re.IGNORECASE
)


def zone_of(name: str) -> ZoneInfo:
    """Return the time zone; UTC for a name that is none."""
    return find_zone(name) or ZoneInfo("UTC")


def find_zone(name: str) -> ZoneInfo | None:
    """Return the time zone, or None for a name that is none: "Asia/Seoul", or an offset as "+09:00"."""
    offset = _OFFSET.fullmatch(name)
    if offset is not None:
        minutes = int(offset["hours"]) * 60 + int(offset["minutes"])
        return _fixed(name, minutes if offset["sign"] == "+" else -minutes)
    try:
        return ZoneInfo(name)
    # An absolute path or one with ".." is a ValueError; a folder of zones ("America") cannot be opened as one.
    except (KeyError, ValueError, OSError):
        return None


def told_zone(words: str) -> str | None:
    """The name of a zone as somebody says it, "Asia/Tokyo" or "UTC+9"; None for what names none."""
    told = _TOLD_OFFSET.fullmatch(words.strip())
    if told is not None:
        words = f"{told['sign'].replace('−', '-')}{int(told['hours']):02}:{told['minutes'] or '00'}"
    name = words.strip()
    return name if find_zone(name) is not None else None


def offset_of(at: datetime) -> str | None:
    """Return the offset of a time as "+09:00"; None for a time without a zone, or with an offset of seconds."""
    offset = at.utcoffset()
    if offset is None or offset % timedelta(minutes=1):
        return None
    sign = "-" if offset < timedelta(0) else "+"
    hours, minutes = divmod(abs(offset) // timedelta(minutes=1), 60)
    return f"{sign}{hours:02}:{minutes:02}"


@cache
def _fixed(name: str, minutes: int) -> ZoneInfo:
    """A zone of one offset, read from the smallest file of RFC 8536: named zones have no half hours."""
    # One type of local time: its offset, no summer time, and its abbreviation at place 0 of the names that follow.
    body = struct.pack(">lbb", minutes * 60, 0, 0) + b"fix\0"
    counts = struct.pack(">6l", 0, 0, 0, 0, 1, 4)
    header = b"TZif2" + bytes(15) + counts
    # What holds after the last transition, of which there is none; its sign is that of POSIX, west being positive.
    hours, rest = divmod(abs(minutes), 60)
    rule = f"<fix>{'-' if minutes > 0 else '+'}{hours:02}:{rest:02}"
    return ZoneInfo.from_file(BytesIO(header + body + header + body + f"\n{rule}\n".encode()), key=name)
