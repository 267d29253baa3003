"""The narrative for a query: made after a context call, shown by the next on its subject, once in 300 seconds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import UUID

import all_shards
import pytest
from queries import rows
from sqlalchemy import Engine

from memory_app import MemoryApp, Scope
from memory_app.db.db import transaction
from memory_app.recall.narrative import make_narrative
from memory_app.runtime import build
from memory_app.settings import Chat, Context, Settings
from memory_app.tenancy.rows import names
from memory_app.testing import Mode, Rule, StubProvider

MIRA = Scope("Nova", "Mira")
CHOIR = (
    "Mira joined the choir of the Elbe Singers.",
    "The choir of the Elbe Singers sings on Tuesdays.",
    "Mira was afraid of the first rehearsal of the choir.",
    "Lea told Mira about the choir.",
)
ASKED = "How is the choir of the Elbe Singers going?"
STORY = "Mira joined the choir of the Elbe Singers. She was afraid of the first rehearsal of the choir."


def telling(body: Any) -> object:
    """A model that tells a story of the lines, and invents a bit."""
    shown = str(body["messages"][-1]["content"])

    def reference(words: str) -> list[str]:
        return [line.partition("]")[0][1:] for line in shown.splitlines() if words in line]

    joined, afraid = STORY.split(". ")
    return {
        "sentences": [
            {"text": f"{joined}.", "evidence": reference("joined the choir")},
            {"text": "Mira won the lottery in Monaco.", "evidence": reference("joined the choir")},
            {"text": afraid, "evidence": reference("first rehearsal")},
        ]
    }


@pytest.fixture
def stub() -> Iterator[StubProvider]:
    with StubProvider() as stub:
        stub.follow(Rule(path="/chat/completions", answer=telling))
        yield stub


def app_of(settings: Settings, stub: StubProvider, tenant: int, **more: Any) -> MemoryApp:
    parts = {"chat": Chat(base_url=stub.base_url, model="small")} | more
    return MemoryApp(all_shards.at_work(build(settings.model_copy(update=parts))), tenant)


@pytest.fixture
def memory(settings: Settings, stub: StubProvider, tenant: int) -> Iterator[MemoryApp]:
    with app_of(settings, stub, tenant) as memory:
        memory.change_agent("Nova", policy={"extraction": "llm"})
        for text in CHOIR:
            memory.remember(MIRA, text, deduplicate=False)
        yield memory


def work(memory: MemoryApp) -> None:
    """Do what a worker does that got the message."""
    runtime = memory.runtime
    with transaction(runtime.engine, memory.tenant_id) as connection:
        row = names.need_scope(connection, memory.tenant_id, MIRA)
    make_narrative(runtime, row.id)


def test_the_next_window_on_the_subject_tells_the_story(
    memory: MemoryApp, stub: StubProvider, owner: Engine
) -> None:
    assert STORY not in memory.context(MIRA, ASKED).text
    work(memory)
    window = memory.context(MIRA, "When does the choir of the Elbe Singers sing?")
    assert STORY in window.text
    assert "Monaco" not in window.text
    assert CHOIR[1] in window.text, "the rows stay"
    # counted apart from what extraction costs
    assert [(row.model, row.calls) for row in rows(owner, "SELECT model, calls FROM usage")] == [
        ("small (narrative)", 1)
    ]


def test_the_model_is_asked_once_however_often_a_window_is(memory: MemoryApp, stub: StubProvider) -> None:
    for _ in range(5):
        memory.context(MIRA, ASKED)
        work(memory)
    assert len(stub.requests) == 1


def test_no_word_of_a_query_stands_in_redis(memory: MemoryApp) -> None:
    memory.context(MIRA, "How is Mira's choir, the zanzibarian one of the Elbe Singers?")
    with memory.runtime.hot.calling() as redis:
        values = [redis.dump(key) or b"" for key in redis.scan_iter("*")]
    assert any(b"rows" in value for value in values), "the wish"
    assert not any(b"zanzibarian" in value for value in values)


def test_rows_that_are_forgotten_meanwhile_are_not_told(memory: MemoryApp, stub: StubProvider) -> None:
    memory.context(MIRA, ASKED)
    told = next(one for one in memory.recall(MIRA, ASKED).memories if "Lea" in one.text)
    assert isinstance(told.id, UUID)
    memory.forget_memory(told.id)
    work(memory)
    (request,) = stub.requests
    assert "joined the choir" in str(request.body) and "Lea told" not in str(request.body)


def test_another_subject_does_not_show_it(memory: MemoryApp) -> None:
    for part in ("door", "wheel", "mirror", "engine", "seat", "window", "lamp", "horn"):
        memory.remember(MIRA, f"The {part} of Mira's car in the garage is blue.", deduplicate=False)
    memory.context(MIRA, ASKED)
    work(memory)
    assert STORY not in memory.context(MIRA, "What of Mira's car in the garage is blue?").text
    assert STORY in memory.context(MIRA, ASKED).text


def test_a_memory_that_changes_takes_it_back(memory: MemoryApp) -> None:
    memory.context(MIRA, ASKED)
    work(memory)
    memory.remember(MIRA, "Mira left the choir of the Elbe Singers.")
    assert STORY not in memory.context(MIRA, ASKED).text


def test_what_changes_while_the_model_works_is_not_served(memory: MemoryApp, stub: StubProvider) -> None:
    def slowly(body: Any) -> object:
        memory.remember(MIRA, "Mira left the choir of the Elbe Singers.")
        return telling(body)

    stub.follow(Rule(path="/chat/completions", answer=slowly))
    memory.context(MIRA, ASKED)
    work(memory)
    assert STORY not in memory.context(MIRA, ASKED).text


def test_a_switch_and_a_policy_leave_it_out(
    settings: Settings, memory: MemoryApp, stub: StubProvider, tenant: int
) -> None:
    with app_of(settings, stub, tenant, context=Context(narrative=False)) as without:
        without.context(MIRA, ASKED)
        work(without)
    memory.amend_agent("Nova", policy={"extraction": "rules"})
    memory.context(MIRA, ASKED)
    work(memory)
    assert stub.requests == []


@pytest.mark.parametrize(
    "rule", [Rule(mode=Mode.NOT_JSON), Rule(mode=Mode.SERVER_ERROR), Rule(answer={"sentences": []})]
)
def test_a_model_that_fails_or_says_nothing_harms_no_window(
    memory: MemoryApp, stub: StubProvider, rule: Rule
) -> None:
    stub.follow(rule)
    before = memory.context(MIRA, ASKED).text
    work(memory)
    assert memory.context(MIRA, ASKED).text == before


def test_without_redis_a_window_is_as_it_was(memory: MemoryApp, stub: StubProvider) -> None:
    memory.runtime.hot.outage.failed()
    assert CHOIR[0] in memory.context(MIRA, ASKED).text
    assert stub.requests == []
