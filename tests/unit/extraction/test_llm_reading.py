"""What a model writes is read as JSON of a shape, or refused with a reason: nothing in between."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from memory_app.providers.chat import shape_of
from memory_app.providers.chat.dialect import Dialect, Form, simpler
from memory_app.providers.chat.json_text import Unreadable, closed_json, read_answer
from memory_app.providers.chat.reply import reply_of


class Item(BaseModel):
    name: str
    note: str | None = Field(None, max_length=400)


class Items(BaseModel):
    items: list[Item]


SHAPE = shape_of(Items)
ITEMS = st.builds(
    Items, items=st.lists(st.builds(Item, name=st.text(), note=st.none() | st.text(max_size=50)), max_size=4)
)


@given(st.text() | st.binary().map(lambda raw: raw.decode("utf-8", "surrogateescape")))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        assert isinstance(read_answer(text, SHAPE).value, Items)
    except Unreadable as error:
        assert error.reason


@given(
    ITEMS,
    st.sampled_from(["{}", "```json\n{}\n```", "Here you are:\n```\n{}\n```\nDone.", "<think>hm</think>{}"]),
)
def test_an_answer_survives_its_wrapping(items: Items, wrapping: str) -> None:
    assert read_answer(wrapping.replace("{}", items.model_dump_json()), SHAPE).value == items


@given(ITEMS, st.integers(min_value=0))
def test_a_cut_answer_is_never_read_as_less_than_it_was(items: Items, cut: int) -> None:
    whole = items.model_dump_json()
    text = whole[: cut % (len(whole) + 1)]
    try:
        found = read_answer(text, SHAPE).value
    except Unreadable:
        return
    said = text.rstrip("]} \n\t")
    assert whole.startswith(said)
    assert len(found.items) == text.count('"name":') or '"name":' in json.dumps(
        [item.name for item in items.items]
    )


@given(ITEMS, st.integers(min_value=0))
def test_an_answer_that_was_stopped_is_read_only_if_it_is_whole(items: Items, cut: int) -> None:
    whole = items.model_dump_json()
    text = whole[: cut % len(whole)]
    with pytest.raises(Unreadable):
        read_answer(text, SHAPE, complete=False)


@pytest.mark.parametrize("depth", [300, 600, 900, 5_000])
def test_deep_nesting_is_refused(depth: int) -> None:
    with pytest.raises(Unreadable):
        read_answer('{"items": ' + "[" * depth + "]" * depth + "}", SHAPE)


@pytest.mark.parametrize(
    "text",
    [
        '{"Items": [{"Name": "a"}]}',
        '{"result": {"items": [{"name": "a"}]}}',
        '{"data": {"answer": {"items": [{"name": "a"}]}}}',
        '[{"name": "a"}]',
        '[{"items": [{"name": "a"}]}]',
        '{"list": [{"name": "a"}]}',
        '{"items": [{"name": "draft"}]} No, better: {"items": [{"name": "a"}]}',
        '\ufeff{"items": [{"name": "a"}]}',
        '{"items": [{"name": "a"}',
    ],
)
def test_other_forms_of_an_answer_are_understood(text: str) -> None:
    assert read_answer(text, SHAPE).value == Items(items=[Item(name="a")])


REFUSED = [
    *("", " ", "no", "null", "7", '"items"', "{}", '{"items": null}', '{"items": {}}', '{"list": []}'),
    *('{"items": [{}]}', '{"items": [{"name": "a"},', '{"items": [{"name": "a', '{"items": [{"name": 1}]}'),
    *("[NaN]", "[[]]"),
]


@pytest.mark.parametrize("text", REFUSED)
def test_what_would_need_a_guess_is_refused(text: str) -> None:
    with pytest.raises(Unreadable):
        read_answer(text, SHAPE)


def test_a_reason_names_the_place_and_never_the_value() -> None:
    with pytest.raises(Unreadable) as raised:
        read_answer('{"items": [{"name": ["the canary"]}, {"note": "sings"}]}', SHAPE)
    assert raised.value.reason == (
        "the answer does not fit the schema: items.0.name: string_type; items.1.name: missing"
    )


def test_half_an_emoji_becomes_a_replacement_character() -> None:
    assert read_answer('{"items": [{"name": "\\ud83d!"}]}', SHAPE).value.items[0].name == "\ufffd!"


@pytest.mark.parametrize("text", ["", "x", '{"a": 1', '{"a": "b', '{"a"', "[1,", "}{", '{"a": [}'])
def test_only_missing_brackets_are_closed(text: str) -> None:
    assert closed_json(text) is None


def test_the_schema_that_is_sent_is_strict() -> None:
    assert SHAPE.schema["required"] == ["items"]
    assert SHAPE.schema["$defs"]["Item"] == {
        "additionalProperties": False,
        "type": "object",
        "properties": {"name": {"type": "string"}, "note": {"anyOf": [{"type": "string"}, {"type": "null"}]}},
        "required": ["name", "note"],
    }


# --- bodies of servers ---


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ({"choices": []}, ""),
        ({"choices": [None]}, ""),
        ({"choices": [{"message": None}]}, ""),
        ({"choices": [{"message": {"content": None}}]}, ""),
        ({"choices": [{"message": {"content": [{"type": "text", "text": "a"}, {"text": "b"}, 3]}}]}, "ab"),
        (
            {"choices": [{"message": {"content": "", "tool_calls": [{"function": {"arguments": "{}"}}]}}]},
            "{}",
        ),
        ({"choices": [{"message": {"content": "a"}}], "usage": {"prompt_tokens": "many"}}, "a"),
    ],
)
def test_an_odd_body_is_taken_apart(body: dict[str, object], text: str) -> None:
    reply = reply_of(body, model="m", sent_tokens=7)
    assert (reply.text, reply.model, reply.tokens_in) == (text, "m", 7)


@pytest.mark.parametrize(
    ("dialect", "hint", "then"),
    [
        (Dialect(), "'response_format' of type json_schema is not supported", Dialect(Form.OBJECT)),
        (Dialect(Form.OBJECT), "response_format unavailable", Dialect(Form.TEXT)),
        (Dialect(Form.TEXT), "response_format", None),
        (
            Dialect(),
            "max_tokens is too large, use max_completion_tokens",
            Dialect(limit_name="max_completion_tokens"),
        ),
        (Dialect(), "temperature does not support 0", Dialect(temperature=False)),
        (Dialect(temperature=False), "temperature", None),
        (Dialect(), "this model's maximum context length is 8192", None),
        (Dialect(), "", None),
    ],
)
def test_a_refusal_leads_to_a_simpler_request_or_to_none(
    dialect: Dialect, hint: str, then: Dialect | None
) -> None:
    assert simpler(dialect, hint) == then
