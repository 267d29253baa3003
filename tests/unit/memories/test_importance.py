"""Numbers from outside are brought into range, and the answer says so."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_app.records.importance import clamped, stored_importance


@pytest.mark.parametrize(
    ("given_value", "stored"), [(0, 2), (1, 5), (2, 7), (3, 9), (2.6, 9), (-4, 2), (8, 9)]
)
def test_a_coarse_importance_is_spread_over_the_scale(given_value: float, stored: int) -> None:
    note = f"importance {given_value:g} of 0-3 stored as {stored}"

    assert stored_importance(given_value, 5, scale="0-3") == (stored, note)


@pytest.mark.parametrize("value", range(1, 11))
def test_an_importance_inside_the_scale_is_kept_without_a_note(value: int) -> None:
    assert stored_importance(value, 5) == (value, None)


def test_a_missing_importance_takes_the_default_of_the_kind() -> None:
    assert stored_importance(None, 8) == (8, None)


@pytest.mark.parametrize(
    ("given_value", "stored"),
    [
        (11, 10),
        (1e300, 10),
        (math.inf, 10),
        (-1, 1),
        (-math.inf, 1),
        (7.6, 8),
        (4.5, 5),
        (2.6, 3),
        (0, 1),
        (-0.2, 1),
    ],
)
def test_an_importance_outside_the_scale_is_stored_at_its_edge_and_said(
    given_value: float, stored: int
) -> None:
    value, note = stored_importance(given_value, 5)

    assert value == stored
    assert note is not None and str(stored) in note


def test_an_importance_that_is_no_number_takes_the_default_and_is_said() -> None:
    assert stored_importance(math.nan, 6) == (6, "importance is not a number, stored as 6")


@given(st.floats() | st.integers())
def test_every_stored_importance_is_a_whole_number_from_one_to_ten(value: float) -> None:
    stored, note = stored_importance(value, 5)

    assert isinstance(stored, int) and 1 <= stored <= 10
    assert (note is None) == (stored == value)


@given(st.floats())
def test_a_clamped_value_lies_inside_its_bounds_and_a_change_is_said(value: float) -> None:
    stored, note = clamped(value, low=-1.0, high=1.0, name="confidence")

    assert -1.0 <= stored <= 1.0
    assert (note is None) == (stored == value)
    assert note is None or note.startswith("confidence ")
