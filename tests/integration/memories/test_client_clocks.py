"""F43: clocks of clients that are ahead, far behind or in another zone, and the hour that a day has twice."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from queries import rows
from sqlalchemy import Engine
from test_newest_word import facts_now, say

from memory_app.errors import InvalidInput
from memory_app.records.statement import CLOCK_MARGIN
from memory_app.runtime import Runtime

HOUR, DAY = timedelta(hours=1), timedelta(days=1)


@pytest.mark.parametrize("ahead", [HOUR, DAY, 366 * DAY], ids=["an hour", "a day", "a year"])
def test_a_clock_ahead_neither_wins_nor_makes_future_facts(
    runtime: Runtime, tenant: int, owner: Engine, ahead: timedelta
) -> None:
    say(runtime, tenant, "Ich wohne in Bremen.", datetime.now(UTC) + ahead)
    assert facts_now(runtime, tenant, "lives_in") == ["Bremen"]
    say(runtime, tenant, "Ich wohne jetzt in Kassel.", datetime.now(UTC))

    assert facts_now(runtime, tenant, "lives_in") == ["Kassel"]
    latest = datetime.now(UTC) + CLOCK_MARGIN
    stored = rows(owner, "SELECT at AS start FROM turns UNION ALL SELECT valid_from FROM memories")
    assert all(row.start <= latest for row in stored)


@pytest.mark.parametrize("year", [1900, 1969])
def test_a_clock_far_behind_tells_of_the_past(runtime: Runtime, tenant: int, year: int) -> None:
    say(runtime, tenant, "Ich wohne in Kassel.", datetime.now(UTC) - DAY, session="before")
    say(runtime, tenant, "Ich wohne in Bremen.", datetime(year, 12, 31, 23, tzinfo=UTC))

    assert facts_now(runtime, tenant, "lives_in") == ["Kassel"]
    assert facts_now(runtime, tenant, "lives_in", as_of=datetime(1980, 1, 1, tzinfo=UTC)) == ["Bremen"]


def test_a_clock_that_names_no_possible_year_is_refused(runtime: Runtime, tenant: int) -> None:
    with pytest.raises(InvalidInput, match=r"turn\.at: the year 1 is out of range"):
        say(runtime, tenant, "Ich wohne in Bremen.", datetime(1, 12, 31, tzinfo=UTC))


@pytest.mark.parametrize("hours", [-12, 14])
def test_the_offset_of_a_clock_is_no_later_time(runtime: Runtime, tenant: int, hours: int) -> None:
    zone = timezone(timedelta(hours=hours))
    now = datetime.now(UTC)
    say(runtime, tenant, "Ich wohne in Bremen.", (now - 2 * HOUR).astimezone(zone))
    say(runtime, tenant, "Ich wohne jetzt in Kassel.", now - HOUR)

    assert facts_now(runtime, tenant, "lives_in") == ["Kassel"]


def test_in_the_hour_that_comes_twice_the_later_word_wins(runtime: Runtime, tenant: int) -> None:
    summer, winter = (timezone(timedelta(hours=hours)) for hours in (2, 1))
    say(runtime, tenant, "Ich wohne in Bremen.", datetime(2026, 10, 25, 2, 50, tzinfo=summer))
    say(runtime, tenant, "Ich wohne jetzt in Kassel.", datetime(2026, 10, 25, 2, 10, tzinfo=winter))

    assert facts_now(runtime, tenant, "lives_in") == ["Kassel"]
