"""English words of the calendar, and month arithmetic. Another language is another table."""

from __future__ import annotations

from calendar import monthrange
from datetime import date

WEEKDAYS = {
    name: number
    for number, name in enumerate(
        ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"),
    )
} | {"mon": 0, "tue": 1, "tues": 1, "wed": 2, "thu": 3, "thur": 3, "thurs": 3, "fri": 4}

_MONTH_WORDS = "january february march april may june july august september october november december"
MONTH_NAMES = tuple(_MONTH_WORDS.split())
MONTHS = {name: number for number, name in enumerate(MONTH_NAMES, start=1)}
MONTHS |= {name[:3]: number for name, number in list(MONTHS.items())} | {"sept": 9}

SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
"""First month of a season, on the northern half of the earth."""

NUMBERS = {
    "a": 1,
    "an": 1,
    "one": 1,
    "two": 2,
    "a couple of": 2,
    "couple of": 2,
    "three": 3,
    "a few": 3,
    "few": 3,
    "several": 5,
    "four": 4,
    "five": 5,
    "six": 6,
    "seven": 7,
    "eight": 8,
    "nine": 9,
    "ten": 10,
    "eleven": 11,
    "twelve": 12,
    "fifteen": 15,
    "twenty": 20,
}


def add_months(day: date, months: int) -> date:
    """``day`` moved by whole months; the day of the month is cut to what that month has."""
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    return date(year, month + 1, min(day.day, monthrange(year, month + 1)[1]))
