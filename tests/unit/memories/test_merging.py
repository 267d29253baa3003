"""What becomes of the fields of merged memories, and how much they are believed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ladder_shelf import THRESHOLDS, Shelf, day, rich, said, stored

from memory_app.memories.ladder import Reinforce, Trust, cohesive, corroborated, merge, needs_model, trust_of
from memory_app.records.records import EmotionalState, Origin, RelationalContext


def test_merged_fields_are_united_added_or_the_strongest() -> None:
    calm, joy = EmotionalState("calm", 0.2), EmotionalState("joy", 0.9, "supporting")
    one = rich(
        1, tags=("food", "taste"), emotional_state=calm, recall_count=3, repeat_count=2, importance=6, pinned=True,
        last_recalled=day(7), relational_context=RelationalContext(0.4, ("warm",), user_values=("honesty",)),
    )  # fmt: skip
    two = rich(
        2, tags=("taste", "olives"), emotional_state=joy, recall_count=4, repeat_count=1, importance=9,
        valid_from=day(-9), relational_context=RelationalContext(0.7, ("direct", "warm")),
    )  # fmt: skip

    merged = merge([two, one]).memory

    assert merged.tags == ("food", "taste", "olives")
    assert merged.emotional_state == joy
    assert (merged.recall_count, merged.repeat_count) == (7, 3)
    assert merged.pinned
    assert merged.relational_context == RelationalContext(0.7, ("warm", "direct"), user_values=("honesty",))
    assert (merged.valid_from, merged.created_at) == (day(-9), one.memory.created_at)
    assert merged.last_recalled == day(7)


@pytest.mark.parametrize(("counts", "importance"), [((1, 1), 7), ((2, 2), 7), ((1, 1, 1, 1), 8), ((9, 9), 6)])
def test_merging_raises_importance_by_at_most_two_for_frequency(
    counts: Sequence[int], importance: int
) -> None:
    assert (
        merge([rich(n, importance=6, repeat_count=count) for n, count in enumerate(counts)]).memory.importance
        == importance
    )
    assert (
        merge(
            [rich(n, importance=10, repeat_count=count) for n, count in enumerate(counts)]
        ).memory.importance
        == 10
    )


@given(st.lists(st.integers(1, 4), min_size=2, max_size=30))
def test_merge_after_merge_does_not_carry_importance_to_the_top(counts: list[int]) -> None:
    importance, total = 4, counts[0]
    for count in counts[1:]:
        merged = merge(
            [rich(1, importance=importance, repeat_count=total), rich(2, importance=4, repeat_count=count)]
        )
        importance, total = merged.memory.importance, merged.memory.repeat_count

    assert importance <= 6


def test_the_order_of_the_parents_does_not_change_what_is_merged() -> None:
    rows = [rich(n, tags=(str(n),), confidence=n / 10, importance=n) for n in range(1, 5)]

    assert len({merge(list(order)) for order in permutations(rows)}) == 1


def test_merging_what_is_already_merged_changes_nothing() -> None:
    shelf = Shelf(similarity=lambda one, other: 1.0 if one == other else 0.9)
    for text in ("Anna likes olives", "Anna likes olives really", "Anna really likes olives a lot"):
        shelf.remember(said(text))
    texts = [row.memory.text for row in shelf.live]

    decision = shelf.remember(said(texts[0]))

    assert isinstance(decision, Reinforce)
    assert [row.memory.text for row in shelf.live] == texts == ["Anna really likes olives a lot"]


def test_a_model_is_needed_only_when_the_longest_text_loses_much() -> None:
    assert not needs_model(["Anna likes olives", "Anna really likes olives"])
    assert needs_model(
        ["Anna likes green olives and goat cheese", "Anna picks olives with her sister in the hills"]
    )


def test_merging_stored_memories_finds_groups_in_which_all_are_alike() -> None:
    rows = [stored(said(f"Anna likes olives{' really' * n}"), n + 1) for n in range(4)]
    pairs = {
        frozenset({UUID(int=1), UUID(int=2)}): 0.95,
        frozenset({UUID(int=2), UUID(int=3)}): 0.9,
        frozenset({UUID(int=3), UUID(int=4)}): 0.86,
        frozenset({UUID(int=1), UUID(int=3)}): 0.6,
    }

    groups = cohesive(rows, thresholds=THRESHOLDS, pairs=pairs)

    assert [[n.memory.id.int for n in group] for group in groups] == [[1, 2], [3, 4]]


def test_what_no_rule_unites_is_that_of_the_oldest_row_that_has_it() -> None:
    types = (None, "pattern", "consolidation")
    rows = [rich(n, synthesis_type=type) for n, type in enumerate(types, start=1)]
    assert merge(rows).memory.synthesis_type == "pattern"


# --- confidence and trust -----------------------------------------------------------------------------------


def test_repetition_by_one_source_does_not_raise_confidence() -> None:
    assert corroborated(0.8, ["user:Anna"], "user:anna") == 0.8
    assert corroborated(0.8, ["user:Anna"], None) == 0.8
    assert corroborated(0.8, [], "user:Anna") == 0.8
    assert merge(
        [replace(rich(n), sources=("user:Anna",)) for n in range(5)]
    ).memory.confidence == pytest.approx(0.8)


def test_an_independent_source_raises_confidence_but_never_to_certainty() -> None:
    confidence, sources = 0.8, ["user:Anna"]
    for n in range(50):
        raised = corroborated(confidence, sources, f"user:{n}")
        assert confidence < raised <= 0.99 or raised == pytest.approx(0.99)
        confidence, sources = raised, [*sources, f"user:{n}"]

    assert corroborated(1.0, ["user:Anna"], "user:Bob") == 1.0
    two = merge([replace(rich(1), sources=("user:Anna",)), replace(rich(2), sources=("user:Bob",))])
    assert two.memory.confidence == pytest.approx(corroborated(0.8, ["user:Anna"], "user:Bob"))


@pytest.mark.parametrize(
    ("origin", "sources", "trust"),
    [
        (Origin.DECLARED, [], Trust.USER),
        (Origin.EXTRACTED, ["Anna"], Trust.USER),
        (Origin.EXTRACTED, ["assistant:Robo"], Trust.ASSISTANT),
        (Origin.EXTRACTED, ["tool:search"], Trust.TOOL),
        (Origin.EXTRACTED, ["tool:search", "user:Anna"], Trust.USER),
        (Origin.SYNTHESIZED, [], Trust.ASSISTANT),
        (Origin.IMPORTED, ["import:chat"], Trust.USER),
    ],
)
def test_trust_is_that_of_the_best_source(origin: Origin, sources: list[str], trust: Trust) -> None:
    assert trust_of(origin, sources) is trust
