"""The passage of a long text: where the words of the query stand together, marked where it is cut."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from memory_app.recall.passages import passage

FILLER = "The weather was mild and nothing much happened on the way. " * 200
ANSWER = "The spare key hangs behind the boiler."


def test_the_passage_is_where_the_words_stand_together() -> None:
    text = f"A key was mentioned. {FILLER}{ANSWER} {FILLER}"
    shown = passage(text, 300, {"spare": 2.0, "key": 1.0})
    assert ANSWER in shown
    assert shown.startswith("…")
    assert shown.endswith("…")
    assert len(shown) <= 300


def test_an_answer_in_the_last_sentence_is_shown_to_its_end() -> None:
    shown = passage(f"{FILLER}{ANSWER}", 200, {"spare": 2.0, "key": 1.0})
    assert shown.startswith("…")
    assert shown.endswith(ANSWER)
    assert len(shown) <= 200


def test_without_the_words_the_passage_is_the_beginning() -> None:
    assert passage(f"{ANSWER} {FILLER}", 200, {"zebra": 3.0}).startswith(ANSWER)
    assert passage(f"{ANSWER} {FILLER}", 200, {}).startswith(ANSWER)


def test_a_word_counts_at_its_beginning_only() -> None:
    text = f"{FILLER}A part of the crowd left. {FILLER}She paints and calls it art. {FILLER}"
    assert "calls it art" in passage(text, 200, {"art": 1.0})


def test_a_script_without_spaces_has_passages() -> None:
    text = "今天天气很好。" * 200 + "我对花生过敏。" + "今天天气很好。" * 200
    assert "花生过敏" in passage(text, 100, {"花生": 2.0, "过敏": 2.0})


def test_a_short_text_is_whole() -> None:
    assert passage(ANSWER, 400, {"key": 1.0}) == ANSWER


@given(st.text(max_size=400), st.integers(3, 120), st.lists(st.text(min_size=1, max_size=6), max_size=5))
def test_a_passage_stands_in_its_text_and_fits(text: str, limit: int, words: list[str]) -> None:
    shown = passage(text, limit, dict.fromkeys((word.lower() for word in words), 1.0))
    assert len(shown) <= limit
    assert shown == text or shown.strip("…") in text
