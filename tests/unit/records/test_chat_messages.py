"""Chat messages as the OpenAI API has them: where the window goes, and the reply of a stream or of a whole answer."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from memory_app.completions.events import Events, json_of
from memory_app.records.chat import REPLY_LIMIT_CHARS, StreamedReply, reply_of, with_window


def events(*deltas: Any) -> bytes:
    chunks = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    return (
        b"".join(b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks) + b"data: [DONE]\n\n"
    )


STREAM = events(
    {"role": "assistant", "content": ""},
    {"content": "Grüße, "},
    {"content": "Mira"},
    {"tool_calls": [{"index": 1, "id": "c2", "function": {"name": "weather", "arguments": '{"in": '}}]},
    {"tool_calls": [{"index": 0, "id": "c1", "function": {"name": "search", "arguments": "{}"}}]},
    {"tool_calls": [{"index": 1, "function": {"arguments": '"Lisbon"}'}}]},
    {},
)
CALLS = [
    {"id": "c1", "type": "function", "function": {"name": "search", "arguments": "{}"}},
    {"id": "c2", "type": "function", "function": {"name": "weather", "arguments": '{"in": "Lisbon"}'}},
]


def read(*pieces: bytes) -> StreamedReply:
    events, reply = Events(), StreamedReply()
    for piece in pieces:
        for event in events.of(piece):
            reply.add(event)
    return reply


USER = {"role": "user", "content": "Hello."}


def test_the_window_stands_behind_the_instructions() -> None:
    rules, more = {"role": "system", "content": "Be brief."}, {"role": "developer", "content": "Be kind."}
    window = {"role": "system", "content": "window"}
    assert with_window([rules, more, USER], "window") == [rules, more, window, USER]
    assert with_window([USER], "window") == [window, USER]
    assert with_window([], "window") == [window]


@given(st.lists(st.integers(0, len(STREAM)), max_size=30))
def test_a_stream_is_read_wherever_it_is_cut_into_pieces(cuts: list[int]) -> None:
    places = [0, *sorted(cuts), len(STREAM)]
    reply = read(*(STREAM[start:end] for start, end in pairwise(places)))
    assert reply.message() == {"role": "assistant", "content": "Grüße, Mira", "tool_calls": CALLS}


def test_lines_of_other_fields_and_other_choices_are_passed_over() -> None:
    other = {
        "choices": [{"index": 1, "delta": {"content": "No."}}, {"index": 0, "delta": {"content": "Yes."}}]
    }
    reply = read(b": comment\r\nevent: chunk\r\nid: 4\r\ndata:" + json.dumps(other).encode() + b"\r\n\r\n")
    assert reply.message() == {"role": "assistant", "content": "Yes."}


@pytest.mark.parametrize(
    "stream",
    [
        b"",
        b"data: [DONE]\n\n",
        b"data: {\n\ndata: null\n\ndata: []\n\ndata: 3\n\n",
        b'data: {"choices": null}\n\ndata: {"choices": [null, {"index": 0}]}\n\n',
        events({"content": 3}, {"tool_calls": "x"}, {"tool_calls": [None, {"index": "a"}]}),
        events({"content": "  "}),
        b"\xff\xfe data\n",
    ],
)
def test_a_stream_that_says_nothing_gives_no_message(stream: bytes) -> None:
    assert read(stream).message() is None


def test_an_endless_reply_is_not_kept_for_ever() -> None:
    message = read(*(events({"content": "x" * (REPLY_LIMIT_CHARS // 10)}) for _ in range(30))).message()
    assert message is not None and len(message["content"]) <= REPLY_LIMIT_CHARS * 1.1


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (
            {"choices": [{"message": {"role": "assistant", "content": "Yes."}}]},
            {"role": "assistant", "content": "Yes."},
        ),
        (
            {"choices": [{"message": {"content": None, "tool_calls": CALLS}}]},
            {"role": "assistant", "content": None, "tool_calls": CALLS},
        ),
        ({"choices": [{"message": {"content": None}}]}, None),
        ({"choices": []}, None),
        ({"error": {"message": "no"}}, None),
        (None, None),
        ([], None),
    ],
)
def test_an_answer_in_one_piece_holds_a_reply_or_none(content: object, expected: object) -> None:
    assert reply_of(json_of(json.dumps(content).encode())) == expected
    assert reply_of(json_of(b"<html>")) is None


def test_objects_of_the_client_library_are_read_as_well() -> None:
    head = {"id": "c", "created": 0, "model": "m"}
    pieces = (
        {"role": "assistant", "content": "Let me "},
        {"content": "look."},
        {"tool_calls": [{"index": 0, "id": "c1", "function": {"name": "search", "arguments": ""}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": "{}"}}]},
    )
    reply = StreamedReply()
    for delta in pieces:
        chunk = {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta}]}
        reply.add(ChatCompletionChunk.model_validate(head | chunk))
    expected = {"role": "assistant", "content": "Let me look.", "tool_calls": CALLS[:1]}
    assert reply.message() == expected
    whole = {
        "object": "chat.completion",
        "choices": [{"index": 0, "finish_reason": "stop", "message": expected}],
    }
    assert reply_of(ChatCompletion.model_validate(head | whole)) == expected
    assert reply_of(object()) is None


def test_a_refusal_is_a_reply() -> None:
    refused = {"role": "assistant", "content": None, "refusal": "No."}
    assert reply_of({"choices": [{"message": refused}]}) == refused
    assert read(events({"refusal": "N"}, {"refusal": "o."})).message() == refused
