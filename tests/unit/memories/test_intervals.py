"""Half-open intervals, and the place of a claim among those with which it cannot be true together."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import combinations
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_app.memories.intervals import (
    Cut,
    Interval,
    Placement,
    Rival,
    contains,
    insert_fact,
    overlaps,
    subtracted,
)


def day(number: int) -> datetime:
    return datetime(2024, 1, 1, tzinfo=UTC) + timedelta(days=number)


def span(start: int, until: int | None = None) -> Interval:
    return Interval(day(start), None if until is None else day(until))


def held(
    number: int,
    interval: Interval,
    confirmed: int | None = None,
    *,
    immovable: bool = False,
    yielding: bool = False,
) -> Rival:
    confirmed_at = interval.start if confirmed is None else day(confirmed)
    return Rival(UUID(int=number), interval, confirmed_at, immovable, yielding)


spans = st.builds(
    lambda start, length: span(start, None if length is None else start + length),
    st.integers(0, 40),
    st.none() | st.integers(0, 20),
)


def test_an_interval_holds_at_its_start_and_not_at_its_end() -> None:
    assert contains(span(1, 3), day(1))
    assert contains(span(1, 3), day(2))
    assert not contains(span(1, 3), day(3))
    assert contains(span(1), day(1000))


@pytest.mark.parametrize(
    ("one", "other", "together"),
    [
        (span(1, 3), span(3, 5), False),
        (span(1, 4), span(3, 5), True),
        (span(1), span(9), True),
        (span(1, 9), span(3, 5), True),
        (span(3, 3), span(1, 9), False),
        (span(1, 2), span(5), False),
    ],
)
def test_intervals_that_only_touch_do_not_overlap(one: Interval, other: Interval, together: bool) -> None:
    assert overlaps(one, other) is together
    assert overlaps(other, one) is together


@given(spans, st.lists(spans, max_size=4), st.integers(0, 80))
def test_what_is_left_after_subtracting_is_what_lies_in_no_block(
    interval: Interval, blocks: list[Interval], at: int
) -> None:
    left = any(contains(piece, day(at)) for piece in subtracted(interval, blocks))

    assert left == (contains(interval, day(at)) and not any(contains(block, day(at)) for block in blocks))


def test_a_newer_claim_ends_the_older_one_where_it_begins() -> None:
    placement = insert_fact([held(1, span(1))], span(5))

    assert placement == Placement((span(5),), (Cut(UUID(int=1), day(5)),))


def test_a_late_older_claim_ends_at_the_start_of_the_earliest_later_one() -> None:
    placement = insert_fact([held(1, span(10, 20)), held(2, span(20))], span(4))

    assert placement == Placement((span(4, 10),))


def test_a_claim_between_two_others_shortens_the_one_before_it() -> None:
    placement = insert_fact([held(1, span(1, 20)), held(2, span(20))], span(10))

    assert placement == Placement((span(10, 20),), (Cut(UUID(int=1), day(10)),))


def test_a_claim_with_an_end_interrupts_the_current_one_which_resumes() -> None:
    placement = insert_fact([held(1, span(1))], span(3, 5))

    assert placement == Placement((span(3, 5),), (Cut(UUID(int=1), day(3), (span(5),)),))


def test_a_claim_confirmed_later_is_not_displaced_by_one_from_in_between() -> None:
    placement = insert_fact([held(1, span(1), confirmed=8)], span(5))

    assert placement == Placement((span(5, 8),), (Cut(UUID(int=1), day(5), (span(8),)),))


def test_a_late_claim_resumes_where_a_known_interruption_is_over() -> None:
    placement = insert_fact([held(1, span(3, 5))], span(1))

    assert placement == Placement((span(1, 3), span(5)))


def test_an_immovable_claim_is_neither_cut_nor_overlapped() -> None:
    assert insert_fact([held(1, span(1), immovable=True)], span(5)) == Placement(())
    assert insert_fact([held(1, span(7), immovable=True)], span(5)) == Placement((span(5, 7),))


def test_a_yielding_claim_gives_way_even_if_it_began_later() -> None:
    placement = insert_fact([held(1, span(7), yielding=True)], span(5))

    assert placement == Placement((span(5),), (Cut(UUID(int=1), day(7)),))


claims = st.lists(
    st.tuples(st.integers(0, 60), st.none() | st.integers(1, 20)),
    min_size=1,
    max_size=8,
    unique_by=lambda c: c[0],
)


def timeline(intervals: list[tuple[int, int | None]]) -> list[Rival]:
    """Let claims arrive one after the other; what is held in the end."""
    stored: dict[UUID, Rival] = {}

    def store(interval: Interval, confirmed_at: datetime) -> None:
        id = UUID(int=len(stored))
        stored[id] = Rival(id, interval, confirmed_at)

    for start, length in intervals:
        placement = insert_fact(
            list(stored.values()), span(start, None if length is None else start + length)
        )
        for cut in placement.cuts:
            old = stored[cut.target]
            stored[cut.target] = replace(old, interval=Interval(old.interval.start, cut.at))
            for interval in cut.resumes:
                store(interval, old.confirmed_at)
        for interval in placement.holds:
            store(interval, day(start))
    return list(stored.values())


@given(claims)
def test_rivals_never_overlap_whatever_arrives(intervals: list[tuple[int, int | None]]) -> None:
    stored = timeline(intervals)

    assert not any(overlaps(one.interval, other.interval) for one, other in combinations(stored, 2))


@given(claims, st.integers(0, 90))
def test_no_time_that_somebody_claimed_is_left_without_a_claim(
    intervals: list[tuple[int, int | None]], at: int
) -> None:
    stored = timeline(intervals)

    claimed = any(contains(span(s, None if n is None else s + n), day(at)) for s, n in intervals)
    assert any(contains(h.interval, day(at)) for h in stored) == claimed


@given(st.data(), claims)
def test_open_claims_hold_at_the_same_times_in_whatever_order_they_arrive(
    data: st.DataObject, intervals: list[tuple[int, int | None]]
) -> None:
    opened = [(start, None) for start, _ in intervals]
    shuffled = data.draw(st.permutations(opened))

    def held_at(stored: list[Rival]) -> set[tuple[datetime, Interval]]:
        return {(h.confirmed_at, h.interval) for h in stored if h.interval.start != h.interval.until}

    assert held_at(timeline(opened)) == held_at(timeline(shuffled))
