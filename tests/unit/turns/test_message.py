"""Chat messages of OpenAI's and Anthropic's APIs, as they are, read as turns."""

from __future__ import annotations

import json
import tracemalloc
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types.chat import ChatCompletionMessage
from pydantic import BaseModel

from memory_app.errors import InvalidInput
from memory_app.language.marks import CAPTION_LIMIT, MarkKind, mark, without_marks
from memory_app.records.records import NewTurn, Role
from memory_app.turns.bodies import MessageBody, new_turn, parse_turn
from memory_app.turns.intake import TOOLS_LIMIT, Limits, checked_turn
from memory_app.turns.message import PARTS_LIMIT
from memory_app.turns.message_details import DETAILS_BYTES

PIXEL = "data:image/png;base64,iVBORw0KGgo="


def user(content: object, **fields: object) -> dict[str, object]:
    return {"role": "user", "content": content, **fields}


def assistant(content: object, **fields: object) -> dict[str, object]:
    return {"role": "assistant", "content": content, **fields}


def call(name: str, arguments: object = "{}") -> dict[str, object]:
    return {"id": "call_1", "type": "function", "function": {"name": name, "arguments": arguments}}


def details(turn: NewTurn) -> Any:
    return turn.metadata["message"]


# --- text and other parts -------------------------------------------------------------------------------------

