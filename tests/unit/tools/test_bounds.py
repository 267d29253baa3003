"""Whose memory a call over MCP may use."""

from __future__ import annotations

import pytest

from memory_app.errors import InvalidInput
from memory_app.records.scope import Scope
from memory_app.tools.bounds import Bounds
from memory_app.tools.calls import TOOLS

SEARCH, RECORD, CONTEXT = TOOLS["search_memory"], TOOLS["record_turns"], TOOLS["get_context"]


def test_what_is_fixed_is_no_argument() -> None:
    bounds = Bounds("ada", "mira", "chat")

    assert [*bounds.schema(RECORD)["properties"]] == ["messages"]
    assert bounds.split(RECORD, {"messages": []}) == (Scope("ada", "mira", "chat"), {"messages": []})
    assert bounds.split(SEARCH, {"query": "dog"}) == (Scope("ada", "mira"), {"query": "dog"})


def test_what_is_open_is_an_argument() -> None:
    bounds = Bounds("ada")

    assert bounds.schema(SEARCH)["required"] == ["user", "query"]
    assert bounds.schema(RECORD)["required"] == ["user", "session", "messages"]
    assert "session" in bounds.schema(CONTEXT)["properties"]
    assert bounds.split(CONTEXT, {"user": "mira", "query": "?"}) == (Scope("ada", "mira"), {"query": "?"})


@pytest.mark.parametrize(
    ("bounds", "arguments", "field"),
    [
        (Bounds("ada", "mira"), {"query": "dog", "user": "eve"}, "user"),
        (Bounds("ada", "mira"), {"query": "dog", "agent": "max"}, "agent"),
        (Bounds("ada", "mira", "chat"), {"query": "dog", "session": "other"}, "session"),
        (Bounds("ada"), {"query": "dog"}, "user"),
        (Bounds("ada"), {"query": "dog", "user": ""}, "user"),
        (Bounds("ada"), {"query": "dog", "user": 7}, "user"),
        (Bounds(), {"query": "dog", "user": "mira"}, "agent"),
    ],
    ids=str,
)
def test_a_scope_outside_the_bounds_is_refused(
    bounds: Bounds, arguments: dict[str, object], field: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        bounds.split(SEARCH, arguments)
    assert refused.value.field == field


def test_a_fixed_part_is_a_name() -> None:
    with pytest.raises(InvalidInput):
        Bounds(user="a\nb")
