"""The score of an answer: a share of what can be reached, times how much of the query there is at all."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_app.language.keywords import full_match, keyword_weights, query_weights
from memory_app.language.text import term_id, terms
from memory_app.recall.score import Scale, bearing, full_relevance

SHARES = st.floats(0, 1)


@given(st.floats(-5, 5), st.floats(0, 5), SHARES)
def test_a_score_lies_between_nothing_and_one(relevance: float, full: float, share: float) -> None:
    assert 0 <= Scale(full, share).score(relevance) <= 1


@given(st.floats(-5, 5), st.floats(-5, 5), SHARES)
def test_a_higher_relevance_never_scores_lower(one: float, other: float, share: float) -> None:
    scale = Scale(2.0, share)
    assert scale.score(min(one, other)) <= scale.score(max(one, other))


def test_full_relevance_counts_what_can_be_reached() -> None:
    weights = {"similarity": 0.5, "keyword": 0.25, "asks": -1.0, "in_time": 0.4}
    assert full_relevance(weights, without=()) == pytest.approx(1.15)
    assert full_relevance(weights, without=("in_time",)) == pytest.approx(0.75)


@given(st.lists(SHARES, max_size=3), st.lists(SHARES, max_size=3))
def test_words_or_meaning_suffice_to_bear_on_a_query(coverages: list[float], cosines: list[float]) -> None:
    found = bearing(coverages, cosines)
    assert max([0.0, *coverages, *cosines]) <= found + 1e-9
    assert found <= 1
    if not any(coverages) and not any(cosines):
        assert found == 0


def test_words_that_no_row_has_are_missing_from_a_match() -> None:
    row = keyword_weights(terms("My cello stands in the hall"))
    counts = dict.fromkeys(row, 1)

    def share(query: str) -> float:
        asked = terms(query)
        score = sum(weight * row.get(term, 0.0) for term, weight in query_weights(asked, counts, 9).items())
        return score / full_match(asked, counts, 9)

    assert term_id(next(iter(terms("cello")))) in row
    assert share("cello hall") > 1 > share("cello zebra glacier quartz") > 0
    assert share("zebra glacier") == 0