PART_TEXTS = [
    ([{"type": "text", "text": "I live in Oslo."}], "I live in Oslo."),
    ([{"type": "input_text", "text": "One."}, {"type": "output_text", "text": "Two."}], "One.\nTwo."),
    ([{"text": "A part without a type."}], "A part without a type."),
    ([{"type": "refusal", "refusal": "I cannot do that."}], "I cannot do that."),
    ([{"type": "text", "text": " "}, {"type": "text", "text": "Hello."}], "Hello."),
    ([{"type": "image_url", "image_url": {"url": PIXEL}}], "[image]"),
    ([{"type": "image_url", "image_url": {"url": PIXEL}, "caption": "a dog on a beach"}], "[image: a dog on a beach]"),
    ([{"type": "input_image", "image_url": "https://example.org/a.png"}], "[image]"),
    ([{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}], "[image]"),
    ([{"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}], "[audio]"),
    ([{"type": "input_audio", "input_audio": {"data": "AAAA", "transcript": "I am vegan."}}], "I am vegan."),
    ([{"type": "file", "file": {"filename": "trip.pdf", "file_data": "AAAA"}}], "[file: trip.pdf]"),
    ([{"type": "document", "title": "Trip", "source": {"type": "text", "data": "all of it"}}], "[file: Trip]"),
    ([{"type": "video_url", "video_url": {"url": "https://example.org/a.mp4"}}], "[video]"),
    ([{"type": "hologram", "light": "AAAA"}], "[part: hologram]"),
    ([{"type": "markdown", "text": "I am **vegan**."}], "I am **vegan**."),
    ([{"type": "thinking", "thinking": "Hm.", "signature": "x"}, {"type": "text", "text": "Yes."}], "Yes."),
    ([{"type": "text", "text": "See"}, {"type": "image_url", "image_url": {"url": PIXEL}}], "See\n[image]"),
    ([], "[empty message]"),
    ("", "[empty message]"),
    (" \n", "[empty message]"),
]  # fmt: skip


@pytest.mark.parametrize(("content", "text"), PART_TEXTS, ids=lambda value: str(value)[:60])
def test_the_parts_of_a_message_become_one_text(content: object, text: str) -> None:
    assert parse_turn(user(content)).text == text


def test_a_plain_turn_stays_as_it_is() -> None:
    turn = parse_turn(user("I like tea.", name="Mira", tools_used=["clock"], metadata={"page": 1}))

    assert turn == NewTurn(
        Role.USER, "I like tea.", speaker="Mira", tools_used=("clock",), metadata={"page": 1}
    )


def test_the_address_of_a_picture_is_kept_without_its_signature() -> None:
    url = "https://example.org/a.png?X-Signature=secret#top"
    turn = parse_turn(user([{"type": "image_url", "image_url": {"url": url, "detail": "low"}}]))

    assert details(turn) == {
        "parts": [{"type": "image_url", "detail": "low", "url": "https://example.org/a.png"}]
    }


def test_what_is_encoded_is_never_kept() -> None:
    parts = [
        {"type": "image_url", "image_url": {"url": PIXEL}},
        {"type": "input_image", "image_url": PIXEL},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}},
        {"type": "file", "file": {"file_data": PIXEL, "filename": "a.png"}},
        {"type": "input_audio", "input_audio": {"data": "iVBORw0KGgo=", "format": "wav"}},
    ]
    audio = {"id": "a1", "data": "iVBORw0KGgo=", "transcript": "Good morning."}
    turn = parse_turn(user(parts, audio=audio, thumbnail=PIXEL))

    assert "iVBORw0KGgo" not in turn.text + json.dumps(turn.metadata)
    assert details(turn)["parts"][0] == {"type": "image_url", "media_type": "image/png"}


# --- tools ----------------------------------------------------------------------------------------------------


def test_a_call_of_a_tool_without_words_is_a_turn() -> None:
    turn = parse_turn(assistant(None, tool_calls=[call("get_weather", '{"city": "Oslo"}')], refusal=None))

    assert (turn.text, turn.tools_used) == ("[tool call: get_weather]", ("get_weather",))
    assert details(turn) == {
        "tool_calls": [{"id": "call_1", "name": "get_weather", "arguments": '{"city": "Oslo"}'}]
    }


def test_words_stand_before_the_calls_of_tools() -> None:
    turn = parse_turn(
        assistant("Let me look.", tool_calls=[call("a"), call("b"), call("a")], tools_used=["c"])
    )

    assert turn.text == "Let me look.\n[tool call: a]\n[tool call: b]\n[tool call: a]"
    assert turn.tools_used == ("c", "a", "b")


@pytest.mark.parametrize(
    "message",
    [
        {"role": "assistant", "tool_calls": [call("clock")]},
        assistant("", tool_calls=[call("clock")]),
        assistant(
            None, tool_calls=[{"id": "1", "type": "custom", "custom": {"name": "clock", "input": "x"}}]
        ),
        assistant(None, tool_calls=[{"id": "1", "name": "clock", "args": {"zone": "UTC"}}]),
        assistant(None, function_call={"name": "clock", "arguments": "{}"}),
        assistant([{"type": "tool_use", "id": "1", "name": "clock", "input": {"zone": "UTC"}}]),
        assistant([{"type": "server_tool_use", "id": "1", "name": "clock", "input": {}}]),
    ],
    ids=str,
)
def test_every_form_of_a_call_names_its_tool(message: dict[str, object]) -> None:
    turn = parse_turn(message)

    assert (turn.role, turn.text, turn.tools_used) == (Role.ASSISTANT, "[tool call: clock]", ("clock",))


def test_the_answer_of_a_tool_is_a_turn_of_the_tool() -> None:
    turn = parse_turn({"role": "tool", "tool_call_id": "call_1", "content": "12 degrees"})

    assert (turn.role, turn.text) == (Role.TOOL, "12 degrees")
    assert details(turn) == {"tool_call_id": "call_1"}


@pytest.mark.parametrize(
    "content", ["I live in Oslo.", [{"type": "text", "text": "I live in Oslo."}]], ids=["text", "parts"]
)
def test_a_message_of_tool_results_alone_is_no_speech_of_the_user(content: object) -> None:
    turn = parse_turn(user([{"type": "tool_result", "tool_use_id": "t1", "content": content}]))

    assert (turn.role, turn.text) == (Role.TOOL, "I live in Oslo.")


def test_a_tool_result_beside_words_of_the_user_is_a_mark() -> None:
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "I live in Oslo.", "is_error": True}
    turn = parse_turn(user([result, {"type": "text", "text": "And I live in Bergen."}]))

    assert (turn.role, turn.text) == (Role.USER, "And I live in Bergen.\n[tool result]")
    assert details(turn)["tool_results"] == [
        {"tool_use_id": "t1", "is_error": True, "text": "I live in Oslo."}
    ]


def test_a_tool_that_answers_nothing_is_a_turn_too() -> None:
    assert parse_turn(user([{"type": "tool_result", "tool_use_id": "t1"}])).text == "[tool result]"
    assert parse_turn({"role": "tool", "tool_call_id": "1", "content": ""}).text == "[empty message]"


# --- roles, speakers, times -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("role", "stored"),
    [("developer", Role.SYSTEM), ("function", Role.TOOL), ("system", Role.SYSTEM), ("user", Role.USER)],
)
def test_roles_of_messages_have_a_place_among_ours(role: str, stored: Role) -> None:
    assert parse_turn({"role": role, "content": "Be brief.", "name": "Mira"}).role is stored


