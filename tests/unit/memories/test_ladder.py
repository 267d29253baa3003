"""The ladder: what becomes of a statement, told by its rules."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, permutations
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ladder_shelf import NOW, Shelf, day, judged, lives_in, said, stored

from memory_app.memories.ladder import Insert, InsertLinked, Merge, Neighbour, Reinforce, Trust, outcome_of
from memory_app.records.records import Outcome

# --- the same text ------------------------------------------------------------------------------------------


def test_the_same_text_again_reinforces() -> None:
    old = stored(said("Anna likes tea."), 1)

    decision = judged(said("anna likes  tea", at=3), old)

    assert decision == Reinforce(old.memory.id, confirmed_at=day(3))
    assert outcome_of(decision) is Outcome.REINFORCED


def test_the_same_text_reinforces_even_without_deduplication() -> None:
    old = stored(said("Anna likes tea"), 1)

    assert isinstance(judged(said("Anna likes tea", at=3), old, deduplicate=False), Reinforce)


@pytest.mark.parametrize(
    "other",
    [
        stored(said("Anna likes tea", kind="anchor"), 1),
        stored(said("Anna likes tea", session="s1"), 1),
        stored(said("Anna likes tea", at=0, until=2), 1),
        replace(
            stored(said("Anna likes tea"), 1),
            memory=replace(
                stored(said("Anna likes tea"), 1).memory, retired_at=NOW, retired_reason="evicted"
            ),
        ),
    ],
    ids=["other kind", "other session", "closed", "retired"],
)
def test_the_same_text_elsewhere_or_no_longer_current_is_inserted_anew(other: Neighbour) -> None:
    assert judged(said("Anna likes tea", at=5), other) == Insert()


def test_history_is_neither_merged_nor_linked() -> None:
    row = stored(said("Anna likes olives", at=0, until=200), 1, similarity=0.97)
    superseded = replace(row, memory=replace(row.memory, retired_at=NOW, retired_reason="superseded"))
    closed = stored(said("Anna likes olives", at=0, until=2), 2, similarity=0.97)

    assert judged(said("Anna really likes olives", at=5), superseded, closed, alike=1.0) == Insert()


def test_a_text_that_states_its_fact_replaces_one_that_does_not() -> None:
    plain = stored(said("Anna lives in Rome"), 1)

    decision = judged(lives_in("Rome", at=3), plain)

    assert isinstance(decision, Merge)
    assert decision.targets == (plain.memory.id,)
    assert (decision.merged.subject_key, decision.merged.memory.relation, decision.merged.object_key) == (
        "anna",
        "lives_in",
        "rome",
    )
    assert decision.merged.single_valued


# --- the same meaning ---------------------------------------------------------------------------------------


def test_a_nearly_equal_text_reinforces() -> None:
    old = stored(said("Anna likes olives"), 1, similarity=0.96)

    assert judged(said("Anna really likes olives", at=2), old) == Reinforce(
        old.memory.id, confirmed_at=day(2)
    )


@pytest.mark.parametrize(
    "text",
    [
        "Anna ran 12 km today",
        "Anna did not run 10 km today",
        "Anna ran 10 km yesterday",
        "Bob ran 10 km today",
    ],
)
@pytest.mark.parametrize("cosine", [0.86, 0.97, 1.0])
def test_a_number_a_date_a_negation_or_a_name_prevents_merging(text: str, cosine: float) -> None:
    old = stored(said("Anna ran 10 km today"), 1, similarity=cosine)

    assert judged(said(text), old) == InsertLinked(((old.memory.id, cosine),))


def test_a_paraphrased_fact_is_recognised_by_subject_relation_and_object() -> None:
    fact = ("Anna", "likes", "olives")
    old = stored(said("Anna is very fond of olives", fact), 1, similarity=0.4)

    assert isinstance(judged(said("Anna loves olives", fact), old), Reinforce)
    longer = judged(said("Anna loves olives on bread from the market", fact), old)
    assert isinstance(longer, Merge)
    assert longer.merged.memory.text == "Anna loves olives on bread from the market"


def test_two_events_with_one_subject_relation_and_object_stay_apart() -> None:
    fact = ("Anna", "visited", "Rome")
    old = stored(said("Anna visited Rome in 2019", fact), 1, similarity=0.95)

    assert isinstance(judged(said("Anna visited Rome in 2021", fact), old), InsertLinked)


def test_a_caller_can_ask_for_no_deduplication() -> None:
    old = stored(said("Anna likes olives"), 1, similarity=0.98)

    assert isinstance(judged(said("Anna really likes olives"), old, deduplicate=False), InsertLinked)


# --- merging ------------------------------------------------------------------------------------------------


def test_similar_texts_of_one_kind_are_merged_into_the_longest() -> None:
    old = stored(said("Anna likes olives"), 1, similarity=0.9)

    decision = judged(said("Anna really likes olives, and cheese"), old)

    assert isinstance(decision, Merge)
    assert decision.targets == (old.memory.id,)
    assert decision.merged.memory.text == "Anna really likes olives, and cheese"
    assert decision.targets == (old.memory.id,)
    assert outcome_of(decision) is Outcome.MERGED


def test_at_most_five_statements_are_merged_at_once() -> None:
    many = [stored(said(f"Anna likes olives{' really' * n}"), n + 1, similarity=0.9) for n in range(9)]

    decision = judged(said("Anna likes olives much"), *many, alike=0.9)

    assert isinstance(decision, Merge)
    assert len(decision.targets) == 4


def test_merging_needs_every_pair_to_be_similar() -> None:
    near, other = (
        stored(said("Anna likes olives"), 1, similarity=0.9),
        stored(said("Olives, Anna likes"), 2, similarity=0.88),
    )

    decision = judged(said("Anna likes olives much"), near, other, alike=0.5)

    assert isinstance(decision, Merge)
    assert decision.targets == (near.memory.id,)


def test_another_kind_another_session_and_another_trust_are_not_merged() -> None:
    others = [
        stored(said("Anna likes olives", kind="anchor"), 1, similarity=0.9),
        stored(said("Anna likes olives", session="s1"), 2, similarity=0.9),
        stored(said("Anna likes olives", trust=Trust.ASSISTANT), 3, similarity=0.9),
    ]

    decision = judged(said("Anna likes olives much"), *others, alike=0.9)

    assert decision == InsertLinked(((UUID(int=1), 0.9), (UUID(int=3), 0.9)))


def test_different_facts_in_similar_words_are_not_merged() -> None:
    old = stored(said("Anna likes olives", ("Anna", "likes", "olives")), 1, similarity=0.9)

    decision = judged(said("Anna likes olives much", ("Bea", "likes", "olives")), old)

    assert isinstance(decision, InsertLinked)


def test_what_is_only_related_is_linked_with_its_cosine() -> None:
    near, far = stored(said("Anna swims"), 1, similarity=0.75), stored(said("Bob sails"), 2, similarity=0.74)

    decision = judged(said("Anna dives"), near, far)

    assert decision == InsertLinked(((near.memory.id, 0.75),))
    assert outcome_of(decision) is Outcome.LINKED


def test_a_statement_without_neighbours_is_inserted() -> None:
    assert judged(said("Anna dives")) == Insert()
    assert outcome_of(Insert()) is Outcome.INSERTED


TOPICS = ("about sports", "about sports, cooking", "about cooking", "about cooking, pets", "about pets")


def chained(one: str, other: str) -> float:
    """Neighbours in `TOPICS` are alike, all others are not."""
    apart = abs(TOPICS.index(one) - TOPICS.index(other))
    return (1.0, 0.9)[apart] if apart < 2 else 0.3


@pytest.mark.parametrize("order", list(permutations(range(5)))[::7])
def test_a_chain_of_similar_texts_does_not_snowball_over_many_cycles(order: tuple[int, ...]) -> None:
    shelf = Shelf(similarity=chained)

    for _ in range(4):
        for place in order:
            shelf.remember(said(TOPICS[place]))

    for row in shelf.live:
        assert len(set(shelf.origins[row.memory.id])) <= 2
        assert all(chained(x, y) >= 0.85 for x, y in combinations(shelf.origins[row.memory.id], 2))


def test_merging_makes_progress_on_a_busy_day_and_ends() -> None:
    shelf = Shelf(similarity=lambda one, other: 1.0 if one == other else 0.9)
    texts = [f"Anna likes olives{' really' * n}" for n in range(30)]

    for text in texts * 2:
        shelf.remember(said(text))

    assert len(shelf.live) <= 3
    assert sum(row.memory.repeat_count for row in shelf.live) == 60


def test_daily_findings_with_different_numbers_stay_apart() -> None:
    shelf = Shelf(similarity=lambda one, other: 0.99)

    for number in range(12):
        shelf.remember(said(f"The test suite found {number} faults"))

    assert len(shelf.live) == 12


words = st.lists(
    st.sampled_from(["tea", "7", "two", "not", "Monday", "likes", "Anna", "May 3"]), min_size=1, max_size=5
)


@given(words, words)
def test_texts_with_different_numbers_dates_or_negations_never_become_one(
    one: list[str], other: list[str]
) -> None:
    matters = {"7", "two", "not", "Monday", "May 3"}
    old = stored(said(" ".join(one)), 1, similarity=0.99)

    decision = judged(said(" ".join(other)), old)

    if matters & set(one) != matters & set(other):
        assert isinstance(decision, InsertLinked)
