"""Number the English names of months, weekdays and seasons, and add months to a date."""

from __future__ import annotations

from calendar import monthrange
from datetime import date

from memory_app.language.english import ENGLISH
from memory_app.language.language import first_words, row_numbers

MONTHS = first_words(ENGLISH.months)
WEEKDAYS = first_words(ENGLISH.weekdays)

MONTH_NUMBERS = row_numbers(ENGLISH.months)
"""Every spelling in lower case to its month, 1 for January."""

WEEKDAY_NUMBERS = dict(zip(map(str.lower, WEEKDAYS), range(7), strict=True))
# Only those that are no words of their own: "sat" and "sun" are.
WEEKDAY_NUMBERS |= ENGLISH.weekday_abbreviations
"""Name or abbreviation in lower case to its day, 0 for Monday."""

SEASONS = ENGLISH.seasons
COUNTS = ENGLISH.counts


def add_months(day: date, months: int) -> date:
    """Return ``day`` moved by whole months; the day of the month is cut to what that month has."""
    # Months are counted from 0 here, so that December does not fall into the next year.
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    _, days_of_month = monthrange(year, month + 1)
    return date(year, month + 1, min(day.day, days_of_month))
