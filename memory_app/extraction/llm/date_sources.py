"""Tell whether a date in a statement comes from its evidence: written there, or worked out from its words. Pure.

A model turns "last Friday" into a date, and it also copies dates from the example of a prompt or makes them up.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import date, timedelta
from zoneinfo import ZoneInfo

from memory_app.extraction.rules import ResolvedDate, resolve_dates
from memory_app.extraction.rules.clauses import own_words
from memory_app.records.records import Turn

NEAR_DAYS = 400
"""A full date this near to the turn may have been worked out from words for time in any language."""

_DATE = re.compile(
    r"(?<![\d-])(?P<year>1[5-9]\d\d|20\d\d|21\d\d)(?:-(?P<month>\d\d)(?:-(?P<day>\d\d))?)?(?![\d-])"
)


def has_unsourced_date(text: str, turns: Sequence[Turn], *, samples: Sequence[str], zone: ZoneInfo) -> bool:
    """Whether ``text`` names a year or day that no turn says and that cannot have been worked out from one.

    ``samples`` are the prompt's examples: a date of theirs is no source, however near it is.
    """
    dates = _DATE.finditer(text)
    return any(not _is_sourced(named, turns, samples=samples, zone=zone) for named in dates)


def _is_sourced(
    named: re.Match[str], turns: Sequence[Turn], *, samples: Sequence[str], zone: ZoneInfo
) -> bool:
    texts = [own_words(turn.text) for turn in turns]
    # All turns for the date as it is written, before any of them is looked at for words that may mean it.
    if _holds(texts, named[0]):
        return True
    for turn, text in zip(turns, texts, strict=True):
        if _can_be_resolved(named, text, turn=turn, zone=zone):
            return True
        # Words for time in another language, which the rules do not read, may mean a day that is near.
        day_of_turn = turn.at.astimezone(zone).date()
        if _is_near(named, day_of_turn):
            return not _holds(samples, named[0])
    return False


def _holds(texts: Iterable[str], part: str) -> bool:
    return any(part in text for text in texts)


def _can_be_resolved(named: re.Match[str], text: str, *, turn: Turn, zone: ZoneInfo) -> bool:
    """Whether words for time in ``text`` mean the date that was named."""
    # Whether a turn speaks of the past or of plans is not known here, so both readings count:
    # "on Friday" is the last one or the next.
    dates = (
        *resolve_dates(text, turn.at, zone=zone),
        *resolve_dates(text, turn.at, zone=zone, future=True),
    )
    return any(_means(resolved, named[0]) for resolved in dates)


def _means(resolved: ResolvedDate, words: str) -> bool:
    """Whether the date that words for time were resolved to is the one that ``words`` name."""
    if words in resolved.bare:
        return True
    # A year or a month is a shorter form of the day on which it begins.
    return resolved.start.isoformat().startswith(words)


def _is_near(named: re.Match[str], local: date) -> bool:
    """A day within reach of words like "yesterday"; a year alone must be that of the turn or a neighbour."""
    year = int(named["year"])
    if named["month"] is None:
        return abs(year - local.year) <= 1
    month = int(named["month"])
    day_of_month = int(named["day"] or 1)
    try:
        day = date(year, month, day_of_month)
    except ValueError:
        # The pattern knows digits only, so it takes a month 13 or a day 32.
        return False
    return abs(day - local) <= timedelta(days=NEAR_DAYS)
