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
class Period:
    """The days from ``start`` to ``end`` (exclusive).

    ``bare`` is the absolute date in words ("2023-05-07", "March 2023"), ``phrase`` the same with its
    preposition ("on 2023-05-07"), to be put in the place of the relative words.
    """

    start: date
    end: date
    precision: Precision
    bare: str
    phrase: str


@dataclass(frozen=True, slots=True)
class ResolvedDate(Period):
    """The days that ``text[span[0]:span[1]]`` names."""

    span: tuple[int, int]


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
_BEFORE_SPANS = ("over", "in", "during")
_NOT_BEFORE_PERIODS = ("on", "at", "over")
"""A month or a year behind these is none: "on March", "over 2000"."""

_VAGUE_COUNTS = {"a few": "a few", "few": "a few", "several": "several"}
"""Words that count vaguely to how they are written in a phrase."""
_VAGUE_PRECISIONS = {"day": Precision.WEEK, "year": Precision.YEAR}
"""How exactly "a few days ago" is known, by the unit; a month for the units that are not here."""


def resolve_dates(
    text: str, at: datetime, *, zone: ZoneInfo, future: bool = False
) -> tuple[ResolvedDate, ...]:
    """Return the dates named in ``text``, in order, without overlaps.

    ``at`` is when it was said (aware). ``future`` decides words that look both ways ("on Monday", "in March"):
    the next one instead of the last one. Work is linear in the length of ``text``.
    """
    # Most sentences name no date, and the pattern of all forms is long.
    if not CUE.search(text):
        return ()
    moment = _Moment(at.astimezone(zone).date(), future)
    dates = (_resolve(match, moment) for match in PATTERN.finditer(text))
    return tuple(filter(None, dates))


def _resolve(match: re.Match[str], moment: _Moment) -> ResolvedDate | None:
    period = _period_of(match, moment)
    if period is None:
        return None
    return ResolvedDate(
        span=match.span(),
        start=period.start,
        end=period.end,
        precision=period.precision,
        bare=period.bare,
        phrase=period.phrase,
    )


def _period_of(match: re.Match[str], moment: _Moment) -> Period | None:
    resolver = _RESOLVERS[_form(match)]
    try:
        if not match["since"]:
            return resolver(match, moment)
        # What lasts "since March" began in the last March, also in a sentence about the future.
        period = resolver(match, _Moment(moment.today, future=False))
    except (ValueError, OverflowError):  # 31 February, or a century out of the calendar's reach
        return None
    return _since(period, moment) if period else None


def _form(match: re.Match[str]) -> str:
    """Name the alternative of `PATTERN` that matched."""
    if match["span"]:
        return "span"
    return next(name for name in FORMS if match[name] is not None)


def _lower(text: str | None) -> str:
    return text.lower() if text else ""


def _preposition(m: re.Match[str]) -> str:
    return _lower(m["prep"])


def _has_preposition(m: re.Match[str]) -> bool:
    return m["prep"] is not None or m["since"] is not None


# --- periods ------------------------------------------------------------------------------------------------


def _since(period: Period, moment: _Moment) -> Period:
    return Period(
        start=period.start,
        end=moment.today + timedelta(days=1),
        precision=Precision.SINCE,
        bare=period.bare,
        phrase=f"since {period.bare}",
    )


def _day(day: date, *, part: str = "") -> Period:
    bare = day.isoformat()
    return Period(
        start=day,
        end=day + timedelta(days=1),
        precision=Precision.DAY,
        bare=bare,
        phrase=f"on the night of {bare}" if part == "night" else f"on {bare}",
    )


def _week(day: date) -> Period:
    monday = day - timedelta(days=day.weekday())
    bare = f"the week of {monday.isoformat()}"
    return Period(
        start=monday,
        end=monday + timedelta(days=7),
        precision=Precision.WEEK,
        bare=bare,
        phrase=f"in {bare}",
    )


def _weekend(day: date, weeks: int = 0) -> Period:
    """The weekend of the week of ``day``, moved by ``weeks``."""
    monday = day - timedelta(days=day.weekday())
    saturday = monday + timedelta(days=5, weeks=weeks)
    bare = f"the weekend of {saturday.isoformat()}"
    return Period(
        start=saturday,
        end=saturday + timedelta(days=2),
        precision=Precision.WEEKEND,
        bare=bare,
        phrase=f"on {bare}",
    )


def _month(year: int, month: int) -> Period:
    start = date(year, month, 1)
    bare = f"{MONTHS[month - 1]} {year}"
    return Period(
        start=start,
        end=add_months(start, 1),
        precision=Precision.MONTH,
        bare=bare,
        phrase=f"in {bare}",
    )


def _year(year: int) -> Period:
    return Period(
        start=date(year, 1, 1),
        end=date(year + 1, 1, 1),
        precision=Precision.YEAR,
        bare=str(year),
        phrase=f"in {year}",
    )


def _season(name: str, year: int) -> Period:
    name = "autumn" if name == "fall" else name
    # A winter is named after the year in which it begins.
    start = date(year, SEASONS[name], 1)
    bare = f"the {name} of {year}"
    return Period(
        start=start,
        end=add_months(start, 3),
        precision=Precision.SEASON,
        bare=bare,
        phrase=f"in {bare}",
    )


