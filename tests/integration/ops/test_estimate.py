"""What a language model costs is told in advance, and comes true."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import all_shards
import pytest
from commands import Memory as Console

from memory_app.agents.agents import AgentChange, change_agent
from memory_app.dispatch import finder
from memory_app.dispatch.job_table import JOBS
from memory_app.errors import NotFound
from memory_app.jobs import jobs
from memory_app.ops.estimate import PER_TURNS, batches, estimate, typical_talk
from memory_app.records.records import NewTurn, Role, Turn
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime, build
from memory_app.settings import Chat, Extract, ModelPrice, Settings
from memory_app.sleep import synthesis
from memory_app.tenancy.policy import ExtractionMode, Policy
from memory_app.testing import StubProvider
from memory_app.turns.record import debounce, record
from memory_app.turns.rows.samples import SampleTurn

AT = datetime(2026, 3, 6, 18, tzinfo=UTC)
TOPICS = ("the garden", "my sister's wedding", "a trip to the coast", "learning the cello", "the old car")
PRICES = {"small": ModelPrice(tokens_in=Decimal("0.5"), tokens_out=Decimal(2))}


@pytest.fixture
def stub() -> Iterator[StubProvider]:
    with StubProvider() as stub:
        yield stub


@pytest.fixture
def asking(settings: Settings, stub: StubProvider, tenant: int) -> Iterator[Runtime]:
    parts: dict[str, Any] = {
        "chat": Chat(base_url=stub.base_url, model="small", prices=PRICES),
        # A worker that is never late, which is what is estimated.
        "extract": Extract(batch=8, after_turns=8, idle_seconds=0, max_age_seconds=0),
    }
    runtime = all_shards.at_work(build(settings.model_copy(update=parts)))
    set_extraction(runtime, tenant, "llm")
    yield runtime
    runtime.close()


def set_extraction(runtime: Runtime, tenant: int, mode: str) -> None:
    change = AgentChange(frozenset({"policy"}), policy={"extraction": mode})
    change_agent(runtime, tenant, Scope("nova"), change=change)


def talk_about(topic: str) -> list[NewTurn]:
    turns: list[NewTurn] = []
    for number in range(10):
        said = f"On day {number} I thought about {topic} again, and this time I wrote down what I want to do."
        answer = (
            f"It is good that {topic} has a place in your days. What would be the first step on day {number}?"
        )
        turns += [NewTurn(Role.USER, said), NewTurn(Role.ASSISTANT, answer)]
    return turns


def test_what_is_told_comes_true_within_a_fifth(asking: Runtime, tenant: int) -> None:
    # given conversations of a person with an agent
    for place, topic in enumerate(TOPICS):
        record(asking, tenant, Scope("nova", "Mira", f"s{place}"), talk_about(topic))
    told = estimate(asking, tenant, "nova")
    assert (told.sampled, told.counted) == (100, None)
    # when they are read, each session is synthesised, and the memories once
    finder.drain(asking)
    for place in range(len(TOPICS)):
        run = synthesis.ask_for(asking, tenant, Scope("nova", "Mira", f"s{place}"), type="session")
        jobs.perform(asking, run.id, JOBS)
    run = synthesis.ask_for(asking, tenant, Scope("nova", "Mira"), type="deep")
    jobs.perform(asking, run.id, JOBS)
    # then as many calls were made as was told, and they cost what was told
    counted = estimate(asking, tenant, "nova").counted
    assert counted is not None
    assert counted.turns == 100
    assert told.total.calls == pytest.approx(counted.calls)
    assert told.total.tokens_in == pytest.approx(counted.tokens_in, rel=0.2)
    assert told.total.cost_usd is not None
    assert float(told.total.cost_usd) == pytest.approx(float(counted.cost_usd), rel=0.2)


def test_an_agent_without_conversations_gets_a_typical_one(asking: Runtime, tenant: int) -> None:
    told = estimate(asking, tenant, "nova")
    assert told.sampled == 0
    assert any("a typical conversation is assumed" in note for note in told.notes)
    assert told.total.calls > 0
    assert told.total.cost_usd is not None
    assert Decimal("0.05") < told.total.cost_usd < Decimal(2)


def test_an_agent_that_asks_no_model_costs_nothing_until_it_does(asking: Runtime, tenant: int) -> None:
    set_extraction(asking, tenant, "rules")
    told = estimate(asking, tenant, "nova")
    assert (told.steps, told.total.calls) == ((), 0)
    assert "--extraction llm" in told.notes[0]
    assert estimate(asking, tenant, "nova", extraction=ExtractionMode.LLM).total.calls > 0


def test_a_model_without_a_price_has_no_cost_rather_than_none_at_all(asking: Runtime, tenant: int) -> None:
    chat = asking.settings.chat.model_copy(update={"large_model": "large"})
    dear = replace(asking, settings=asking.settings.model_copy(update={"chat": chat}))
    told = estimate(dear, tenant, "nova")
    costs = {step.name: step.cost_usd is None for step in told.steps}
    assert costs == {"turns": False, "sessions": True, "deep": True}
    assert told.total.cost_usd is None
    assert "no price of large: set MEMORY_CHAT__PRICES" in told.notes


def test_an_unknown_agent_is_named(asking: Runtime, tenant: int) -> None:
    with pytest.raises(NotFound):
        estimate(asking, tenant, "nobody")


def cut(session: list[SampleTurn], policy: Policy) -> list[tuple[SampleTurn, ...]]:
    times = debounce(policy, Extract())
    assert times is not None
    return list(batches(session, times, limit=Extract().batch))


def said(seconds: float, seq: int) -> SampleTurn:
    at = AT + timedelta(seconds=seconds)
    return SampleTurn(Turn(UUID(int=seq), "s", seq, Role.USER, "user", "I live here.", at), 1, at)


@pytest.mark.parametrize(
    ("seconds", "sizes"),
    [
        ([0] * 8, [8]),
        ([0] * 17, [8, 8, 1]),
        ([0, 10, 60, 70], [2, 2]),
        # Never idle, but the oldest has waited long enough.
        ([0, 15, 30, 45, 60, 75, 90], [7]),
        ([0, 19, 38, 57, 76, 95, 114, 133], [7, 1]),
    ],
)
def test_turns_are_read_together_as_the_settings_say(seconds: list[float], sizes: list[int]) -> None:
    session = [said(second, seq) for seq, second in enumerate(seconds, 1)]
    assert [len(batch) for batch in cut(session, Policy(extraction=ExtractionMode.LLM))] == sizes


def test_slow_talk_costs_more_calls_than_fast_talk() -> None:
    patient = Policy(extraction=ExtractionMode.LLM, idle_seconds=600, max_age_seconds=3600)
    slow, fast = (
        cut(list(typical_talk()), replace(patient, idle_seconds=20)),
        cut(list(typical_talk()), patient),
    )
    assert (len(slow), len(fast)) == (10, 3)


def test_the_command_shows_the_table_and_json(
    asking: Runtime, tenant: int, memory: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = memory("estimate", "--agent", "nova", "--tenant", "acme")
    assert shown.status == 0, shown.err
    assert f"per {PER_TURNS:,} turns of nova" in shown.out
    assert "no model is set" in shown.out
    monkeypatch.setenv("MEMORY_CHAT__MODEL", "small")
    monkeypatch.setenv("MEMORY_CHAT__PRICES", '{"small": {"tokens_in": 1, "tokens_out": 2}}')
    document = json.loads(memory("estimate", "--agent", "nova", "--tenant", "acme", "--json").out)
    assert [step["name"] for step in document["steps"]] == ["turns", "sessions", "deep"]
    assert Decimal(document["total"]["cost_usd"]) > 0
    assert memory("estimate", "--agent", "nobody", "--tenant", "acme").status == 1