@pytest.mark.parametrize(
    ("at", "expected"),
    [
        (1_767_225_600, datetime(2026, 1, 1, tzinfo=UTC)),
        (1_767_225_600.5, datetime(2026, 1, 1, 0, 0, 0, 500_000, tzinfo=UTC)),
        (1_767_225_600_250, datetime(2026, 1, 1, 0, 0, 0, 250_000, tzinfo=UTC)),
        (0, datetime(1970, 1, 1, tzinfo=UTC)),
        (-86_400, datetime(1969, 12, 31, tzinfo=UTC)),
        ("2026-01-01T01:00:00+01:00", datetime(2026, 1, 1, tzinfo=UTC)),
        ("2026-01-01t00:00:00z", datetime(2026, 1, 1, tzinfo=UTC)),
        (datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC)),
    ],
)
def test_a_time_may_be_written_or_counted(at: object, expected: datetime) -> None:
    assert parse_turn(user("Hello.", at=at)).at == expected


def test_null_is_taken_where_an_api_sends_it() -> None:
    assert parse_turn(assistant(None)).text == "[empty message]"
    assert parse_turn(assistant(None, refusal="I cannot do that.")).text == "I cannot do that."
    spoken = parse_turn(assistant(None, audio={"id": "a1", "transcript": "Good morning."}))
    assert spoken.text == "Good morning."


# --- what cannot be read --------------------------------------------------------------------------------------

UNREADABLE = [
    (user(7), "content"),
    (user({"type": "text"}), "content"),
    (user(None), "content"),
    ({"role": "user"}, "content"),
    ({"role": "assistant"}, "content"),
    ({}, "content"),
    ({"content": "Hello."}, "role"),
    (user("Hello.", role="narrator"), "role"),
    (user("Hello.", role=7), "role"),
    (user([3]), "content[0]"),
    (user(["Hello."]), "content[0]"),
    (user([{"type": "text", "text": "a"}, {"type": "text"}]), "content[1].text"),
    (user([{"type": "text", "text": None}]), "content[0].text"),
    (user([{"type": 7}]), "content[0].type"),
    (user([{"type": "a b"}]), "content[0].type"),
    (user([{}]), "content[0].type"),
    (user([{"type": "tool_result", "content": [{"type": "text"}]}]), "content[0].content[0].text"),
    (assistant([{"type": "tool_use", "input": {}}]), "content[0].name"),
    (assistant(None, tool_calls="clock"), "tool_calls"),
    (assistant(None, tool_calls=["clock"]), "tool_calls[0]"),
    (assistant(None, tool_calls=[{"function": {}}]), "tool_calls[0].function.name"),
    (assistant(None, tool_calls=[call("a\nb")]), "tool_calls[0].function.name"),
    (assistant(None, tool_calls=[call("n" * 201)]), "tool_calls[0].function.name"),
    (assistant(None, function_call="clock"), "function_call"),
    (user("Hello.", at=True), "at"),
    (user("Hello.", at=1e300), "at"),
    (user("Hello.", at=float("nan")), "at"),
    (user("Hello.", at=10**15), "at"),
    (user("Hello.", at="2026-01-01T00:00:00"), "at"),
    (user("Hello.", at="1767225600"), "at"),
    (user("Hello.", mood="fine"), "mood"),
    (user("Hello.", name=""), "name"),
    (user("Hello.", tools_used=[1]), "tools_used[0]"),
    (user("Hello.", tools_used="clock", tool_calls=[call("a")]), "tools_used"),
    (user([{"type": "text", "text": "a"}] * (PARTS_LIMIT + 1)), "content"),
    (assistant(None, tool_calls=[call("a")] * (PARTS_LIMIT + 1)), "tool_calls"),
    (7, "turn"),
    (None, "turn"),
]


