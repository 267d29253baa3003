"""Find the words for a time in a clause, by the tables of a pack, and reckon the day on which it begins."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Literal

from memory_app.extraction.rules.packs.format import DateRule
from memory_app.extraction.rules.packs.pack import Pack
from memory_app.extraction.rules.packs.required_words import may_fit, words_of
from memory_app.language.calendar import add_months

_DAYS: Mapping[str, int] = {"day": 1, "week": 7}
"""Days of the units whose length does not change."""


@dataclass(frozen=True, slots=True)
class StartDay:
    """The day on which a time begins; ``text`` is that day, its month or its year, as exact as it was said.

    ``until`` is the last day of a time that has one: "from 4 to 11 July". A week has the ``text`` of a day in it.
    """

    start: date
    text: str
    since: bool
    until: date | None = None
    exactness: Literal["day", "week", "month", "year"] = "day"


@dataclass(frozen=True, slots=True)
class DateMatch:
    """Words for a time in a clause: the rule that reads them, and their place."""

    rule: DateRule
    groups: Mapping[str, str]
    span: tuple[int, int]


def find_date(pack: Pack, clause: str) -> DateMatch | None:
    """The first words for a time in ``clause``, and of several that begin there the longest."""
    words = words_of(clause)
    candidates = (date_rule for date_rule in pack.dates if may_fit(date_rule.needs, words))
    searches = ((candidate.rule, candidate.pattern.search(clause)) for candidate in candidates)
    hits = [(rule, match) for rule, match in searches if match is not None]
    if not hits:
        return None
    rule, match = min(hits, key=lambda hit: (hit[1].start(), -hit[1].end()))
    groups = {name: text.lower() for name, text in match.groupdict(default="").items()}
    return DateMatch(rule, groups, match.span())


def resolve(pack: Pack, match: DateMatch, *, today: date, future: bool) -> StartDay | None:
    """Reckon the day. ``future`` decides what looks both ways. None for a date that cannot be."""
    try:
        return _resolve(pack, match, today, future)
    except (ValueError, OverflowError):
        return None


def _resolve(pack: Pack, match: DateMatch, today: date, future: bool) -> StartDay | None:
    rule, groups = match.rule, match.groups
    if groups.get("month"):
        # "Since May" looks back even in a plan.
        return _of_month(pack, match, today, future and not rule.since)
    if groups.get("date_day") and not groups.get("weekday"):
        day = _nearest_of_month(today, int(groups["date_day"]), future)
        return _day(day, rule.since)
    if groups.get("year"):
        day = date(int(groups["year"]), 1, 1)
        return _year(day, rule.since)
    if groups.get("weekday"):
        day = _of_weekday(pack, match, today, future)
        return _day(day, rule.since)
    if rule.days is not None:
        day = today + timedelta(days=rule.days)
        return _day(day, rule.since)
    if rule.step is not None:
        return _of_steps(pack, match, today, rule.step)
    return None


def _day(day: date, since: bool) -> StartDay:
    return StartDay(day, day.isoformat(), since)


def _days(day: date, until: date, since: bool) -> StartDay | None:
    if until < day:
        return None
    return StartDay(day, f"{day.isoformat()} \u2013 {until.isoformat()}", since, until)


def _month(day: date, since: bool) -> StartDay:
    first = day.replace(day=1)
    return StartDay(first, f"{first:%Y-%m}", since, exactness="month")


def _year(day: date, since: bool) -> StartDay:
    first = day.replace(month=1, day=1)
    return StartDay(first, str(first.year), since, exactness="year")


def _of_month(pack: Pack, match: DateMatch, today: date, future: bool) -> StartDay | None:
    """A month, or a day of it, with its year or without."""
    groups = match.groups
    month = pack.months[groups["month"]]
    number = int(groups.get("date_day") or 1)
    if groups.get("year"):
        day = date(int(groups["year"]), month, number)
    else:
        day = _nearest(date(today.year, month, number), today, future)
    if groups.get("date_day2"):
        return _days(day, day.replace(day=int(groups["date_day2"])), match.rule.since)
    if groups.get("date_day"):
        return _day(day, match.rule.since)
    return _month(day, match.rule.since)


def _nearest_of_month(today: date, number: int, future: bool) -> date:
    """The day with that number in this month, or in the next or last where it lies on the wrong side of ``today``."""
    day = today.replace(day=number)
    if future and day < today:
        return add_months(today.replace(day=1), 1).replace(day=number)
    if not future and day > today:
        return add_months(today.replace(day=1), -1).replace(day=number)
    return day


def _nearest(day: date, today: date, future: bool) -> date:
    """A day of this year, moved by a year where it lies on the wrong side of ``today``."""
    if future:
        # A day of the current month may still be meant, though it is over.
        this_month = today.replace(day=1)
        if day < this_month:
            return day.replace(year=today.year + 1)
        return day
    if day > today:
        return day.replace(year=today.year - 1)
    return day


def _of_weekday(pack: Pack, match: DateMatch, today: date, future: bool) -> date:
    """The next or the last day of that name, which is never today itself."""
    weekday = pack.weekdays[match.groups["weekday"]]
    distance = (weekday - today.weekday()) % 7
    step = match.rule.step
    is_ahead = step > 0 if step else future
    if is_ahead:
        return today + timedelta(days=distance or 7)
    return today - timedelta(days=7 - distance)


def _of_steps(pack: Pack, match: DateMatch, today: date, step: int) -> StartDay:
    """What lies some units before or after ``today``: "three weeks ago", "next month"."""
    groups, since = match.groups, match.rule.since
    unit = match.rule.unit or pack.units[groups["unit"]]
    count = groups.get("count") or groups.get("number") or "1"
    steps = step * pack.number(count)
    if unit == "year":
        return _year(add_months(today, 12 * steps), since)
    if unit == "month":
        return _month(add_months(today, steps), since)
    day = today + timedelta(days=steps * _DAYS[unit])
    is_named_week = unit == "week" and "number" not in groups
    return replace(_day(day, since), exactness="week" if is_named_week else "day")


def month_and_day(pack: Pack, text: str) -> str | None:
    """A birthday in ISO form, with its year where it is named; None for a day that cannot be."""
    words = re.findall(r"\d+|[^\W\d_]+", text.lower())
    named_month = next((pack.months[word] for word in words if word in pack.months), None)
    numbers = iter([int(word) for word in words if word.isdigit()])
    # No day and no month has the number 0.
    day = next(numbers, 0)
    month = named_month or next(numbers, 0)
    year = next(numbers, 0)
    try:
        # 2000 had a 29 February.
        birthday = date(year or 2000, month, day)
    except ValueError:
        return None
    if year:
        return birthday.isoformat()
    return f"{birthday:%m-%d}"
