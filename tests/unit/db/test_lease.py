"""What a process borrowed and cannot give back at once is kept, and given back later."""

from __future__ import annotations

import pytest

from memory_app.db.lease import Returns
from memory_app.errors import StoreUnavailable


class Row:
    """A row that may be locked; counts what reached it."""

    def __init__(self, *, is_locked: bool = False) -> None:
        self.is_locked = is_locked
        self.tries = 0
        self.returned = 0
        self.is_in_line = False

    def give_back(self, *, briefly: bool) -> None:
        self.is_in_line = not briefly
        self.tries += 1
        if self.is_locked:
            raise StoreUnavailable("the database is busy (55P03); try again")
        self.returned += 1


def kept(*rows: Row) -> Returns:
    returns = Returns()
    returns.give_back(*(row.give_back for row in rows), within_seconds=0)
    return returns


def test_what_succeeds_at_once_is_not_kept() -> None:
    row = Row()
    kept(row).try_again()
    assert (row.tries, row.returned) == (1, 1)


def test_one_that_is_locked_does_not_keep_the_others_back() -> None:
    locked, free = Row(is_locked=True), Row()
    kept(locked, free)
    assert (locked.returned, free.returned) == (0, 1)


def test_a_worker_waits_for_its_row_but_a_later_look_delays_nothing() -> None:
    row = Row(is_locked=True)
    returns = kept(row)
    assert row.is_in_line
    returns.try_again()
    assert not row.is_in_line


def test_what_was_kept_is_given_back_once_it_is_free() -> None:
    row = Row(is_locked=True)
    returns = kept(row)
    returns.try_again()
    assert row.returned == 0
    row.is_locked = False
    for _ in range(2):
        returns.try_again()
    assert row.returned == 1


def test_a_look_tries_until_one_is_locked_and_that_one_goes_to_the_end() -> None:
    first, second, third = rows = [Row(is_locked=True) for _ in range(3)]
    returns = kept(*rows)
    first.is_locked = third.is_locked = False
    returns.try_again()
    assert [row.tries for row in rows] == [2, 2, 1]
    returns.try_again()
    assert [row.returned for row in rows] == [1, 0, 1]
    second.is_locked = False
    returns.try_again()
    assert second.returned == 1


class TimeIsUp(Exception):
    """As the soft limit of a task strikes."""


def test_a_time_limit_in_the_middle_loses_nothing() -> None:
    row, strikes, returns = Row(), iter([TimeIsUp()]), Returns()

    def strike(*, briefly: bool) -> None:
        for error in strikes:
            raise error

    with pytest.raises(TimeIsUp):
        returns.give_back(strike, row.give_back, within_seconds=0)
    assert row.returned == 0
    returns.try_again()
    assert row.returned == 1
