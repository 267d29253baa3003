"""Words for time, resolved to calendar dates of the speaker.

``resolve_dates`` reads one sentence or question and answers which dates it names, seen from the moment it was
said and in the speaker's time zone. It is used at capture and for the temporal words of a question. Intervals
are half-open. A date that cannot exist, or is ambiguous such as 5/6/2023, is left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from enum import StrEnum
from zoneinfo import ZoneInfo

from memory_app.extraction.rules.date_forms import CUE, FORMS, PATTERN
from memory_app.language.calendar import COUNTS, MONTH_NUMBERS, MONTHS, SEASONS, WEEKDAY_NUMBERS, add_months


class Precision(StrEnum):
    """How exactly a date is known. ``since`` and ``duration`` end on the day it was said."""

    DAY = "day"
    WEEKEND = "weekend"
    WEEK = "week"
    MONTH = "month"
    SEASON = "season"
    YEAR = "year"
    SINCE = "since"
    DURATION = "duration"


@dataclass(frozen=True, slots=True)
class ResolvedDate:
    """``text[span[0]:span[1]]`` names the days from ``start`` to ``end`` (exclusive).

    ``bare`` is the absolute date in words ("2023-05-07", "March 2023"), ``phrase`` the same with its
    preposition ("on 2023-05-07"), to be put in the place of the relative words.
    """

    span: tuple[int, int]
    start: date
    end: date
    precision: Precision
    bare: str
    phrase: str


@dataclass(frozen=True, slots=True)
class _Found:
    start: date
    end: date
    precision: Precision
    bare: str
    phrase: str


@dataclass(frozen=True, slots=True)
class _Moment:
    today: date
    future: bool


def resolve_dates(
    text: str, at: datetime, *, zone: ZoneInfo, future: bool = False
) -> tuple[ResolvedDate, ...]:
    """The dates named in ``text``, in order, without overlaps.

    ``at`` is when it was said (aware). ``future`` decides words that look both ways ("on Monday", "in March"):
    the next one instead of the last one. Work is linear in the length of ``text``.
    """
    if not CUE.search(text):
        return ()
    moment = _Moment(at.astimezone(zone).date(), future)
    resolved = (_resolve(match, moment) for match in PATTERN.finditer(text))
    return tuple(found for found in resolved if found is not None)


def _resolve(match: re.Match[str], moment: _Moment) -> ResolvedDate | None:
    form = "span" if match["span"] else next(name for name in FORMS if match[name] is not None)
    if match["since"]:
        moment = _Moment(moment.today, False)
    try:
        found = _RESOLVERS[form](match, moment)
    except (ValueError, OverflowError):  # 31 February, or a century out of the calendar's reach
        return None
    if found is None:
        return None
    if match["since"]:
        found = _begun(found, moment)
    span = match.span()
    return ResolvedDate(span, found.start, found.end, found.precision, found.bare, found.phrase)


def _begun(found: _Found, moment: _Moment) -> _Found:
    end = moment.today + timedelta(days=1)
    return _Found(found.start, end, Precision.SINCE, found.bare, f"since {found.bare}")


def _day(day: date, *, part: str = "") -> _Found:
    bare = day.isoformat()
    phrase = f"on the night of {bare}" if part == "night" else f"on {bare}"
    return _Found(day, day + timedelta(days=1), Precision.DAY, bare, phrase)


def _week(day: date) -> _Found:
    monday = day - timedelta(days=day.weekday())
    bare = f"the week of {monday.isoformat()}"
    return _Found(monday, monday + timedelta(days=7), Precision.WEEK, bare, f"in {bare}")


def _weekend(day: date, weeks: int = 0) -> _Found:
    saturday = day - timedelta(days=day.weekday()) + timedelta(days=5, weeks=weeks)
    bare = f"the weekend of {saturday.isoformat()}"
    return _Found(saturday, saturday + timedelta(days=2), Precision.WEEKEND, bare, f"on {bare}")


def _month(year: int, month: int) -> _Found:
    start = date(year, month, 1)
    bare = f"{MONTHS[month - 1]} {year}"
    return _Found(start, add_months(start, 1), Precision.MONTH, bare, f"in {bare}")


def _year(year: int) -> _Found:
    return _Found(date(year, 1, 1), date(year + 1, 1, 1), Precision.YEAR, str(year), f"in {year}")


def _season(name: str, year: int) -> _Found:
    name = "autumn" if name == "fall" else name
    start = date(year, SEASONS[name], 1)
    bare = f"the {name} of {year}"
    return _Found(start, add_months(start, 3), Precision.SEASON, bare, f"in {bare}")


def _from_iso(m: re.Match[str], _: _Moment) -> _Found:
    return _day(date(int(m["iso_y"]), int(m["iso_m"]), int(m["iso_d"])))


def _from_slash(m: re.Match[str], _: _Moment) -> _Found | None:
    first, second = int(m["sl_a"]), int(m["sl_b"])
    if first <= 12 and second <= 12 and first != second:
        return None
    month, day = (first, second) if first <= 12 else (second, first)
    return _day(date(int(m["sl_y"]), month, day))


def _nearest_day(moment: _Moment, *, month: int, day: int, year: str | None) -> _Found:
    if year:
        return _day(date(int(year), month, day))
    this_year = moment.today.year
    candidate = date(this_year, month, day)
    if moment.future and candidate < moment.today:
        candidate = date(this_year + 1, month, day)
    if not moment.future and candidate > moment.today:
        candidate = date(this_year - 1, month, day)
    return _day(candidate)


def _from_day_month(m: re.Match[str], moment: _Moment) -> _Found:
    return _nearest_day(moment, month=MONTH_NUMBERS[m["dm_m"].lower()], day=int(m["dm_d"]), year=m["dm_y"])


def _from_month_day(m: re.Match[str], moment: _Moment) -> _Found | None:
    if m["md_m"] in ("may", "march") and m["prep"] is None:  # "may 10 people come"
        return None
    return _nearest_day(moment, month=MONTH_NUMBERS[m["md_m"].lower()], day=int(m["md_d"]), year=m["md_y"])


def _from_month_year(m: re.Match[str], _: _Moment) -> _Found:
    return _month(int(m["my_y"]), MONTH_NUMBERS[m["my_m"].lower()])


def _from_season_year(m: re.Match[str], _: _Moment) -> _Found:
    return _season(m["sy_s"].lower(), int(m["sy_y"]))


_DAYS_AWAY = {"yesterday": -1, "last night": -1, "tomorrow": 1, "day before": -2, "day after": 2}


def _from_named(m: re.Match[str], moment: _Moment) -> _Found | None:
    words = m["named"].lower()
    if words == "other day":
        return None
    days = next((n for start, n in _DAYS_AWAY.items() if words.startswith(start)), 0)
    part = "night" if words.endswith("night") else ""
    return _day(moment.today + timedelta(days=days), part=part)


_AHEAD = ("next", "coming", "this coming", "following")
_BEHIND = ("last", "past", "this past")


def _looks_ahead(which: str | None, moment: _Moment) -> bool:
    return which in _AHEAD or (moment.future and which not in _BEHIND)


def _from_weekday(m: re.Match[str], moment: _Moment) -> _Found | None:
    which = m["wd_w"].lower() if m["wd_w"] else None
    if which is None and m["prep"] is None and m["since"] is None:
        return None
    today, wanted = moment.today, WEEKDAY_NUMBERS[m["wd_d"].lower()]
    behind = (today.weekday() - wanted) % 7 or 7
    if which == "this" and behind == 7:
        return _day(today)
    return _day(
        today + timedelta(days=7 - behind or 7)
        if _looks_ahead(which, moment)
        else today - timedelta(days=behind)
    )


def _from_unit(m: re.Match[str], moment: _Moment) -> _Found:
    which, unit = m["un_w"].lower(), m["un_u"].lower()
    step = 1 if which in _AHEAD else -1 if which in _BEHIND else 0
    if unit == "weekend":
        return _relative_weekend(step, moment)
    if unit == "week":
        return _week(moment.today + timedelta(weeks=step))
    if unit == "month":
        first = add_months(moment.today.replace(day=1), step)
        return _month(first.year, first.month)
    if unit == "year":
        return _year(moment.today.year + step)
    return _relative_season(unit, step, moment)


def _relative_weekend(step: int, moment: _Moment) -> _Found:
    on_weekend = moment.today.weekday() >= 5
    if step == 0:
        return _weekend(moment.today, 0 if on_weekend or moment.future else -1)
    if step > 0:
        return _weekend(moment.today, 1 if on_weekend else 0)
    return _weekend(moment.today, -1)


def _relative_season(name: str, step: int, moment: _Moment) -> _Found:
    season = _season(name, moment.today.year)
    if step < 0 and season.end > moment.today:
        return _season(name, moment.today.year - 1)
    if step > 0 and season.start <= moment.today:
        return _season(name, moment.today.year + 1)
    if step == 0 and not moment.future and season.start > moment.today:
        return _season(name, moment.today.year - 1)
    return season


def _from_weekend(m: re.Match[str], moment: _Moment) -> _Found | None:
    if m["prep"] is None or m["prep"].lower() not in ("over", "on", "at", "during"):
        return None
    return _relative_weekend(0, moment)


def _count(word: str) -> int:
    return int(word) if word.isdigit() else COUNTS[word.lower()]


def _shift(day: date, n: int, unit: str) -> date:
    if unit in ("day", "week", "weekend"):
        return day + timedelta(days=n * (1 if unit == "day" else 7))
    return add_months(day, n * (12 if unit == "year" else 1))


def _around(day: date, unit: str) -> _Found:
    if unit == "week":
        return _week(day)
    if unit == "weekend":
        return _weekend(day)
    if unit == "month":
        return _month(day.year, day.month)
    return _year(day.year) if unit == "year" else _day(day)


def _from_ago(m: re.Match[str], moment: _Moment) -> _Found:
    word, unit = m["ag_n"].lower(), m["ag_u"].lower()
    if word in ("a few", "few", "several"):
        return _some_ago(word.removeprefix("a "), unit, moment)
    return _around(_shift(moment.today, -_count(word), unit), unit)


def _some_ago(word: str, unit: str, moment: _Moment) -> _Found:
    bare = f"{'several' if word == 'several' else 'a few'} {unit}s before {moment.today.isoformat()}"
    start, end = _shift(moment.today, -6, unit), _shift(moment.today, -1, unit)
    precision = Precision.WEEK if unit == "day" else Precision.MONTH if unit != "year" else Precision.YEAR
    return _Found(start, end, precision, bare, bare)


def _from_ahead(m: re.Match[str], moment: _Moment) -> _Found | None:
    if m["prep"] is None or m["prep"].lower() != "in" or not moment.future:
        return None
    unit = m["ah_u"].lower()
    return _around(_shift(moment.today, _count(m["ah_n"]), unit), unit)


def _from_which_month(m: re.Match[str], moment: _Moment) -> _Found | None:
    which, month = m["wm_w"].lower() if m["wm_w"] else None, MONTH_NUMBERS[m["wm_m"].lower()]
    if (
        which is None
        and m["since"] is None
        and (m["prep"] is None or m["prep"].lower() in ("on", "at", "over"))
    ):
        return None
    year, this_month = moment.today.year, moment.today.month
    if which in _BEHIND and month >= this_month:
        return _month(year - 1, month)
    if which == "next" and month <= this_month:
        return _month(year + 1, month)
    if which is None and not moment.future and month > this_month:
        return _month(year - 1, month)
    if which is None and moment.future and month < this_month:
        return _month(year + 1, month)
    return _month(year, month)


def _from_year(m: re.Match[str], _: _Moment) -> _Found | None:
    if m["since"] is None and (m["prep"] is None or m["prep"].lower() in ("on", "at", "over")):
        return None
    return _year(int(m["yr"]))


def _from_ordinal(m: re.Match[str], moment: _Moment) -> _Found | None:
    if m["prep"] is None or m["prep"].lower() != "on":
        return None
    first = moment.today.replace(day=1)
    day = first.replace(day=int(m["or_d"]))
    if moment.future and day < moment.today:
        return _day(add_months(first, 1).replace(day=int(m["or_d"])))
    if not moment.future and day > moment.today:
        return _day(add_months(first, -1).replace(day=int(m["or_d"])))
    return _day(day)


def _from_span(m: re.Match[str], moment: _Moment) -> _Found | None:
    """ "for three years", "over the last two weeks", and "in two weeks" of a plan."""
    prep = m["prep"].lower() if m["prep"] else None
    unit, word = m["sp_u"].lower(), m["sp_n"].lower()
    if prep == "in" and moment.future:
        return _around(_shift(moment.today, _count(word), unit), unit)
    past = m["span"].lower().startswith(("past ", "last "))
    if not (m["for"] or m["since"] or (past and prep in ("over", "in", "during"))):
        return None
    if word in ("few", "a few", "several"):
        return None
    start = _shift(moment.today, -_count(word), unit)
    bare = _around(start, unit).bare
    precision = Precision.SINCE if past else Precision.DURATION
    return _Found(start, moment.today + timedelta(days=1), precision, bare, f"since {bare}")


_RESOLVERS: dict[str, Callable[[re.Match[str], _Moment], _Found | None]] = {
    "span": _from_span,
    "iso": _from_iso,
    "slash": _from_slash,
    "daymonth": _from_day_month,
    "monthday": _from_month_day,
    "monthyear": _from_month_year,
    "seasonyear": _from_season_year,
    "named": _from_named,
    "weekday": _from_weekday,
    "unit": _from_unit,
    "weekend": _from_weekend,
    "ago": _from_ago,
    "ahead": _from_ahead,
    "whichmonth": _from_which_month,
    "year": _from_year,
    "ordinal": _from_ordinal,
}
