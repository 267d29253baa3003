"""What of a chat completion is asked of memory and recorded: questions, new turns, replies in pieces."""

from __future__ import annotations

from openai.types.chat import ChatCompletionChunk, ChatCompletionMessage

from memory_app.client.chat_turns import Json, Reply, new_turns, question_of, reply_of, with_window

USER = {"role": "user", "content": "Hello."}
ANSWER = {"role": "assistant", "content": "Good day."}


def chunk(**delta: object) -> ChatCompletionChunk:
    return ChatCompletionChunk.model_validate(
        {
            "id": "c",
            "created": 0,
            "model": "m",
            "object": "chat.completion.chunk",
            "choices": [{"index": 0, "delta": delta}],
        }
    )


def piece(index: int, **function: str) -> Json:
    return {"index": index, "function": function, **({"id": f"call_{index}"} if "name" in function else {})}


def test_the_question_is_the_last_text_of_the_user() -> None:
    parts = [{"type": "text", "text": "Who"}, {"type": "image_url"}, {"type": "text", "text": "is it?"}]
    assert question_of([USER, {"role": "user", "content": parts}, ANSWER]) == "Who\nis it?"
    assert question_of([{"role": "user", "content": [{"type": "image_url"}]}]) is None
    assert question_of([ANSWER]) is None


def test_the_window_stands_behind_the_instructions() -> None:
    rules, more = {"role": "system", "content": "Be brief."}, {"role": "developer", "content": "Be kind."}
    window = {"role": "system", "content": "window"}
    assert with_window([rules, more, USER], "window") == [rules, more, window, USER]
    assert with_window([USER], "window") == [window, USER]
    assert with_window([], "window") == [window]


def test_new_is_what_stands_behind_the_last_answer() -> None:
    system = {"role": "system", "content": "Be brief."}
    assert new_turns([system, USER]) == [USER]
    assert new_turns([system, USER, ANSWER]) == []
    (turn,) = new_turns([system, USER, ANSWER, {"role": "user", "content": "And you?"}])
    assert turn["content"] == "And you?"


def test_a_turn_after_a_history_has_the_key_of_that_history() -> None:
    again = {"role": "user", "content": "Yes."}
    (first,), (second,) = new_turns([USER, ANSWER, again]), new_turns([USER, ANSWER, again])
    (later,) = new_turns([USER, ANSWER, again, ANSWER, again])
    assert first["idempotency_key"] == second["idempotency_key"] != later["idempotency_key"]
    # Without a history the same word may have been said twice.
    assert "idempotency_key" not in new_turns([again])[0]


def test_a_reply_is_put_together_from_its_pieces() -> None:
    reply = Reply()
    assert reply.message() is None
    for part in (
        chunk(role="assistant", content="Let me "),
        chunk(content="look."),
        chunk(tool_calls=[piece(0, name="search", arguments="")]),
        chunk(tool_calls=[piece(0, arguments='{"q":'), piece(1, name="list", arguments="{}")]),
        chunk(tool_calls=[piece(0, arguments='"bees"}')]),
    ):
        reply.add(part)
    assert reply.message() == {
        "role": "assistant",
        "content": "Let me look.",
        "tool_calls": [
            {
                "id": "call_0",
                "type": "function",
                "function": {"name": "search", "arguments": '{"q":"bees"}'},
            },
            {"id": "call_1", "type": "function", "function": {"name": "list", "arguments": "{}"}},
        ],
    }


def test_a_reply_without_words_is_none_and_a_refusal_is_one() -> None:
    class Completion:
        def __init__(self, **message: object) -> None:
            inner = ChatCompletionMessage.model_validate({"role": "assistant", "content": None, **message})
            self.choices = [type("Choice", (), {"message": inner})()]

    assert reply_of(Completion()) is None
    assert reply_of(object()) is None
    refused = reply_of(Completion(refusal="No."))
    assert refused is not None and refused["refusal"] == "No."
