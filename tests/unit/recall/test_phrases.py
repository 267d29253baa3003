"""Phrases of a query: its neighbouring words, looked for in texts."""

from __future__ import annotations

import time

import pytest

from memory_app.language.text import term_id, terms
from memory_app.recall.phrases import EXAMINED_CHARS, Phrases, phrases_of


def phrases(query: str, *, unknown: str = "", without: str = "") -> Phrases:
    words = terms(query)
    weights = {term_id(word): 1.0 for word in words if word not in terms(unknown)}
    return phrases_of(words, weights, without=terms(without))


@pytest.mark.parametrize(
    ("query", "text", "share"),
    [
        ("charity race", "I ran a charity race.", 1.0),
        ("charity races", "Charity-race, yes!", 1.0),
        ("charity race", "The race was for charity.", 0.0),
        ("member of the band", "a member of a band", 1.0),
        ("charity race medal", "a charity race", 0.5),
        ("race", "race", 0.0),
        ("charity race", "", 0.0),
    ],
)
def test_a_phrase_counts_where_its_words_stand_together(query: str, text: str, share: float) -> None:
    assert phrases(query).share(text) == pytest.approx(share)


def test_words_of_no_row_and_names_are_in_no_phrase() -> None:
    assert phrases("charity race", unknown="race").patterns == ()
    assert phrases("Caroline drawing", without="Caroline").share("Caroline draws") == 0.0


@pytest.mark.parametrize("text", ["ha" * EXAMINED_CHARS, "ha " * EXAMINED_CHARS, "h.a." * EXAMINED_CHARS])
def test_no_text_makes_the_search_slow(text: str) -> None:
    asked = phrases("ha hut " * 30 + "ho hum")
    began = time.process_time()
    asked.share(text)
    assert time.process_time() - began < 0.5
