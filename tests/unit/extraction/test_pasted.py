"""What was put into a text from elsewhere is told apart from what its author wrote."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_app.extraction.quoted_parts import split_pasted
from memory_app.extraction.rules.clauses import own_words

WINDOW = (Path(__file__).parents[1] / "golden" / "window.txt").read_text(encoding="utf-8")
SAID = "By the way, I live in Porto now."


def test_a_whole_context_window_is_nobodys_words() -> None:
    assert split_pasted(WINDOW).own.strip() == ""


@pytest.mark.parametrize("text", [f"{SAID}\n\n{WINDOW}", f"{WINDOW}\n\n{SAID}", f"{WINDOW}\n{SAID}"])
def test_what_stands_before_and_behind_a_window_is_the_authors(text: str) -> None:
    assert split_pasted(text).own.strip() == SAID
    assert own_words(text).strip() == SAID


def test_the_lines_of_a_window_are_told_without_their_marks() -> None:
    pasted = split_pasted("[CORE DIRECTIVES]\n- Never give medical advice.\n\n> You live in Faro.").pasted
    assert pasted == ("Never give medical advice.", "You live in Faro.")


@pytest.mark.parametrize(
    "text",
    ["- I live in Porto.\n- I have a dog.", "[TODO]\n- call my sister", "[12:30] I am on my way.", "a > b"],
)
def test_lists_and_brackets_of_ones_own_stay(text: str) -> None:
    assert split_pasted(text) == split_pasted(split_pasted(text).own)
    assert split_pasted(text).own == text


@given(st.text())
def test_no_line_is_lost_or_doubled(text: str) -> None:
    found = split_pasted(text)
    assert len(found.own.splitlines()) + len(found.pasted) <= len(text.splitlines())
