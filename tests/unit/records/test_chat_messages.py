"""The reply that is recorded: put together from a stream, or read out of an answer in one piece."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_app.completions.reply import LONGEST_CHARS, Reply, message_in


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


@given(st.lists(st.integers(0, len(STREAM)), max_size=30))
def test_a_stream_is_read_wherever_it_is_cut_into_pieces(cuts: list[int]) -> None:
    reply = Reply()
    places = [0, *sorted(cuts), len(STREAM)]
    for start, end in pairwise(places):
        reply.feed(STREAM[start:end])
    assert reply.message() == {"role": "assistant", "content": "Grüße, Mira", "tool_calls": CALLS}


def test_lines_of_other_fields_and_other_choices_are_passed_over() -> None:
    reply = Reply()
    other = {
        "choices": [{"index": 1, "delta": {"content": "No."}}, {"index": 0, "delta": {"content": "Yes."}}]
    }
    reply.feed(b": comment\r\nevent: chunk\r\nid: 4\r\ndata:" + json.dumps(other).encode() + b"\r\n\r\n")
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
    reply = Reply()
    reply.feed(stream)
    assert reply.message() is None


def test_an_endless_reply_is_not_kept_for_ever() -> None:
    reply = Reply()
    for _ in range(30):
        reply.feed(events({"content": "x" * (LONGEST_CHARS // 10)}))
    message = reply.message()
    assert message is not None and len(message["content"]) <= LONGEST_CHARS + LONGEST_CHARS // 10


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
    assert message_in(json.dumps(content).encode()) == expected
    assert message_in(b"<html>") is None
