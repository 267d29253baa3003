"""Resolve words for time to calendar dates of the speaker.

``resolve_dates`` reads one sentence or question and returns the dates that it names, seen from the moment it was
said and in the speaker's time zone. It is used when turns are extracted and for the temporal words of a question.
Intervals are half-open. A date that cannot exist, or is ambiguous such as 5/6/2023, is left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
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
    """The days from ``start`` to ``end`` (exclusive) that ``text[span[0]:span[1]]`` names.

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
class _Period:
    """A `ResolvedDate` without its place in the text."""

    start: date
    end: date
    precision: Precision
    bare: str
    phrase: str


@dataclass(frozen=True, slots=True)
class _Moment:
    today: date
    future: bool


_AHEAD = ("next", "coming", "this coming", "following")
_BEHIND = ("last", "past", "this past")
_STEPS: Mapping[str, int] = {**dict.fromkeys(_AHEAD, 1), **dict.fromkeys(_BEHIND, -1)}
"""The word before a unit to how many units it is away; "this" is none."""

_DAYS_AWAY = {"yesterday": -1, "last night": -1, "tomorrow": 1, "day before": -2, "day after": 2}
_DAYS_OF_UNIT = {"day": 1, "week": 7, "weekend": 7}
_MONTHS_OF_UNIT = {"month": 1, "year": 12}

_WEEKEND_PREPOSITIONS = ("over", "on", "at", "during")
_NOT_BEFORE_PERIODS = ("on", "at", "over")
"""A month or a year behind these is none: "on March", "over 2000"."""

_VAGUE_COUNTS = ("a few", "few", "several")
_VAGUE_PRECISIONS = {"day": Precision.WEEK, "year": Precision.YEAR}
"""How exactly "a few days ago" is known, by the unit; a month for the units that are not here."""


def resolve_dates(
    text: str, at: datetime, *, zone: ZoneInfo, future: bool = False
) -> tuple[ResolvedDate, ...]:
    """Return the dates named in ``text``, in order, without overlaps.

    ``at`` is when it was said (aware). ``future`` decides words that look both ways ("on Monday", "in March"):
    the next one instead of the last one. Work is linear in the length of ``text``.
    """
    if not CUE.search(text):
        return ()
    moment = _Moment(at.astimezone(zone).date(), future)
    dates = (_resolve(match, moment) for match in PATTERN.finditer(text))
    return tuple(resolved for resolved in dates if resolved is not None)


def _resolve(match: re.Match[str], moment: _Moment) -> ResolvedDate | None:
    # What lasts "since March" began in the last March, also in a sentence about the future.
    if match["since"]:
        moment = _Moment(moment.today, future=False)
    try:
        period = _RESOLVERS[_form(match)](match, moment)
    except (ValueError, OverflowError):  # 31 February, or a century out of the calendar's reach
        return None
    if period is None:
        return None
    if match["since"]:
        period = _since(period, moment)
    return ResolvedDate(
        span=match.span(),
        start=period.start,
        end=period.end,
        precision=period.precision,
        bare=period.bare,
        phrase=period.phrase,
    )


def _form(match: re.Match[str]) -> str:
    """Name the alternative of `PATTERN` that matched."""
    if match["span"]:
        return "span"
    return next(name for name in FORMS if match[name] is not None)


def _lower(text: str | None) -> str:
    return text.lower() if text else ""


def _preposition(m: re.Match[str]) -> str:
    return _lower(m["prep"])


# --- periods ------------------------------------------------------------------------------------------------


def _since(period: _Period, moment: _Moment) -> _Period:
    return _Period(
        start=period.start,
        end=moment.today + timedelta(days=1),
        precision=Precision.SINCE,
        bare=period.bare,
        phrase=f"since {period.bare}",
    )


def _day(day: date, *, part: str = "") -> _Period:
    bare = day.isoformat()
    return _Period(
        start=day,
        end=day + timedelta(days=1),
        precision=Precision.DAY,
        bare=bare,
        phrase=f"on the night of {bare}" if part == "night" else f"on {bare}",
    )


def _week(day: date) -> _Period:
    monday = day - timedelta(days=day.weekday())
    bare = f"the week of {monday.isoformat()}"
    return _Period(
        start=monday,
        end=monday + timedelta(days=7),
        precision=Precision.WEEK,
        bare=bare,
        phrase=f"in {bare}",
    )


def _weekend(day: date, weeks: int = 0) -> _Period:
    """The weekend of the week of ``day``, moved by ``weeks``."""
    saturday = day - timedelta(days=day.weekday()) + timedelta(days=5, weeks=weeks)
    bare = f"the weekend of {saturday.isoformat()}"
    return _Period(
        start=saturday,
        end=saturday + timedelta(days=2),
        precision=Precision.WEEKEND,
        bare=bare,
        phrase=f"on {bare}",
    )


