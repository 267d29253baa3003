"""Merges that a language model words: its sentence stands where it holds, else the longest text as ever."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import all_shards
import pytest
from sqlalchemy import Engine, text

from memory_app.agents.agents import AgentChange, change_agent
from memory_app.dispatch.job_table import JOBS
from memory_app.jobs import jobs
from memory_app.jobs.rows.runs import Run
from memory_app.memories.lookup import pin
from memory_app.memories.remember import remember
from memory_app.providers.embedders import HashEmbedder
from memory_app.providers.embedders.embedder import Vectors
from memory_app.records.records import Statement
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime, build
from memory_app.settings import Chat, Settings
from memory_app.sleep import consolidate
from memory_app.sleep.undo import undo_run
from memory_app.testing import Rule, StubProvider

SCOPE = Scope("ada", "Bob")
PARTS = (
    "Bob drinks strong black tea with lemon and sugar every morning at home.",
    "Bob drinks strong black tea with lemon and honey before work each day.",
)
SENTENCE = "Bob drinks strong black tea with lemon and sugar or honey every morning at home before work."


class Alike(HashEmbedder):
    """Takes all texts for much alike."""

    def embed(self, texts: list[str]) -> Vectors:  # type: ignore[override]
        vectors = super().embed([PARTS[0]] * len(texts)) + 0.2 * super().embed(texts)
        return vectors / (vectors**2).sum(axis=1, keepdims=True) ** 0.5


@pytest.fixture
def stub() -> Iterator[StubProvider]:
    with StubProvider() as stub:
        yield stub


@pytest.fixture
def asking(settings: Settings, stub: StubProvider, tenant: int) -> Iterator[Runtime]:
    """The live parts with a model."""
    chat = Chat(base_url=stub.base_url, model="small")
    runtime = all_shards.at_work(build(settings.model_copy(update={"chat": chat})))
    yield replace(runtime, embedder=Alike())
    runtime.close()


def set_extraction(runtime: Runtime, tenant: int, mode: str) -> None:
    change_agent(
        runtime, tenant, Scope("ada"), change=AgentChange(frozenset({"policy"}), policy={"extraction": mode})
    )


def united(runtime: Runtime, tenant: int, *parts: str) -> Run:
    for part in parts:
        remember(runtime, tenant, SCOPE, statement=Statement("fact", part), deduplicate=False)
    asked = consolidate.ask(runtime, tenant, SCOPE)
    jobs.perform(runtime, asked.id, JOBS)
    return jobs.read(runtime, tenant, asked.id)


def current(owner: Engine) -> list[str]:
    with owner.connect() as connection:
        statement = text("SELECT text FROM memories WHERE retired_at IS NULL ORDER BY id")
        return list(connection.execute(statement).scalars())


def test_where_the_agent_asks_a_model_it_words_what_is_united(
    asking: Runtime, stub: StubProvider, tenant: int, owner: Engine
) -> None:
    stub.follow(Rule(answer={"text": SENTENCE}))
    set_extraction(asking, tenant, "llm")
    done = united(asking, tenant, *PARTS)
    assert (done.state, done.report["freed"], done.report["worded"]) == ("done", 1, 1)
    assert current(owner) == [SENTENCE]
    undo_run(asking, tenant, done.id)
    assert sorted(current(owner)) == sorted(PARTS)


def test_where_it_asks_none_nothing_changes(
    asking: Runtime, stub: StubProvider, tenant: int, owner: Engine
) -> None:
    set_extraction(asking, tenant, "rules")
    assert united(asking, tenant, *PARTS).report["worded"] == 0
    assert current(owner) == [max(PARTS, key=len)]
    assert stub.requests == []


@pytest.mark.parametrize(
    "sentence",
    [
        "Bob drinks 2 cups of strong black tea.",
        "Bob and Clara drink strong black tea.",
        "Bob drinks no strong black tea with lemon.",
        SENTENCE * 3,
    ],
)
def test_a_sentence_that_does_not_hold_is_not_taken(
    asking: Runtime, stub: StubProvider, tenant: int, owner: Engine, *, sentence: str
) -> None:
    stub.follow(Rule(answer={"text": sentence}))
    set_extraction(asking, tenant, "llm")
    assert united(asking, tenant, *PARTS).report["worded"] == 0
    assert current(owner) == [max(PARTS, key=len)]


def test_what_changed_while_the_model_was_asked_is_left_alone(
    asking: Runtime, stub: StubProvider, tenant: int, owner: Engine
) -> None:
    def change_then_answer(_: object) -> object:
        with owner.connect() as connection:
            memory_id = connection.execute(text("SELECT id FROM memories ORDER BY id LIMIT 1")).scalar_one()
        pin(asking, tenant, memory_id, pinned=True)
        return {"text": SENTENCE}

    stub.follow(Rule(answer=change_then_answer))
    set_extraction(asking, tenant, "llm")
    assert united(asking, tenant, *PARTS).report["freed"] == 0
    assert sorted(current(owner)) == sorted(PARTS)


def test_while_the_model_is_away_the_run_waits(
    asking: Runtime, stub: StubProvider, tenant: int, owner: Engine
) -> None:
    set_extraction(asking, tenant, "llm")
    stub.close()
    assert united(asking, tenant, *PARTS).state != "done"
    assert sorted(current(owner)) == sorted(PARTS)
