"""The ladder: facts follow each other in time, whatever the order in which they arrive."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ladder_shelf import NOW, Shelf, day, judged, lives_in, said, stored

from memory_app.memories.intervals import Cut, Interval
from memory_app.memories.ladder import (
    Candidate,
    InsertClosed,
    InsertLinked,
    Reinforce,
    Supersede,
    Trust,
    outcome_of,
)
from memory_app.records.records import Outcome


def test_another_object_of_a_single_valued_relation_supersedes() -> None:
    old = stored(lives_in("Rome", at=1), 1)

    decision = judged(lives_in("Oslo", at=5), old)

    assert decision == Supersede((Interval(day(5)),), (Cut(old.memory.id, day(5)),))
    assert outcome_of(decision) is Outcome.SUPERSEDED


def test_an_older_fact_that_arrives_late_gets_a_closed_interval() -> None:
    rome, oslo = stored(lives_in("Rome", at=10, until=20), 1), stored(lives_in("Oslo", at=20), 2)

    assert judged(lives_in("Kyiv", at=4), rome, oslo) == InsertClosed((Interval(day(4), day(10)),))


@pytest.mark.parametrize("reason", ["superseded", "invalidated"])
def test_what_was_retired_with_its_time_still_counts_as_history(reason: str) -> None:
    rome, oslo = stored(lives_in("Rome", at=1, until=20), 1), stored(lives_in("Oslo", at=20), 2)
    rome = replace(rome, memory=replace(rome.memory, retired_at=NOW, retired_reason=reason))

    between = judged(lives_in("Kyiv", at=10), rome, oslo)

    assert between == InsertClosed((Interval(day(10), day(20)),), (Cut(rome.memory.id, day(10)),))
    assert judged(lives_in("Rome", at=5), rome, oslo) == Reinforce(rome.memory.id, confirmed_at=day(5))


def test_an_update_closes_only_the_same_subject_and_relation() -> None:
    shelf = Shelf()
    shelf.remember(lives_in("Rome", at=1))
    shelf.remember(said("Bob lives in Rome", ("Bob", "lives_in", "Rome"), at=1))
    shelf.remember(said("Anna works at Acme", ("Anna", "works_at", "Acme"), at=1))
    shelf.remember(said("Anna speaks Greek", ("Anna", "speaks", "Greek"), at=1))

    shelf.remember(lives_in("Oslo", at=5))
    shelf.remember(said("Anna speaks Dutch", ("Anna", "speaks", "Dutch"), at=5))

    assert shelf.current == ["Acme", "Dutch", "Greek", "Oslo", "Rome"]
    assert "Rome" in shelf.as_of(4)


def test_the_same_object_in_other_words_reinforces_the_current_fact() -> None:
    old = stored(lives_in("Rome", at=1), 1)
    again = said("The city Anna has her flat in is Rome", ("Anna", "lives_in", "Rome"), at=4)

    assert judged(again, old) == Reinforce(old.memory.id, confirmed_at=day(4))


def test_a_fact_that_becomes_true_again_is_a_new_row() -> None:
    shelf = Shelf()
    for place, at in (("Rome", 1), ("Oslo", 5), ("Rome", 9)):
        shelf.remember(lives_in(place, at=at))

    assert shelf.current == ["Rome"]
    assert [shelf.as_of(at) for at in (1, 5, 9)] == [["Rome"], ["Oslo"], ["Rome"]]
    assert len(shelf.rows) == 3


def test_a_past_fact_is_inserted_as_history_and_leaves_the_current_one() -> None:
    shelf = Shelf()
    shelf.remember(lives_in("Rome", at=1))

    decision = shelf.remember(lives_in("Oslo", at=5, until=8))

    assert isinstance(decision, InsertClosed)
    assert shelf.current == ["Rome"]
    assert [shelf.as_of(at) for at in (4, 5, 7, 8)] == [["Rome"], ["Oslo"], ["Oslo"], ["Rome"]]


def test_a_closed_statement_without_a_fact_is_history_too() -> None:
    decision = judged(
        said("Anna was on a diet", at=1, until=5), stored(said("Anna is on a diet"), 1, similarity=0.99)
    )

    assert decision == InsertClosed((Interval(day(1), day(5)),))


def test_a_newly_known_end_closes_the_fact_that_it_repeats() -> None:
    old = stored(lives_in("Rome", at=1), 1)

    decision = judged(lives_in("Rome", at=1, until=30), old)

    assert decision == Reinforce(old.memory.id, confirmed_at=day(1), valid_until=day(30))


def test_an_earlier_start_widens_the_current_fact() -> None:
    old = stored(lives_in("Rome", at=9), 1)

    assert judged(lives_in("Rome", at=2), old) == Reinforce(
        old.memory.id, confirmed_at=day(2), valid_from=day(2)
    )


def test_liking_what_was_disliked_ends_the_dislike() -> None:
    shelf = Shelf()
    shelf.remember(said("Anna likes olives", ("Anna", "likes", "olives"), at=1))
    shelf.remember(said("Anna likes cheese", ("Anna", "likes", "cheese"), at=1))

    decision = shelf.remember(said("Anna dislikes olives", ("Anna", "dislikes", "olives"), at=5))

    assert isinstance(decision, Supersede)
    assert sorted(row.memory.text for row in shelf.live if row.memory.valid_until is None) == [
        "Anna dislikes olives",
        "Anna likes cheese",
    ]


def test_a_denial_of_the_same_object_supersedes_and_is_no_repetition() -> None:
    old = stored(lives_in("Rome", at=1), 1)

    decision = judged(said("Anna does not live in Rome", ("Anna", "lives_in", "Rome"), at=4), old)

    assert isinstance(decision, Supersede)


def test_a_pinned_fact_is_superseded_but_stays_as_history() -> None:
    shelf = Shelf()
    shelf.remember(lives_in("Rome", at=1))
    (id, row), *_ = shelf.rows.items()
    shelf.rows[id] = replace(row, memory=replace(row.memory, pinned=True))

    shelf.remember(lives_in("Oslo", at=5))

    assert shelf.current == ["Oslo"]
    assert shelf.as_of(3) == ["Rome"]


@pytest.mark.parametrize("lower", [Trust.ASSISTANT, Trust.TOOL])
def test_what_is_trusted_less_never_ends_what_the_user_stated(lower: Trust) -> None:
    old = stored(lives_in("Rome", at=1), 1, similarity=0.8)

    decision = judged(lives_in("Oslo", at=5, trust=lower), old)

    assert decision == InsertLinked(((old.memory.id, 0.8),), contested=True)


def test_a_contested_statement_is_kept_once_and_ends_when_the_user_speaks() -> None:
    shelf = Shelf()
    shelf.remember(lives_in("Rome", at=1))
    shelf.remember(lives_in("Oslo", at=5, trust=Trust.TOOL))
    assert isinstance(shelf.remember(lives_in("Oslo", at=6, trust=Trust.TOOL)), Reinforce)
    assert isinstance(shelf.remember(lives_in("Oslo", at=4, trust=Trust.TOOL)), Reinforce)

    shelf.remember(lives_in("Oslo", at=8))

    assert shelf.current == ["Oslo"]
    assert [row.single_valued for row in shelf.live if row.memory.valid_until is None] == [True]


def test_what_the_user_stated_ends_a_guess_even_if_it_is_older() -> None:
    shelf = Shelf()
    shelf.remember(lives_in("Oslo", at=5, trust=Trust.ASSISTANT))
    shelf.remember(lives_in("Rome", at=2))

    assert shelf.current == ["Rome"]


def test_facts_follow_each_other_in_time_even_without_deduplication() -> None:
    shelf = Shelf()
    shelf.remember(lives_in("Rome", at=1), deduplicate=False)
    shelf.remember(lives_in("Oslo", at=5), deduplicate=False)

    assert shelf.current == ["Oslo"]


moves = st.lists(
    st.tuples(st.sampled_from(["Rome", "Oslo", "Kyiv"]), st.integers(0, 40)),
    min_size=1,
    max_size=6,
    unique_by=lambda move: move[1],
)
stays = st.lists(st.integers(0, 12), max_size=3, unique=True)
"""Numbers of closed visits, which do not overlap: visit n is from 3n + 1 to 3n + 3."""


@given(st.data(), moves, stays)
def test_the_order_of_arrival_does_not_change_which_fact_is_current(
    data: st.DataObject, moved: list[tuple[str, int]], visits: list[int]
) -> None:
    arrivals = [lives_in(place, at=at) for place, at in moved]
    arrivals += [lives_in(f"Visit{n}", at=3 * n + 1, until=3 * n + 3) for n in visits]
    shelf = Shelf()

    for candidate in data.draw(st.permutations(arrivals)):
        shelf.remember(candidate)

    assert shelf.current == [max(moved, key=lambda move: move[1])[0]]


said_of_now = st.lists(
    st.tuples(st.integers(0, 40), st.integers(0, 30)),
    min_size=1,
    max_size=6,
    unique_by=lambda claim: claim[0],
)
"""Claims about the present: when each was said, and how many days before that it began."""


def ends_at(begun: int, said_at: int, later: Sequence[tuple[int, int]]) -> datetime | None:
    """When a claim ends: where the next begins, or where that was said if it reaches back behind this one."""
    ends = [start if start > said_at else at for start, at in later if at > said_at]
    return day(max(begun, min(ends))) if ends else None


@given(st.data(), said_of_now)
def test_claims_about_now_hold_at_the_same_times_in_any_order(
    data: st.DataObject, drawn: list[tuple[int, int]]
) -> None:
    claims = [(at - before, at) for at, before in drawn]
    shelf = Shelf()

    for start, at in data.draw(st.permutations(claims)):
        shelf.remember(lives_in(f"Town{at}", at=start, confirmed=at))

    assert {(row.memory.object, row.memory.valid_from, row.memory.valid_until) for row in shelf.live} == {
        (f"Town{at}", day(start), ends_at(start, at, claims)) for start, at in claims
    }


@given(
    st.data(),
    st.lists(
        st.tuples(st.sampled_from(["Rome", "Oslo", "Kyiv"]), st.integers(0, 40), st.integers(0, 30)),
        min_size=1,
        max_size=6,
        unique_by=lambda claim: claim[1],
    ),
)
def test_the_last_word_about_now_is_current_in_any_order(
    data: st.DataObject, claims: list[tuple[str, int, int]]
) -> None:
    shelf = Shelf()

    for place, at, before in data.draw(st.permutations(claims)):
        shelf.remember(lives_in(place, at=at - before, confirmed=at))

    assert shelf.current == [max(claims, key=lambda claim: claim[1])[0]]


@given(said_of_now, st.sampled_from([("Bob", "lives_in"), ("Anna", "works_at"), ("Anna", "speaks")]))
def test_an_update_leaves_other_subjects_and_relations_alone(
    drawn: list[tuple[int, int]], other: tuple[str, str]
) -> None:
    subject, relation = other
    shelf = Shelf()
    shelf.remember(said(f"{subject} {relation} Acme", (subject, relation, "Acme"), at=20))

    for at, before in drawn:
        shelf.remember(lives_in(f"Town{at}", at=at - before, confirmed=at))

    (row,) = (row for row in shelf.rows.values() if row.memory.object == "Acme")
    assert (row.memory.valid_from, row.memory.valid_until, row.memory.retired_at) == (day(20), None, None)


def test_what_had_ended_holds_again_when_it_is_said_afterwards() -> None:
    shelf = Shelf()
    shelf.remember(lives_in("Rome", at=1))
    shelf.remember(lives_in("Oslo", at=5))

    shelf.remember(lives_in("Rome", at=3, confirmed=9))

    assert shelf.current == ["Rome"]
    assert shelf.as_of(10) == ["Rome"]


def test_an_earlier_start_told_later_shortens_the_fact_before_it() -> None:
    shelf = Shelf()
    shelf.remember(lives_in("Porto", at=1))
    shelf.remember(lives_in("Lisbon", at=9))

    shelf.remember(lives_in("Lisbon", at=5, confirmed=12))
    shelf.remember(lives_in("Faro", at=11, confirmed=11))

    assert [shelf.as_of(at) for at in (4, 5, 10)] == [["Porto"], ["Lisbon"], ["Lisbon"]]
    assert shelf.current == ["Lisbon"]


@given(st.data(), moves)
def test_what_is_trusted_less_changes_nothing_that_is_held_in_time(
    data: st.DataObject, moved: list[tuple[str, int]]
) -> None:
    guesses = [lives_in("Bonn", at=at + 1, trust=Trust.TOOL) for _, at in moved[:3]]
    shelf = Shelf()

    for candidate in data.draw(st.permutations([*(lives_in(place, at=at) for place, at in moved), *guesses])):
        shelf.remember(candidate)

    current = [
        row.memory.object for row in shelf.live if row.single_valued and row.memory.valid_until is None
    ]
    assert current == [max(moved, key=lambda move: move[1])[0]]


tastes = st.lists(
    st.tuples(st.sampled_from(["likes", "dislikes"]), st.integers(0, 40)),
    min_size=1,
    max_size=6,
    unique_by=lambda taste: taste[1],
)


@given(st.data(), tastes)
def test_the_order_of_arrival_does_not_decide_which_opposite_is_current(
    data: st.DataObject, tasted: list[tuple[str, int]]
) -> None:
    shelf = Shelf()
    for relation, at in data.draw(st.permutations(tasted)):
        shelf.remember(said(f"Anna {relation} olives", ("Anna", relation, "olives"), at=at))

    current = [row.memory.relation for row in shelf.live if row.memory.valid_until is None]
    assert current == [max(tasted, key=lambda taste: taste[1])[0]]


anything = st.builds(
    lambda text, fact, at, length, trust: said(
        text, fact, at=at, until=None if length is None else at + length, trust=trust
    ),
    st.sampled_from(["Anna is there", "Anna is here", "Anna was there"]),
    st.none()
    | st.tuples(
        st.just("Anna"), st.sampled_from(["lives_in", "left", "works_at"]), st.sampled_from(["Rome", "Oslo"])
    ),
    st.integers(0, 9),
    st.none() | st.sampled_from([0, 2, 300]),
    st.sampled_from(Trust),
)


@given(st.lists(anything, max_size=9), st.floats(0, 1))
def test_nothing_that_is_decided_breaks_a_rule_of_the_store(
    candidates: list[Candidate], cosine: float
) -> None:
    shelf = Shelf(similarity=lambda one, other: 1.0 if one == other else cosine)

    for candidate in candidates:
        shelf.remember(candidate)

    assert all(
        row.memory.valid_until is None or row.memory.valid_from <= row.memory.valid_until
        for row in shelf.live
    )