def _month(year: int, month: int) -> _Period:
    start = date(year, month, 1)
    bare = f"{MONTHS[month - 1]} {year}"
    return _Period(
        start=start,
        end=add_months(start, 1),
        precision=Precision.MONTH,
        bare=bare,
        phrase=f"in {bare}",
    )


def _year(year: int) -> _Period:
    return _Period(
        start=date(year, 1, 1),
        end=date(year + 1, 1, 1),
        precision=Precision.YEAR,
        bare=str(year),
        phrase=f"in {year}",
    )


def _season(name: str, year: int) -> _Period:
    name = "autumn" if name == "fall" else name
    start = date(year, SEASONS[name], 1)
    bare = f"the {name} of {year}"
    return _Period(
        start=start,
        end=add_months(start, 3),
        precision=Precision.SEASON,
        bare=bare,
        phrase=f"in {bare}",
    )


# --- absolute dates -----------------------------------------------------------------------------------------


def _from_iso(m: re.Match[str], _: _Moment) -> _Period:
    return _day(date(int(m["iso_y"]), int(m["iso_m"]), int(m["iso_d"])))


def _from_slash(m: re.Match[str], _: _Moment) -> _Period | None:
    first, second = int(m["sl_a"]), int(m["sl_b"])
    # Nobody says whether 5/6 is in May or in June; only a number over 12 tells.
    is_ambiguous = first <= 12 and second <= 12 and first != second
    if is_ambiguous:
        return None
    month, day = (first, second) if first <= 12 else (second, first)
    return _day(date(int(m["sl_y"]), month, day))


def _from_day_month(m: re.Match[str], moment: _Moment) -> _Period:
    return _nearest_day(moment, month=MONTH_NUMBERS[m["dm_m"].lower()], day=int(m["dm_d"]), year=m["dm_y"])


def _from_month_day(m: re.Match[str], moment: _Moment) -> _Period | None:
    if m["md_m"] in ("may", "march") and m["prep"] is None:  # "may 10 people come"
        return None
    return _nearest_day(moment, month=MONTH_NUMBERS[m["md_m"].lower()], day=int(m["md_d"]), year=m["md_y"])


def _nearest_day(moment: _Moment, *, month: int, day: int, year: str | None) -> _Period:
    if year:
        return _day(date(int(year), month, day))
    this_year = moment.today.year
    step = _step_towards(date(this_year, month, day), today=moment.today, future=moment.future)
    return _day(date(this_year + step, month, day))


def _step_towards(candidate: date, *, today: date, future: bool) -> int:
    """1 or -1 where ``candidate`` lies on the wrong side of ``today``: take the next, or the one before. Else 0."""
    if future and candidate < today:
        return 1
    if not future and candidate > today:
        return -1
    return 0


def _from_month_year(m: re.Match[str], _: _Moment) -> _Period:
    return _month(int(m["my_y"]), MONTH_NUMBERS[m["my_m"].lower()])


def _from_season_year(m: re.Match[str], _: _Moment) -> _Period:
    return _season(m["sy_s"].lower(), int(m["sy_y"]))


def _from_year(m: re.Match[str], _: _Moment) -> _Period | None:
    if not _follows_time_preposition(m):
        return None
    return _year(int(m["yr"]))


def _follows_time_preposition(m: re.Match[str]) -> bool:
    """Whether the word before a month or a year says that a time is meant ("in 2019", "since May")."""
    preposition = _preposition(m)
    in_period = bool(preposition) and preposition not in _NOT_BEFORE_PERIODS
    return in_period or m["since"] is not None


# --- dates relative to today --------------------------------------------------------------------------------


def _from_named(m: re.Match[str], moment: _Moment) -> _Period | None:
    words = m["named"].lower()
    if words == "other day":
        return None
    days = next((days for opening, days in _DAYS_AWAY.items() if words.startswith(opening)), 0)
    part = "night" if words.endswith("night") else ""
    return _day(moment.today + timedelta(days=days), part=part)


def _looks_ahead(which: str, moment: _Moment) -> bool:
    return which in _AHEAD or (moment.future and which not in _BEHIND)


def _from_weekday(m: re.Match[str], moment: _Moment) -> _Period | None:
    which = _lower(m["wd_w"])
    is_bare = not which and m["prep"] is None and m["since"] is None
    if is_bare:
        return None
    today = moment.today
    # 1 to 7: a weekday that is today's name means the one a week away, except after "this".
    behind = (today.weekday() - WEEKDAY_NUMBERS[m["wd_d"].lower()]) % 7 or 7
    if which == "this" and behind == 7:
        return _day(today)
    if _looks_ahead(which, moment):
        return _day(today + timedelta(days=7 - behind or 7))
    return _day(today - timedelta(days=behind))


def _from_unit(m: re.Match[str], moment: _Moment) -> _Period:
    step, unit = _STEPS.get(m["un_w"].lower(), 0), m["un_u"].lower()
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


