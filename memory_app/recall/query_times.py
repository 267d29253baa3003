"""The times that a query names. They select by when something was said, and are taken out of the words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from memory_app.extraction.rules import Precision, resolve_dates
from memory_app.language.zones import zone_of

TOLD_AFTER = timedelta(days=7)
"""What happened at a date is told on it or in the days after it."""

_YEAR = re.compile(r"\d{4}")
_UNCLEAR = frozenset({Precision.SINCE, Precision.DURATION})
"""Spans that say how long, not when."""
_ANY_DAY = datetime(2000, 1, 1, tzinfo=UTC)


def named_periods(query: str, now: datetime, zone_name: str) -> tuple[tuple[datetime, datetime], ...]:
    """Return the times that the query names ("yesterday", "last March", "in July 2023"), as half-open instants."""
    zone = zone_of(zone_name)
    dates = [date for date in resolve_dates(query, now, zone=zone) if date.precision not in _UNCLEAR]
    try:
        return tuple(
            (
                _midnight(date.start, zone),
                _midnight(date.end, zone)
                + (TOLD_AFTER if _YEAR.search(query[slice(*date.span)]) else timedelta()),
            )
            for date in dates
        )
    except OverflowError:
        # The first or last day that a calendar can hold.
        return ()


def without_dates(query: str) -> str:
    """Return the query without its dates of a known year; the query itself where nothing else would be left.

    The day of a turn is among its words. A question about July would find whatever was said in July, goodbyes first.
    """
    rest, end = [], 0
    for named in resolve_dates(query, _ANY_DAY, zone=ZoneInfo("UTC")):
        start, stop = named.span
        if named.precision not in _UNCLEAR and _YEAR.search(query[start:stop]):
            rest.append(query[end:start])
            end = stop
    text = " ".join("".join((*rest, query[end:])).split())
    return text if any(map(str.isalnum, text)) else query


def in_periods(at: datetime, periods: Sequence[tuple[datetime, datetime]]) -> bool:
    return any(start <= at < until for start, until in periods)


def _midnight(day: date, zone: ZoneInfo) -> datetime:
    return datetime.combine(day, time(), tzinfo=zone).astimezone(UTC)