# --- absolute dates -----------------------------------------------------------------------------------------


def _from_iso(m: re.Match[str], _: _Moment) -> Period:
    return _day(date(int(m["iso_y"]), int(m["iso_m"]), int(m["iso_d"])))


def _from_slash(m: re.Match[str], _: _Moment) -> Period | None:
    first, second = int(m["sl_a"]), int(m["sl_b"])
    low, high = sorted((first, second))
    # Nobody says whether 5/6 is in May or in June; only a number over 12 tells.
    if high <= 12 and low != high:
        return None
    return _day(date(int(m["sl_y"]), month=low, day=high))


def _from_day_month(m: re.Match[str], moment: _Moment) -> Period:
    return _nearest_day(
        moment,
        month=MONTH_NUMBERS[m["dm_m"].lower()],
        day=int(m["dm_d"]),
        year=m["dm_y"],
    )


def _from_month_day(m: re.Match[str], moment: _Moment) -> Period | None:
    # In lower case they are verbs: "may 10 people come".
    if m["md_m"] in ("may", "march") and m["prep"] is None:
        return None
    return _nearest_day(
        moment,
        month=MONTH_NUMBERS[m["md_m"].lower()],
        day=int(m["md_d"]),
        year=m["md_y"],
    )


def _nearest_day(moment: _Moment, *, month: int, day: int, year: str | None) -> Period:
    if year:
        return _day(date(int(year), month, day))
    this_year = moment.today.year
    step = _step_towards(date(this_year, month, day), today=moment.today, future=moment.future)
    return _day(date(this_year + step, month, day))


def _step_towards(candidate: date, *, today: date, future: bool) -> int:
    """1 or -1 where ``candidate`` lies on the wrong side of ``today``: take the next, or the one before. Else 0."""
    if future:
        return 1 if candidate < today else 0
    return -1 if candidate > today else 0


def _from_month_year(m: re.Match[str], _: _Moment) -> Period:
    return _month(int(m["my_y"]), MONTH_NUMBERS[m["my_m"].lower()])


def _from_season_year(m: re.Match[str], _: _Moment) -> Period:
    return _season(m["sy_s"].lower(), int(m["sy_y"]))


def _from_year(m: re.Match[str], _: _Moment) -> Period | None:
    # Any number of four digits may be meant: "over 2000 people".
    if not _follows_time_preposition(m):
        return None
    return _year(int(m["yr"]))


def _follows_time_preposition(m: re.Match[str]) -> bool:
    """Whether the word before a month or a year says that a time is meant ("in 2019", "since May")."""
    preposition = _preposition(m)
    in_period = bool(preposition) and preposition not in _NOT_BEFORE_PERIODS
    return in_period or m["since"] is not None


# --- dates relative to today --------------------------------------------------------------------------------


def _from_named(m: re.Match[str], moment: _Moment) -> Period | None:
    words = m["named"].lower()
    if words == "other day":
        return None
    # "Today", "tonight" and "this morning" are in no row.
    distances = (days for opening, days in _DAYS_AWAY.items() if words.startswith(opening))
    day = moment.today + timedelta(days=next(distances, 0))
    return _day(day, part="night" if words.endswith("night") else "")


def _looks_ahead(which: str, moment: _Moment) -> bool:
    # "This", or no word at all, looks where the sentence does.
    step = _STEPS.get(which, 0)
    return step > 0 if step else moment.future


def _from_weekday(m: re.Match[str], moment: _Moment) -> Period | None:
    which = _lower(m["wd_w"])
    # A bare "Sunday" may be a habit or a name.
    if not which and not _has_preposition(m):
        return None
    today = moment.today
    number = WEEKDAY_NUMBERS[m["wd_d"].lower()]
    if which == "this" and today.weekday() == number:
        return _day(today)
    # 1 to 7 days away: a weekday that is today's name means the one a week away, except after "this".
    if _looks_ahead(which, moment):
        return _day(today + timedelta(days=1 + (number - today.weekday() - 1) % 7))
    return _day(today - timedelta(days=1 + (today.weekday() - number - 1) % 7))


def _from_unit(m: re.Match[str], moment: _Moment) -> Period:
    step, unit = _STEPS.get(m["un_w"].lower(), 0), m["un_u"].lower()
    relative = _RELATIVE.get(unit)
    return relative(step, moment) if relative else _relative_season(unit, step, moment)


def _relative_week(step: int, moment: _Moment) -> Period:
    return _week(moment.today + timedelta(weeks=step))


def _relative_month(step: int, moment: _Moment) -> Period:
    day = add_months(moment.today, step)
    return _month(day.year, day.month)


def _relative_year(step: int, moment: _Moment) -> Period:
    return _year(moment.today.year + step)


