"""What of a chat completion is asked of memory, and which turns are new."""

from __future__ import annotations

from memory_app.client.chat_turns import new_turns, question_of
from memory_app.records.scope import Scope

CHAT = Scope("ada", "mira", "monday")
USER = {"role": "user", "content": "Hello."}
ANSWER = {"role": "assistant", "content": "Good day."}


def test_the_question_is_the_last_text_of_the_user() -> None:
    parts = [{"type": "text", "text": "Who"}, {"type": "image_url"}, {"type": "text", "text": "is it?"}]
    assert question_of([USER, {"role": "user", "content": parts}, ANSWER]) == "Who\nis it?"
    assert question_of([{"role": "user", "content": [{"type": "image_url"}]}]) is None
    assert question_of([ANSWER]) is None


def test_new_is_what_stands_behind_the_last_answer() -> None:
    system = {"role": "system", "content": "Be brief."}
    assert new_turns([system, USER], CHAT) == [USER]
    assert new_turns([system, USER, ANSWER], CHAT) == []
    (turn,) = new_turns([system, USER, ANSWER, {"role": "user", "content": "And you?"}], CHAT)
    assert turn["content"] == "And you?"


def test_a_turn_after_a_history_has_the_key_of_that_history() -> None:
    again = {"role": "user", "content": "Yes."}
    (first,), (second,) = new_turns([USER, ANSWER, again], CHAT), new_turns([USER, ANSWER, again], CHAT)
    (later,) = new_turns([USER, ANSWER, again, ANSWER, again], CHAT)
    assert first["idempotency_key"] == second["idempotency_key"] != later["idempotency_key"]
    # Without a history the same word may have been said twice.
    assert "idempotency_key" not in new_turns([again], CHAT)[0]


def test_the_same_history_in_another_session_has_other_keys() -> None:
    history = [USER, ANSWER, USER]
    scopes = (CHAT, Scope("ada", "mira", "friday"), Scope("max", "mira", "monday"))
    assert len({new_turns(history, scope)[0]["idempotency_key"] for scope in scopes}) == 3