def _relative_weekend(step: int, moment: _Moment) -> _Period:
    """The weekend that "last" (-1), "this" (0) or "next" (1) names.

    On a weekend "next" is that of the following week; on other days it is the coming one.
    """
    on_weekend = moment.today.weekday() >= 5
    if step < 0:
        return _weekend(moment.today, -1)
    if step > 0:
        return _weekend(moment.today, 1 if on_weekend else 0)
    return _weekend(moment.today, 0 if on_weekend or moment.future else -1)


def _relative_season(name: str, step: int, moment: _Moment) -> _Period:
    """The season that "last" (-1), "this" (0) or "next" (1) names: it is over, is near or has yet to begin."""
    today = moment.today
    season = _season(name, today.year)
    has_begun, is_over = season.start <= today, season.end <= today
    if step > 0 and has_begun:
        return _season(name, today.year + 1)
    lies_in_past = step == 0 and not moment.future
    if (step < 0 and not is_over) or (lies_in_past and not has_begun):
        return _season(name, today.year - 1)
    return season


def _from_weekend(m: re.Match[str], moment: _Moment) -> _Period | None:
    if _preposition(m) not in _WEEKEND_PREPOSITIONS:
        return None
    return _relative_weekend(0, moment)


def _from_which_month(m: re.Match[str], moment: _Moment) -> _Period | None:
    which, month = _lower(m["wm_w"]), MONTH_NUMBERS[m["wm_m"].lower()]
    if not which and not _follows_time_preposition(m):
        return None
    first_of_month = moment.today.replace(day=1)
    candidate = date(first_of_month.year, month, 1)
    step = 0
    if which in _BEHIND and candidate >= first_of_month:
        step = -1
    elif which == "next" and candidate <= first_of_month:
        step = 1
    elif not which:
        step = _step_towards(candidate, today=first_of_month, future=moment.future)
    return _month(candidate.year + step, month)


def _from_ordinal(m: re.Match[str], moment: _Moment) -> _Period | None:
    """ "on the 5th", of this month or the one beside it."""
    if _preposition(m) != "on":
        return None
    first, day = moment.today.replace(day=1), int(m["or_d"])
    step = _step_towards(first.replace(day=day), today=moment.today, future=moment.future)
    return _day(add_months(first, step).replace(day=day))


# --- counted units ------------------------------------------------------------------------------------------


def _count(word: str) -> int:
    return int(word) if word.isdigit() else COUNTS[word.lower()]


def _shift(day: date, count: int, unit: str) -> date:
    days = _DAYS_OF_UNIT.get(unit)
    if days is not None:
        return day + timedelta(days=count * days)
    return add_months(day, count * _MONTHS_OF_UNIT[unit])


_AROUND: Mapping[str, Callable[[date], _Period]] = {
    "day": _day,
    "week": _week,
    "weekend": _weekend,
    "month": lambda day: _month(day.year, day.month),
    "year": lambda day: _year(day.year),
}
"""Unit to the period of that length in which a day lies."""


def _from_ago(m: re.Match[str], moment: _Moment) -> _Period:
    word, unit = m["ag_n"].lower(), m["ag_u"].lower()
    if word in _VAGUE_COUNTS:
        return _some_ago(word.removeprefix("a "), unit, moment)
    return _AROUND[unit](_shift(moment.today, -_count(word), unit))


def _some_ago(word: str, unit: str, moment: _Moment) -> _Period:
    """ "a few weeks ago": between six units and one before today."""
    count = "several" if word == "several" else "a few"
    phrase = f"{count} {unit}s before {moment.today.isoformat()}"
    return _Period(
        start=_shift(moment.today, -6, unit),
        end=_shift(moment.today, -1, unit),
        precision=_VAGUE_PRECISIONS.get(unit, Precision.MONTH),
        bare=phrase,
        phrase=phrase,
    )


def _from_ahead(m: re.Match[str], moment: _Moment) -> _Period | None:
    if _preposition(m) != "in" or not moment.future:
        return None
    unit = m["ah_u"].lower()
    return _AROUND[unit](_shift(moment.today, _count(m["ah_n"]), unit))


def _from_span(m: re.Match[str], moment: _Moment) -> _Period | None:
    """ "for three years", "over the last two weeks", and "in two weeks" of a plan."""
    preposition = _preposition(m)
    unit, word = m["sp_u"].lower(), m["sp_n"].lower()
    if preposition == "in" and moment.future:
        return _AROUND[unit](_shift(moment.today, _count(word), unit))
    past = m["span"].lower().startswith(("past ", "last "))
    reaches_back = past and preposition in ("over", "in", "during")
    lasts = m["for"] or m["since"] or reaches_back
    if not lasts or word in _VAGUE_COUNTS:
        return None
    start = _shift(moment.today, -_count(word), unit)
    bare = _AROUND[unit](start).bare
    return _Period(
        start=start,
        end=moment.today + timedelta(days=1),
        precision=Precision.SINCE if past else Precision.DURATION,
        bare=bare,
        phrase=f"since {bare}",
    )


_RESOLVERS: Mapping[str, Callable[[re.Match[str], _Moment], _Period | None]] = {
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
