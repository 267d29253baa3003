"""What of a turn is a question."""

from __future__ import annotations

import pytest

from memory_app.language.questions import QUESTION_LIMIT, question_of


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        ("Where did I park the car?", "Where did I park the car?"),
        ("I am back. Where did I park the car?", "Where did I park the car?"),
        ("what is the name of my sister", "what is the name of my sister"),
        ("Remind me when the dentist is.", "Remind me when the dentist is."),
        ("私の誕生日はいつですか？", "私の誕生日はいつですか？"),
        ("Is it far? And how long does it take?", "Is it far? And how long does it take?"),
    ],
)
def test_a_question_is_found_in_a_turn(said: str, asked: str) -> None:
    assert question_of(said) == asked


@pytest.mark.parametrize(
    "said", ["I parked the car.", "Why?", "?", "", "How nice of you!", "When I was young, I sang. A lot."]
)
def test_what_asks_nothing_is_no_question(said: str) -> None:
    assert question_of(said) is None


def test_of_a_long_question_the_end_is_kept() -> None:
    asked = question_of("word " * 500 + "is this the end of the tunnel?")
    assert asked is not None
    assert len(asked) <= QUESTION_LIMIT
    assert asked.endswith("is this the end of the tunnel?")
