"""Keyword weights, relevance, near twins and strength: the rules, in their words."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_app.language.keywords import (
    MAX_KEYWORD_TERMS,
    REFERENCE_LENGTH,
    SATURATION,
    keyword_weights,
    query_weights,
)
from memory_app.language.text import term_id, terms
from memory_app.memories.strength import fades_at, strength
from memory_app.records.records import Memory
from memory_app.records.scoring import PRESETS, SIGNAL_NAMES, contributions, recency, relevance

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
MONTH = timedelta(days=30)


def memory(**changes: object) -> Memory:
    plain = Memory(id=uuid4(), kind="fact", text="Ann likes tea", created_at=NOW, valid_from=NOW)
    return replace(plain, **changes)  # type: ignore[arg-type]


# --- keywords -----------------------------------------------------------------------------------------------


def score(query: str, texts: list[str]) -> list[float]:
    rows = [keyword_weights(terms(text)) for text in texts]
    counts = Counter(term for row in rows for term in row)
    asked = query_weights(terms(query), counts, len(rows))
    return [sum(weight * row.get(term, 0.0) for term, weight in asked.items()) for row in rows]


def test_a_rare_word_counts_more_than_a_common_one() -> None:
    common, rare = score("dog heron", ["dog", "heron", "dog runs", "dog sleeps"])[:2]
    assert rare > common > 0


def test_a_short_text_beats_a_long_one_with_the_same_word() -> None:
    long_text = "dog " + " ".join(f"filler{n}" for n in range(300))
    short, long = score("dog", ["dog barks", long_text])
    assert short > long > 0


def test_repeating_a_word_helps_less_and_less() -> None:
    once, twice, often = (
        keyword_weights({"dog": n, "x": REFERENCE_LENGTH - n})[term_id("dog")] for n in (1, 2, 3)
    )
    assert once < twice < often <= SATURATION + 1
    assert often - twice < twice - once


def test_a_text_of_reference_length_has_the_weight_of_plain_bm25() -> None:
    weights = keyword_weights({"dog": 1, "x": REFERENCE_LENGTH - 1})
    assert weights[term_id("dog")] == pytest.approx(1.0)


def test_words_that_no_row_has_are_not_asked_for() -> None:
    assert query_weights({"dog": 1, "heron": 1}, {term_id("dog"): 3}, 10).keys() == {term_id("dog")}
    assert query_weights({"dog": 1}, {}, 0) == {}


def test_a_count_that_ran_ahead_of_the_total_does_not_break_the_score() -> None:
    assert query_weights({"dog": 1}, {term_id("dog"): 7}, 5)[term_id("dog")] > 0


def test_a_huge_text_keeps_its_most_frequent_terms() -> None:
    counts = {f"word{n}": 1 for n in range(MAX_KEYWORD_TERMS + 100)} | {"zebra": 2}
    weights = keyword_weights(counts)
    assert len(weights) <= MAX_KEYWORD_TERMS
    assert term_id("zebra") in weights


@given(st.dictionaries(st.text(min_size=1, max_size=5), st.integers(1, 10_000), max_size=50))
def test_keyword_weights_are_positive_and_bounded(counts: dict[str, int]) -> None:
    assert all(0 < weight <= SATURATION + 1 for weight in keyword_weights(counts).values())


# --- relevance ----------------------------------------------------------------------------------------------


def test_the_fixed_presets_have_their_published_shares() -> None:
    shares = {
        name: {
            signal: weight
            for signal, weight in weights.items()
            if weight and signal not in ("same_session", "feedback")
        }
        for name, weights in PRESETS.items()
    }
    assert shares["entity_first"] == {"similarity": 0.4, "recency": 0.3, "frequency": 0.3}
    assert shares["hybrid"] == {"similarity": 0.7, "keyword": 0.3}
    assert shares["keyword"] == {"keyword": 1.0}
    assert shares["vector"] == {"similarity": 1.0}


def test_one_arm_alone_is_moved_by_nothing_else() -> None:
    everything = dict.fromkeys(SIGNAL_NAMES, 1.0)
    assert relevance(everything, PRESETS["keyword"]) == relevance({"keyword": 1.0}, PRESETS["keyword"])
    assert relevance(everything, PRESETS["vector"]) == relevance({"similarity": 1.0}, PRESETS["vector"])


def test_balanced_does_not_care_how_old_something_is() -> None:
    assert PRESETS["balanced"]["recency"] == 0


def test_a_signal_that_is_not_in_the_table_is_refused() -> None:
    with pytest.raises(KeyError, match="luck"):
        relevance({"luck": 1.0}, PRESETS["balanced"])


@given(st.dictionaries(st.sampled_from(SIGNAL_NAMES), st.floats(0, 1)))
def test_contributions_add_up_to_the_relevance(signals: dict[str, float]) -> None:
    for weights in PRESETS.values():
        parts = contributions(signals, weights)
        assert relevance(signals, weights) == pytest.approx(sum(parts.values()))


@pytest.mark.parametrize("signal", ["keyword", "similarity", "named_person", "session_keyword", "feedback"])
def test_more_of_a_good_signal_never_ranks_lower(signal: str) -> None:
    low, high = {signal: 0.2}, {signal: 0.9}
    assert relevance(high, PRESETS["balanced"]) > relevance(low, PRESETS["balanced"])


def test_a_turn_that_asks_ranks_below_one_that_tells() -> None:
    telling = {"similarity": 0.5, "keyword": 0.5}
    asking = {**telling, "asks": 1.0}
    assert relevance(asking, PRESETS["balanced"]) < relevance(telling, PRESETS["balanced"])


def test_recency_halves_in_fourteen_days() -> None:
    assert recency(NOW, NOW) == 1.0
    assert recency(NOW + MONTH, NOW) == 1.0
    assert recency(NOW - timedelta(days=14), NOW) == pytest.approx(0.5)


# --- strength -----------------------------------------------------------------------------------------------


def test_strength_halves_with_each_half_life_since_it_was_last_touched() -> None:
    now_strong = strength(memory(), NOW, MONTH)
    assert strength(memory(), NOW + MONTH, MONTH) == pytest.approx(now_strong / 2)
    assert strength(memory(), NOW + 2 * MONTH, MONTH) == pytest.approx(now_strong / 4)


def test_being_recalled_or_seen_again_revives() -> None:
    later = NOW + 3 * MONTH
    for touched in (memory(last_recalled=later), memory(last_seen=later)):
        assert strength(touched, later, MONTH) == pytest.approx(strength(memory(), NOW, MONTH))


def test_pinned_is_as_strong_as_can_be_and_never_fades() -> None:
    pinned = memory(pinned=True, importance=1, confidence=0.0, feedback_score=-1.0)
    assert strength(pinned, NOW + 100 * MONTH, MONTH) == 1.0
    assert fades_at(pinned, 0.5, MONTH) is None


def test_a_kind_without_half_life_never_fades() -> None:
    assert strength(memory(), NOW + 1000 * MONTH, None) == strength(memory(), NOW, None)
    assert fades_at(memory(), 0.1, None) is None


@pytest.mark.parametrize(
    "better",
    [
        {"importance": 9},
        {"confidence": 1.0},
        {"recall_count": 5},
        {"repeat_count": 4},
        {"feedback_score": 0.5},
    ],
)
def test_importance_confidence_use_and_feedback_strengthen(better: dict[str, object]) -> None:
    assert strength(memory(**better), NOW, MONTH) > strength(memory(), NOW, MONTH)


@given(
    st.integers(1, 10),
    st.floats(0, 1),
    st.integers(0, 10_000),
    st.floats(-1, 1),
    st.timedeltas(timedelta(days=-400), timedelta(days=40_000)),
)
def test_strength_stays_between_0_and_1(
    importance: int, confidence: float, recalls: int, feedback: float, age: timedelta
) -> None:
    held = memory(importance=importance, confidence=confidence, recall_count=recalls, feedback_score=feedback)
    assert 0 <= strength(held, NOW + age, MONTH) <= 1


def test_the_time_of_fading_is_when_strength_reaches_the_threshold() -> None:
    at = fades_at(memory(), 0.1, MONTH)
    assert at is not None
    assert strength(memory(), at, MONTH) == pytest.approx(0.1, rel=1e-6)


def test_what_is_too_weak_already_has_faded_when_it_was_last_touched() -> None:
    assert fades_at(memory(importance=1), 0.99, MONTH) == NOW


def test_fading_beyond_the_calendar_is_never() -> None:
    assert fades_at(memory(), 1e-300, timedelta(days=100_000)) is None
    assert fades_at(memory(), 0.0, MONTH) is None
