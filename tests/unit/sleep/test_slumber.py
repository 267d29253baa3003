"""What a sleep cycle decides without looking at a store: summaries, patterns, options."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_app.errors import InvalidInput
from memory_app.records.run import Trigger
from memory_app.sleep.rules import (
    SleepOptions,
    Topic,
    checked_options,
    is_pattern,
    pattern_text,
    share_a_sentence,
    summary,
)

BEGAN = datetime(2026, 3, 2, tzinfo=UTC)


def topic(*days: int, label: str = "Boats") -> Topic:
    ids = tuple(UUID(int=n) for n in range(len(days)))
    return Topic(1, label, ids, tuple(BEGAN + timedelta(days=day) for day in days))


def test_a_summary_is_the_longest_text_where_it_holds_the_others() -> None:
    assert summary(["Bob likes tea.", "Bob likes green tea."], limit=100) == "Bob likes green tea."


def test_a_summary_adds_sentences_that_say_something_else() -> None:
    said = summary(
        ["Bob likes green tea in the morning.", "Bob likes tea. He drinks it from a blue cup."], limit=200
    )
    assert "blue cup" in said and "green tea" in said


def test_a_summary_keeps_to_its_limit_but_never_cuts_the_longest_text() -> None:
    longest = "Bob likes green tea in the morning, at noon and in the evening."
    assert summary([longest, "He drinks it from a cup."], limit=10) == longest


@given(st.lists(st.text(alphabet="abc de.", min_size=1, max_size=40), min_size=1, max_size=6))
def test_a_summary_does_not_depend_on_the_order(texts: list[str]) -> None:
    assert summary(texts, limit=80) == summary(list(reversed(texts)), limit=80)


def test_texts_that_share_a_sentence_may_each_add_others() -> None:
    assert share_a_sentence("Bob rows. He is tall.", "bob rows! His boat is red.")
    assert not share_a_sentence("Bob rows.", "Bob rows a boat.")


def test_a_pattern_needs_memories_weeks_and_time() -> None:
    def found(one: Topic, *, excluding: frozenset[str] = frozenset()) -> bool:
        return is_pattern(one, weeks=2, memories=3, excluding=excluding)

    assert found(topic(0, 7, 14))
    assert not found(topic(0, 7)), "too few memories"
    assert not found(topic(0, 1, 2)), "one week"
    assert not found(topic(5, 6, 8)), "two weeks by the calendar, but three days"
    assert not found(topic(0, 7, 14, label="Bob"), excluding=frozenset({"bob"})), (
        "who talks comes up by nature"
    )


def test_a_pattern_is_worded_the_same_each_time() -> None:
    assert pattern_text("Boats", BEGAN) == pattern_text("Boats", BEGAN + timedelta(days=3))


def test_options_that_are_not_given_take_the_defaults() -> None:
    defaults = SleepOptions(max_clusters=7, trigger=Trigger.INTERVAL)
    assert checked_options({"max_inspected": 9, "similarity": None}, defaults) == SleepOptions(
        max_clusters=7, max_inspected=9, trigger=Trigger.INTERVAL
    )


@pytest.mark.parametrize("value", [True, "5", 2.5, -1])
def test_a_number_of_clusters_is_a_whole_number(value: object) -> None:
    with pytest.raises(InvalidInput) as refused:
        checked_options({"max_clusters": value}, SleepOptions())
    assert refused.value.field == "max_clusters"
