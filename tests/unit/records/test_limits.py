"""Limits as they are written down, and numbers that are trusted for some seconds."""

from __future__ import annotations

import pytest

from memory_app.db.recent import Recent
from memory_app.errors import InvalidInput
from memory_app.records.limits import NAMES, OF_KEYS, Limits, parse_limits


def test_limits_are_read_as_they_were_written() -> None:
    limits = Limits(requests_per_minute=60, user_turns=10)
    assert limits.as_dict() == {"requests_per_minute": 60, "user_turns": 10}
    assert parse_limits(limits.as_dict()) == limits
    assert parse_limits({"turns": None}) == Limits()


@pytest.mark.parametrize(
    ("value", "field"),
    [
        ({"requests": 1}, "requests"),
        ({"turns": 0}, "turns"),
        ({"turns": -1}, "turns"),
        ({"turns": 1.5}, "turns"),
        ({"turns": True}, "turns"),
        ({"turns": "10"}, "turns"),
        ({"turns": 2**60}, "turns"),
    ],
)
def test_what_is_no_limit_is_named(value: dict[str, object], field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        parse_limits(value)
    assert refused.value.field == field


def test_a_key_has_no_quota_of_what_is_stored() -> None:
    assert set(OF_KEYS) < set(NAMES)
    with pytest.raises(InvalidInput):
        parse_limits({"user_turns": 1}, names=OF_KEYS)


def test_a_number_is_read_again_when_it_is_old_and_counts_what_was_added() -> None:
    now, looks = [100.0], []

    def look() -> int:
        looks.append(now[0])
        return 5

    recent = Recent(clock=lambda: now[0])
    assert recent.read("a", seconds=2, look=look) == 5
    recent.add("a", 3)
    recent.add("b", 3)
    now[0] = 101.9
    assert recent.read("a", seconds=2, look=look) == 8
    now[0] = 102.0
    assert recent.read("a", seconds=2, look=look) == 5
    assert looks == [100.0, 102.0]
