"""Find the words for a time in a clause, by the tables of a pack, and reckon the day on which it begins."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta

from memory_app.extraction.rules.packs.format import DateRule
from memory_app.extraction.rules.packs.pack import Pack
from memory_app.language.calendar import add_months


@dataclass(frozen=True, slots=True)
class StartDay:
    """The day on which a time begins; ``text`` is that day, its month or its year, as exact as it was said."""

    start: date
    text: str
    since: bool


@dataclass(frozen=True, slots=True)
class DateMatch:
    """Words for a time in a clause: the rule that reads them, and their place."""

    rule: DateRule
    groups: Mapping[str, str]
    span: tuple[int, int]


def find_date(pack: Pack, clause: str) -> DateMatch | None:
    """The first words for a time in ``clause``, and of several that begin there the longest."""
    best: tuple[int, int, DateRule, re.Match[str]] | None = None
    for rule, pattern in pack.dates:
        match = pattern.search(clause)
        if match is None:
            continue
        key = (match.start(), -match.end())
        if best is None or key < best[:2]:
            best = (*key, rule, match)
    if best is None:
        return None
    _, _, rule, match = best
    groups = {name: text.lower() for name, text in match.groupdict(default="").items()}
    return DateMatch(rule, groups, match.span())


def resolve(pack: Pack, words: DateMatch, *, today: date, future: bool) -> StartDay | None:
    """Reckon the day. ``future`` decides what looks both ways. None for a date that cannot be."""
    try:
        return _resolve(pack, words, today, future)
    except (ValueError, OverflowError):
        return None


def _resolve(pack: Pack, words: DateMatch, today: date, future: bool) -> StartDay | None:
    rule, groups = words.rule, words.groups
    if groups.get("month"):
        return _of_month(pack, words, today, future and not rule.since)
    if groups.get("year"):
        year = int(groups["year"])
        return StartDay(date(year, 1, 1), str(year), rule.since)
    if groups.get("weekday"):
        distance = (pack.weekdays[groups["weekday"]] - today.weekday()) % 7
        ahead = rule.step > 0 if rule.step else future
        day = today + timedelta(days=distance or 7) if ahead else today - timedelta(days=7 - distance)
        return StartDay(day, day.isoformat(), rule.since)
    if rule.days is not None:
        day = today + timedelta(days=rule.days)
        return StartDay(day, day.isoformat(), rule.since)
    if rule.step is None:
        return None
    unit = rule.unit or pack.units[groups["unit"]]
    return _away(today, _count(pack, groups) * rule.step, unit, rule.since)


def _count(pack: Pack, groups: Mapping[str, str]) -> int:
    text = groups.get("count") or groups.get("number") or "1"
    return int(text) if text.isdigit() else pack.numbers[text]


def _away(today: date, count: int, unit: str, since: bool) -> StartDay:
    if unit == "year":
        day = add_months(today, 12 * count)
        return StartDay(day.replace(month=1, day=1), str(day.year), since)
    if unit == "month":
        day = add_months(today, count).replace(day=1)
        return StartDay(day, f"{day:%Y-%m}", since)
    day = today + timedelta(days=count if unit == "day" else 7 * count)
    return StartDay(day, day.isoformat(), since)


def _of_month(pack: Pack, words: DateMatch, today: date, future: bool) -> StartDay:
    groups = words.groups
    month = pack.months[groups["month"]]
    day = int(groups.get("date_day") or 1)
    if groups.get("year"):
        start = date(int(groups["year"]), month, day)
    else:
        start = date(today.year, month, day)
        if future and start < today.replace(day=1):
            start = start.replace(year=today.year + 1)
        elif not future and start > today:
            start = start.replace(year=today.year - 1)
    text = start.isoformat() if groups.get("date_day") else f"{start:%Y-%m}"
    return StartDay(start, text, words.rule.since)


def month_and_day(pack: Pack, text: str) -> str | None:
    """A birthday in ISO form, with its year where it is named; None for a day that cannot be."""
    words = re.findall(r"\d+|[^\W\d_]+", text.lower())
    month = next((pack.months[word] for word in words if word in pack.months), None)
    numbers = [int(word) for word in words if word.isdigit()]
    if not numbers:
        return None
    day = numbers.pop(0)
    if month is None:
        month = numbers.pop(0) if numbers else 0
    year = numbers[0] if numbers else None
    try:
        # 2000 had a 29 February.
        start = date(year or 2000, month, day)
    except ValueError:
        return None
    return start.isoformat() if year else f"{start:%m-%d}"
