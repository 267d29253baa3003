"""Trying out: the window section by section, and why each candidate of a recall stands where it does."""

from __future__ import annotations

import pytest
from fastapi import FastAPI
from page_visitor import Visitor
from sqlalchemy import Engine, text

from memory_app.dispatch import finder
from memory_app.main.http import create_app
from memory_app.memories.remember import remember
from memory_app.records.records import NewTurn, Role, Statement
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.turns.record import record

HERE = "/agents/ada/users/mira/try"


@pytest.fixture
def app(runtime: Runtime) -> FastAPI:
    return create_app(runtime)


@pytest.fixture
def visitor(app: FastAPI, api_key: str, runtime: Runtime, tenant: int) -> Visitor:
    chat = Scope("ada", "mira", "chat")
    said = ("I live in Porto.", "I am allergic to peanuts.", "<script>alert(1)</script> is my motto.")
    record(runtime, tenant, chat, new=[NewTurn(Role.USER, words) for words in said])
    finder.drain(runtime)
    visitor = Visitor(app)
    visitor.log_in(api_key)
    visitor.get(HERE)
    return visitor


def test_the_window_and_two_presets_are_shown_side_by_side(visitor: Visitor) -> None:
    visitor.send(HERE, query="Where do I live?", budget_tokens="1500", preset="balanced", other="keyword")

    assert "of 1 500 tokens".replace(" 5", "\N{NARROW NO-BREAK SPACE}5") in visitor.html
    assert "Porto" in visitor.text and "allergic to peanuts" in visitor.text
    assert "Recall by balanced" in visitor.text and "Recall by keyword" in visitor.text
    assert visitor.html.count('class="stack"') >= 4 and "adds 0." in visitor.html
    assert "<script>alert" not in visitor.html


def test_what_finds_no_room_is_named(visitor: Visitor) -> None:
    visitor.send(HERE, query="Where do I live?", budget_tokens="60")

    assert "Not shown in full" in visitor.text and "no room in the budget" in visitor.text


def test_a_candidate_that_is_cut_says_why(runtime: Runtime, tenant: int, visitor: Visitor) -> None:
    for number in range(15):
        statement = Statement("fact", f"Mira has lived in house {number} of Porto.")
        remember(runtime, tenant, Scope("ada", "mira"), statement=statement, deduplicate=False)

    visitor.send(HERE, query="Where do I live?")

    assert "that did not make it" in visitor.text and "limit" in visitor.text


@pytest.mark.parametrize(
    ("field", "value"),
    [("budget_tokens", "many"), ("preset", "nonsense"), ("other", "nonsense"), ("query", "x" * 9_000)],
)
def test_what_cannot_be_asked_is_named_and_shown_again(visitor: Visitor, field: str, value: str) -> None:
    answer = visitor.send(HERE, **{"query": "Where do I live?", field: value})

    assert answer.status_code == 422
    assert ("preset" if field == "other" else field) in visitor.text
    assert "Where do I live?" in visitor.html or value in visitor.html


def test_trying_writes_nothing(owner: Engine, runtime: Runtime, visitor: Visitor) -> None:
    counts = text("SELECT sum(recall_count), max(last_recalled) FROM memories")
    visitor.send(HERE, query="Where do I live?")
    with owner.connect() as connection:
        assert tuple(connection.execute(counts).one()) == (0, None)
