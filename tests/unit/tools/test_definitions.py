"""Definitions of the agents' tools, and arguments as models write them."""

from __future__ import annotations

import json
from typing import Any, cast

import jsonschema_rs
import pytest

from memory_app.errors import InvalidInput, StoreUnavailable
from memory_app.records.kinds import recalled_kinds
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.tools.answers import TEXT_CHARS, short, tool_error
from memory_app.tools.arguments import ListFacts, RecordTurns, SearchMemory, StoreMemory, read_arguments
from memory_app.tools.bounds import Bounds
from memory_app.tools.calls import TOOLS, ToolFormat, call_tool, definitions

CHAT_TOOLS = ["search_memory", "store_memory", "get_context", "list_facts", "forget_memory"]


def schemas() -> dict[str, dict[str, Any]]:
    return {tool["name"]: tool["input_schema"] for tool in definitions(ToolFormat.ANTHROPIC)}


def test_both_forms_offer_the_same_tools() -> None:
    openai = definitions(ToolFormat.OPENAI)

    assert [tool["function"]["name"] for tool in openai] == CHAT_TOOLS
    assert {tool["type"] for tool in openai} == {"function"}
    assert {tool["function"]["name"]: tool["function"]["parameters"] for tool in openai} == schemas()
    assert [*TOOLS] == [*CHAT_TOOLS, "why", "ask_memory", "record_turns"]


def test_the_parameters_are_those_of_the_specification() -> None:
    search, store = schemas()["search_memory"], schemas()["store_memory"]

    assert [*search["properties"]] == ["query", "kinds", "limit", "expand_graph", "user_message"]
    assert (search["required"], search["properties"]["limit"]["default"]) == (["query"], 5)
    assert search["properties"]["kinds"]["items"]["enum"] == list(recalled_kinds())
    assert [*store["properties"]] == ["text", "kind", "importance", "tags", "valence"]
    assert store["required"] == ["text"]


@pytest.mark.parametrize("name", TOOLS)
def test_every_schema_is_valid_and_simple(name: str) -> None:
    schema = Bounds().schema(TOOLS[name])

    assert jsonschema_rs.meta.is_valid(schema)
    assert {"agent", "user"} <= set(schema["required"])
    assert not {"title", "anyOf", "$ref"} & set(json.dumps(schema).replace('"', " ").split())
    assert all(field.get("description") for field in schema["properties"].values())


def test_arguments_are_read_as_models_write_them() -> None:
    text = '{"query": "dog", "limit": "3", "kinds": null, "expand_graph": "false"}'

    assert read_arguments(SearchMemory, text) == SearchMemory(query="dog", limit=3, expand_graph=False)
    assert read_arguments(ListFacts, None) == read_arguments(ListFacts, "") == ListFacts()


@pytest.mark.parametrize(
    ("model", "arguments", "field"),
    [
        (SearchMemory, "{", "arguments"),
        (SearchMemory, "[" * 100_000, "arguments"),
        (SearchMemory, "[]", "arguments"),
        (SearchMemory, 7, "arguments"),
        (SearchMemory, '"' + "x" * 1_000_001 + '"', "arguments"),
        (SearchMemory, {}, "query"),
        (SearchMemory, {"query": None}, "query"),
        (SearchMemory, {"query": 7}, "query"),
        (SearchMemory, {"query": "dog", "limit": 0}, "limit"),
        (SearchMemory, {"query": "dog", "limit": "many"}, "limit"),
        (SearchMemory, {"query": "dog", "kinds": "fact"}, "kinds"),
        (SearchMemory, {"query": "dog", "kinds": []}, "kinds"),
        (SearchMemory, {"querry": "dog"}, "querry"),
        (SearchMemory, {"query": "dog", "a word that nobody may repeat": 1}, "?"),
        (StoreMemory, {"text": "A dog.", "importance": 11}, "importance"),
        (StoreMemory, {"text": "A dog.", "tags": "pet"}, "tags"),
        (ListFacts, {"as_of": "yesterday"}, "as_of"),
        (RecordTurns, {"messages": []}, "messages"),
        (RecordTurns, {"messages": [{"role": "user"}]}, "messages[0].content"),
        (RecordTurns, {"messages": [{"role": "user", "content": "a"}] * 101}, "messages"),
    ],
    ids=lambda value: str(value)[:50],
)
def test_a_wrong_argument_is_named(model: Any, arguments: object, field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read_arguments(model, arguments)
    assert refused.value.field == field


def test_an_unknown_argument_is_answered_with_those_that_there_are() -> None:
    with pytest.raises(InvalidInput) as refused:
        read_arguments(SearchMemory, {"query": "dog", "top_k": 3})
    assert refused.value.message.startswith("top_k: there is no such argument; there are query, kinds")


def test_an_error_tells_the_model_what_to_do() -> None:
    wrong = tool_error(InvalidInput("limit: 1 to 50", field="limit"))
    away = tool_error(StoreUnavailable("the database is away"))

    assert wrong.is_error
    assert wrong.data["error"] == {"type": "invalid_input", "message": "limit: 1 to 50", "field": "limit"}
    assert "go on without it" in away.text
    assert json.loads(away.content) == away.data


def test_a_fault_of_ours_is_an_answer_too() -> None:
    nothing_to_work_with = cast(Runtime, None)

    answer = call_tool(nothing_to_work_with, 1, Scope("ada", "mira"), name="list_facts", arguments={})

    assert answer.is_error
    assert answer.data["error"]["type"] == "permanent"


def test_a_long_text_is_cut() -> None:
    assert short("x" * TEXT_CHARS) == "x" * TEXT_CHARS
    assert short("x" * (TEXT_CHARS + 1)) == "x" * (TEXT_CHARS - 1) + "…"
