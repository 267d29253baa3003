"""Values of files that nobody checked: each is read as what it should be, or as nothing. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta, tzinfo

from memory_app.language.characters import INVISIBLE
from memory_app.records.records import NewTurn, Role
from memory_app.records.scope import NAME_LIMIT
from memory_app.transfer.importers.records import Message, Omission, Reason

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_YEARS = range(1970, 2201)
_UNITS = ((1e11, 1e3), (1e14, 1e6), (1e17, 1e9))
"""From which number on a time counts how small parts of a second: as seconds, 1e11 would be the year 5138."""

_CONTROL = re.compile("[\x00-\x1f\x7f]")
"""What no name holds."""


def text_of(value: object) -> str:
    return value if isinstance(value, str) else ""


def list_of(value: object) -> Sequence[object]:
    return value if isinstance(value, list) else ()


def mapping_of(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}


def name_of(value: object) -> str | None:
    """A name as a speaker may have it; None where nothing is left of it."""
    # Programs put invisible marks of direction around names.
    visible = INVISIBLE.sub("", text_of(value))
    name = _CONTROL.sub("", visible).strip()[:NAME_LIMIT]
    return name or None


def id_of(value: object) -> str | None:
    """An id as text; None where there is none."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return text_of(value) or None


def instant_of(value: object, zone: tzinfo) -> datetime | None:
    """A time in ISO 8601, or seconds, milliseconds, microseconds or nanoseconds since 1970; None for anything else.

    ``zone`` is that of a time without one.
    """
    if isinstance(value, bool):
        return None
    text = text_of(value).strip()
    if text.isdecimal() and len(text) >= len("100000000"):
        value = int(text[:20])
    if isinstance(value, int | float):
        return _since_epoch(value)
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    return checked(at if at.tzinfo is not None else at.replace(tzinfo=zone))


def checked(at: datetime) -> datetime | None:
    """The time, or None for one that no chat can have."""
    try:
        at.utcoffset()
        return at if at.year in _YEARS else None
    except (OverflowError, ValueError):
        return None


def _since_epoch(number: float) -> datetime | None:
    # Zero stands for a time that nobody knows.
    if number <= 0:
        return None
    parts_of_second = 1.0
    for start, parts in _UNITS:
        if number >= start:
            parts_of_second = parts
    try:
        return checked(_EPOCH + timedelta(seconds=number / parts_of_second))
    except OverflowError:
        return None


def message(
    place: str,
    *,
    role: Role,
    text: str,
    at: datetime | None = None,
    speaker: str | None = None,
    id: str | None = None,
    speaks_freely: bool = False,
) -> Message | Omission:
    """The message, or why there is none."""
    if not text.strip():
        return Omission(place, Reason.EMPTY)
    turn = NewTurn(role=role, text=text, speaker=speaker, at=at)
    return Message(place, turn, id=id, speaks_freely=speaks_freely)


def branch(parents: Mapping[str, str | None], leaf: str) -> list[str]:
    """The ids from the root of a tree of messages to ``leaf``; a circle is cut where it closes."""
    path: dict[str, None] = {}
    current: str | None = leaf
    while current is not None and current in parents and current not in path:
        path[current] = None
        current = parents[current]
    return list(reversed(path))