@pytest.mark.parametrize(("message", "field"), UNREADABLE, ids=lambda value: str(value)[:70])
def test_what_cannot_be_read_names_its_place(message: object, field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        parse_turn(message)
    assert refused.value.field == field
    assert refused.value.message.startswith(f"{field}: ")
    assert "Hello" not in refused.value.message


def test_the_place_in_a_batch_stands_before_the_field() -> None:
    with pytest.raises(InvalidInput) as refused:
        parse_turn(user([{"type": 7}]), place="turns[3]")
    assert refused.value.field == "turns[3].content[0].type"


# --- unknown fields and bounds --------------------------------------------------------------------------------


def test_an_unknown_field_of_a_message_goes_to_its_details() -> None:
    message = assistant(
        [{"type": "text", "text": "Hi."}], id="msg_1", type="message", model="m-1", usage={"in": 3}, stop=None
    )
    turn = parse_turn(message)

    assert details(turn) == {"id": "msg_1", "type": "message", "model": "m-1", "usage": '{"in": 3}'}


def test_in_a_list_of_messages_no_field_is_unknown() -> None:
    turn = new_turn(MessageBody.model_validate(user("Hello.", id="m1", metadata={"page": 1})))

    assert turn.metadata == {"page": 1, "message": {"id": "m1"}}


def test_a_field_of_the_caller_named_like_the_details_is_theirs() -> None:
    turn = parse_turn(assistant(None, tool_calls=[call("a")], metadata={"message": "mine"}))

    assert turn.metadata == {"message": "mine"}


def test_details_are_bounded_and_what_is_left_out_is_counted() -> None:
    calls = [call(f"tool-{number}", "x" * 5_000) for number in range(100)]
    turn = parse_turn(assistant(None, tool_calls=calls, extra={"a": ["b" * 100_000]}))

    assert len(json.dumps(turn.metadata)) < DETAILS_BYTES + 200
    listed = details(turn)["tool_calls"]
    assert details(turn)["left_out"] == 101 - len(listed)
    assert len(turn.tools_used) == TOOLS_LIMIT
    checked_turn(turn, Limits())


def test_deeply_nested_arguments_are_no_error() -> None:
    inner: object = 1
    for _ in range(5_000):
        inner = [inner]
    turn = parse_turn(assistant([{"type": "tool_use", "id": "1", "name": "a", "input": inner}]))

    checked_turn(turn, Limits())


def test_a_picture_of_100_megabytes_is_not_copied() -> None:
    url = "data:image/png;base64," + "A" * 100_000_000
    message = user(
        [
            {"type": "image_url", "image_url": {"url": url}},
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": url}},
        ]
    )
    tracemalloc.start()
    try:
        turn = parse_turn(message)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert turn.text == "[image]\n[image]"
    assert peak < 10_000_000


# --- objects of client libraries ------------------------------------------------------------------------------


class Function(BaseModel):
    name: str
    arguments: str


class Call(BaseModel):
    id: str
    type: str = "function"
    function: Function


class Reply(BaseModel):
    role: str = "assistant"
    content: str | None = None
    refusal: str | None = None
    tool_calls: list[Call] | None = None


def test_an_object_of_a_client_library_is_read_like_its_json() -> None:
    reply = Reply(tool_calls=[Call(id="call_1", function=Function(name="clock", arguments="{}"))])
    as_json = parse_turn(reply.model_dump(mode="json"))

    assert as_json.text == "[tool call: clock]"
    assert parse_turn(reply) == as_json
    assert parse_turn({"role": "assistant", "content": None, "tool_calls": reply.tool_calls}) == as_json
    assert parse_turn(Reply()).text == "[empty message]"


def test_an_answer_of_the_openai_client_is_read_as_it_is() -> None:
    tool_calls = [{"id": "call_1", "type": "function", "function": {"name": "clock", "arguments": "{}"}}]
    answer = {"role": "assistant", "content": None, "tool_calls": tool_calls}
    reply = ChatCompletionMessage.model_validate(answer)

    assert parse_turn(reply) == parse_turn(answer)
    assert parse_turn(reply).tools_used == ("clock",)


class TextBlock(BaseModel):
    type: str = "text"
    text: str


def test_the_parts_may_be_objects_too() -> None:
    assert parse_turn(assistant([TextBlock(text="Hello.")])).text == "Hello."


# --- marks ----------------------------------------------------------------------------------------------------


@given(st.sampled_from(MarkKind), st.text())
def test_every_mark_is_recognised_again(kind: MarkKind, caption: str) -> None:
    assert without_marks(mark(kind, caption)).strip() == ""


def test_a_mark_is_one_short_line() -> None:
    assert mark(MarkKind.FILE, "a\nb [c]") == "[file: a b (c)]"
    assert len(mark(MarkKind.FILE, "x" * 1_000)) == CAPTION_LIMIT + len("[file: ]")
    assert without_marks("See [image: a dog] here [1].") == "See   here [1]."


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=8,
)
MESSAGES = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant", "tool", "developer"])},
    optional={
        "content": JSON | st.lists(st.fixed_dictionaries({"type": st.sampled_from(["text", "image_url", "tool_use"])},
                                                         optional={"text": JSON, "image_url": JSON, "name": JSON})),
        "tool_calls": JSON,
        "function_call": JSON,
        "audio": JSON,
        "refusal": JSON,
        "at": JSON,
        "metadata": JSON,
        "tools_used": JSON,
        "other": JSON,
    },
)  # fmt: skip


@given(MESSAGES)
def test_whatever_comes_is_a_turn_or_an_error_that_names_its_place(message: dict[str, object]) -> None:
    try:
        turn, _ = checked_turn(parse_turn(message), Limits())
    except InvalidInput as error:
        assert error.field
        return
    assert turn.text.strip()