def _relative_weekend(step: int, moment: _Moment) -> Period:
    """The weekend that "last" (-1), "this" (0) or "next" (1) names.

    On a weekend "next" is that of the following week; on other days it is the coming one.
    """
    is_weekend = moment.today.weekday() >= 5
    if step < 0:
        return _weekend(moment.today, weeks=-1)
    if step > 0:
        return _weekend(moment.today, weeks=1 if is_weekend else 0)
    # "This weekend" of something that happened, told on a weekday, is the one before.
    is_over = not is_weekend and not moment.future
    return _weekend(moment.today, weeks=-1 if is_over else 0)


_RELATIVE: Mapping[str, Callable[[int, _Moment], Period]] = {
    "weekend": _relative_weekend,
    "week": _relative_week,
    "month": _relative_month,
    "year": _relative_year,
}
"""Unit to the period that "last" (-1), "this" (0) or "next" (1) names. The units that are not here are seasons."""


def _relative_season(name: str, step: int, moment: _Moment) -> Period:
    """The season that "last" (-1), "this" (0) or "next" (1) names: it is over, is near or has yet to begin."""
    today = moment.today
    season = _season(name, today.year)
    if step > 0:
        return _season(name, today.year + 1) if season.start <= today else season
    # "Last summer" is over. "This summer" of something that happened has begun at least.
    if step < 0:
        fits = season.end <= today
    else:
        fits = moment.future or season.start <= today
    return season if fits else _season(name, today.year - 1)


def _from_weekend(m: re.Match[str], moment: _Moment) -> Period | None:
    # "My weekend" and "for the weekend" may be any.
    if _preposition(m) not in _WEEKEND_PREPOSITIONS:
        return None
    return _relative_weekend(0, moment)


def _from_which_month(m: re.Match[str], moment: _Moment) -> Period | None:
    which, month = _lower(m["wm_w"]), MONTH_NUMBERS[m["wm_m"].lower()]
    if not which and not _follows_time_preposition(m):
        return None
    first_of_month = moment.today.replace(day=1)
    candidate = date(first_of_month.year, month, 1)
    # "This March", and all that is not mentioned below, is that of the year.
    step = 0
    if which in _BEHIND and candidate >= first_of_month:
        step = -1
    elif which == "next" and candidate <= first_of_month:
        step = 1
    elif not which:
        step = _step_towards(candidate, today=first_of_month, future=moment.future)
    return _month(candidate.year + step, month)


def _from_ordinal(m: re.Match[str], moment: _Moment) -> Period | None:
    """ "on the 5th", of this month or the one beside it."""
    # "The 5th" alone may be a place in a row.
    if _preposition(m) != "on":
        return None
    # By way of the first: `add_months` would make 28 February of a 31st, which no text means.
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


_AROUND: Mapping[str, Callable[[date], Period]] = {
    "day": _day,
    "week": _week,
    "weekend": _weekend,
    "month": lambda day: _month(day.year, day.month),
    "year": lambda day: _year(day.year),
}
"""Unit to the period of that length in which a day lies."""


def _from_ago(m: re.Match[str], moment: _Moment) -> Period:
    word, unit = m["ag_n"].lower(), m["ag_u"].lower()
    if word in _VAGUE_COUNTS:
        return _some_ago(_VAGUE_COUNTS[word], unit, moment)
    return _AROUND[unit](_shift(moment.today, -_count(word), unit))


def _some_ago(count: str, unit: str, moment: _Moment) -> Period:
    """ "a few weeks ago": between six units and one before today."""
    # No date stands for it: whoever reads the memory later must see how vague it was.
    phrase = f"{count} {unit}s before {moment.today.isoformat()}"
    return Period(
        start=_shift(moment.today, -6, unit),
        end=_shift(moment.today, -1, unit),
        precision=_VAGUE_PRECISIONS.get(unit, Precision.MONTH),
        bare=phrase,
        phrase=phrase,
    )


def _from_ahead(m: re.Match[str], moment: _Moment) -> Period | None:
    # "Done in two weeks", of something past, is how long it took.
    if _preposition(m) != "in" or not moment.future:
        return None
    unit = m["ah_u"].lower()
    return _AROUND[unit](_shift(moment.today, _count(m["ah_n"]), unit))


def _from_span(m: re.Match[str], moment: _Moment) -> Period | None:
    """ "for three years", "over the last two weeks", and "in two weeks" of a plan."""
    # The same words count forward and back: only the preposition and the sense of the sentence tell.
    preposition = _preposition(m)
    unit, word = m["sp_u"].lower(), m["sp_n"].lower()
    if preposition == "in" and moment.future:
        return _AROUND[unit](_shift(moment.today, _count(word), unit))
    past = m["span"].lower().startswith(("past ", "last "))
    lasts = m["for"] or m["since"] or (past and preposition in _BEFORE_SPANS)
    # "For a few years" has no beginning that could be told.
    if not lasts or word in _VAGUE_COUNTS:
        return None
    start = _shift(moment.today, -_count(word), unit)
    bare = _AROUND[unit](start).bare
    return Period(
        start=start,
        end=moment.today + timedelta(days=1),
        precision=Precision.SINCE if past else Precision.DURATION,
        bare=bare,
        phrase=f"since {bare}",
    )


_RESOLVERS: Mapping[str, Callable[[re.Match[str], _Moment], Period | None]] = {
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
