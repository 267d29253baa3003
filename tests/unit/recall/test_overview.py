"""Queries for a course of things: which they are, and what they are about."""

from __future__ import annotations

import pytest

from memory_app.recall.overview import is_overview, subject_of


@pytest.mark.parametrize(
    ("query", "subject"),
    [
        (
            "Can you list the order in which I brought up different parts of my garden? Mention only five items.",
            "Can you the in which I up parts of my garden?",
        ),
        ("Summarize how my move to Porto went", "how my move to Porto went"),
        ("How did my running change over time?", "How did my running change over time?"),
    ],
)
def test_an_overview_is_searched_by_what_it_is_about(query: str, subject: str) -> None:
    assert is_overview(query)
    assert subject_of(query) == subject


@pytest.mark.parametrize(
    "query", ["Did I order pizza?", "Show me the list of items", "Summary", "What is different?", ""]
)
def test_other_queries_and_those_with_nothing_else_stay_as_they_are(query: str) -> None:
    assert subject_of(query) == query
