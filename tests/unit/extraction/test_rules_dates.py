"""Words for time become calendar dates of the speaker."""

from __future__ import annotations

from datetime import UTC, date, datetime
from zoneinfo import ZoneInfo

import pytest

from memory_app.extraction.rules import Precision, resolve_dates

WEDNESDAY = datetime(2023, 5, 10, 12, tzinfo=UTC)
UTC_ZONE = ZoneInfo("UTC")


@pytest.mark.parametrize(
    ("text", "start", "end", "phrase"),
    [
        ("I went yesterday", "2023-05-09", "2023-05-10", "on 2023-05-09"),
        ("earlier today", "2023-05-10", "2023-05-11", "on 2023-05-10"),
        ("tonight", "2023-05-10", "2023-05-11", "on the night of 2023-05-10"),
        ("last night", "2023-05-09", "2023-05-10", "on the night of 2023-05-09"),
        ("the day before yesterday", "2023-05-08", "2023-05-09", "on 2023-05-08"),
        ("two days ago", "2023-05-08", "2023-05-09", "on 2023-05-08"),
        ("a week ago", "2023-05-01", "2023-05-08", "in the week of 2023-05-01"),
        ("about a year ago", "2022-01-01", "2023-01-01", "in 2022"),
        ("three years ago", "2020-01-01", "2021-01-01", "in 2020"),
        ("last week", "2023-05-01", "2023-05-08", "in the week of 2023-05-01"),
        ("last month", "2023-04-01", "2023-05-01", "in April 2023"),
        ("last year", "2022-01-01", "2023-01-01", "in 2022"),
        ("last Monday", "2023-05-08", "2023-05-09", "on 2023-05-08"),
        ("last Tues", "2023-05-09", "2023-05-10", "on 2023-05-09"),
        ("last Wednesday", "2023-05-03", "2023-05-04", "on 2023-05-03"),
        ("next Friday", "2023-05-12", "2023-05-13", "on 2023-05-12"),
        ("next month", "2023-06-01", "2023-07-01", "in June 2023"),
        ("this weekend", "2023-05-06", "2023-05-08", "on the weekend of 2023-05-06"),
        ("in March", "2023-03-01", "2023-04-01", "in March 2023"),
        ("in November", "2022-11-01", "2022-12-01", "in November 2022"),
        ("in 2021", "2021-01-01", "2022-01-01", "in 2021"),
        ("on May 7", "2023-05-07", "2023-05-08", "on 2023-05-07"),
        ("7 May 2022", "2022-05-07", "2022-05-08", "on 2022-05-07"),
        ("January 5th, 2023", "2023-01-05", "2023-01-06", "on 2023-01-05"),
        ("on the 7th", "2023-05-07", "2023-05-08", "on 2023-05-07"),
        ("in the summer of 2021", "2021-06-01", "2021-09-01", "in the summer of 2021"),
        ("last summer", "2022-06-01", "2022-09-01", "in the summer of 2022"),
        ("2022-12-24", "2022-12-24", "2022-12-25", "on 2022-12-24"),
        ("since 2019", "2019-01-01", "2023-05-11", "since 2019"),
        ("since last March", "2023-03-01", "2023-05-11", "since March 2023"),
        ("for the past three years", "2020-05-10", "2023-05-11", "since 2020"),
        ("for three years", "2020-05-10", "2023-05-11", "since 2020"),
    ],
)
def test_words_for_time_become_dates(text: str, start: str, end: str, phrase: str) -> None:
    (found,) = resolve_dates(text, WEDNESDAY, zone=UTC_ZONE)
    assert (found.start, found.end) == (date.fromisoformat(start), date.fromisoformat(end))
    assert found.phrase == phrase


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("on Monday", "2023-05-15"),
        ("in March", "2024-03-01"),
        ("on May 7", "2024-05-07"),
        ("in two weeks", "2023-05-22"),
        ("this weekend", "2023-05-13"),
    ],
)
def test_a_plan_looks_ahead(text: str, start: str) -> None:
    (found,) = resolve_dates(text, WEDNESDAY, zone=UTC_ZONE, future=True)
    assert found.start == date.fromisoformat(start)


@pytest.mark.parametrize(
    "text",
    [
        "I ate 12 apples",
        "Sunday roast",
        "every Friday",
        "on 31 February",
        "5/6/2023",
        "I may go",
        "the other day",
        "",
    ],
)
def test_what_is_no_date_or_ambiguous_is_left_out(text: str) -> None:
    assert resolve_dates(text, WEDNESDAY, zone=UTC_ZONE) == ()


def test_the_span_covers_the_words_and_their_preposition() -> None:
    text = "We met on May 7 in Rome"
    (found,) = resolve_dates(text, WEDNESDAY, zone=UTC_ZONE)
    assert text[slice(*found.span)] == "on May 7"
    assert found.precision is Precision.DAY


def test_the_day_is_the_speakers_day() -> None:
    late_in_tokyo = datetime(2023, 5, 7, 14, 30, tzinfo=UTC)  # 23:30
    (found,) = resolve_dates("yesterday evening", late_in_tokyo, zone=ZoneInfo("Asia/Tokyo"))
    assert found.start == date(2023, 5, 6)


def test_a_century_beyond_the_calendar_is_left_out() -> None:
    early = datetime(1, 1, 2, tzinfo=UTC)
    assert resolve_dates("999 years ago and two weeks ago", early, zone=UTC_ZONE) == ()
