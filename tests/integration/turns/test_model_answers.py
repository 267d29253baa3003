"""What an odd item in a language model's answer leaves behind: in memory, with the turn, in the run, in the metrics."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import all_shards
import pytest
from fastapi.testclient import TestClient
from queries import rows
from sqlalchemy import Engine
from sqlalchemy import text as sql

from memory_app import correlation
from memory_app.agents.agents import AgentChange, change_agent
from memory_app.dispatch import finder
from memory_app.dispatch.job_table import JOBS
from memory_app.jobs import jobs
from memory_app.main.http import create_app
from memory_app.memories.remember import remember
from memory_app.records.records import NewTurn, Role, Stage, Statement
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime, build
from memory_app.settings import Chat, Extract, Settings
from memory_app.sleep import synthesis
from memory_app.testing import Mode, Rule, StubProvider
from memory_app.turns import failed
from memory_app.turns.record import record
from memory_app.turns.tickets import ticket

SCOPE = Scope("Nova", "Mira", "chat")
DOG = {"text": "Mira has a dog called Pepper.", "evidence": ["@Pepper"]}
EMPTY = {"text": "", "evidence": ["@Pepper"]}
METRIC = "memory_dropped_items_total"


@pytest.fixture
def stub() -> Iterator[StubProvider]:
    with StubProvider() as stub:
        yield stub


@pytest.fixture
def asking(settings: Settings, stub: StubProvider, tenant: int) -> Iterator[Runtime]:
    """The live parts with a model, for an agent that asks it."""
    parts: dict[str, Any] = {
        "chat": Chat(base_url=stub.base_url, model="small"),
        "extract": Extract(idle_seconds=0, max_age_seconds=0),
    }
    runtime = all_shards.at_work(build(settings.model_copy(update=parts)))
    change = AgentChange(frozenset({"policy"}), policy={"extraction": "llm"})
    change_agent(runtime, tenant, Scope(SCOPE.agent), change=change)
    yield runtime
    runtime.close()


def drain_until_done(asking: Runtime, owner: Engine) -> None:
    """Drain what is due, and what waits for its next try."""
    for _ in range(6):
        finder.drain(asking)
        with owner.begin() as connection:
            connection.execute(sql("UPDATE sessions SET due_at = now() WHERE due_at IS NOT NULL"))


def calls(stub: StubProvider) -> int:
    return sum("chat" in request.path for request in stub.requests)


def report(owner: Engine, name: str) -> dict[str, Any]:
    (run,) = rows(owner, f"SELECT report, state, reason FROM runs WHERE name = '{name}'")
    assert run.state == "done", run.reason
    return dict(run.report)


def metrics(runtime: Runtime) -> dict[str, float]:
    """What was dropped, by reason."""
    text = TestClient(create_app(runtime)).get("/metrics").text
    lines = [
        line.removeprefix(f'{METRIC}{{reason="') for line in text.splitlines() if line.startswith(METRIC)
    ]
    return {reason: float(count) for reason, count in (line.split('"} ') for line in lines)}


def test_an_odd_item_is_seen_with_the_turn_in_the_run_and_in_the_metrics(
    asking: Runtime, stub: StubProvider, tenant: int, owner: Engine
) -> None:
    # given a model that states one good fact and two odd ones of two turns
    lists: dict[str, Any] = {"insights": None, "identity_notes": [], "topics": [], "tones": "none"}
    stub.follow(Rule(answer={**lists, "facts": [EMPTY, DOG, {"evidence": ["@Pepper"]}]}))
    said = ("My dog Pepper helps me every morning.", "It rained all day in the valley.")
    dog, rain = record(asking, tenant, SCOPE, [NewTurn(Role.USER, text) for text in said])
    # when they are extracted
    finder.drain(asking)
    # then one call was made, and the good fact is remembered
    assert calls(stub) == 1
    assert [row.text for row in rows(owner, "SELECT text FROM memories")] == [DOG["text"]]
    # and the odd ones are counted
    assert len(ticket(asking, tenant, dog.id).memory_ids) == 1
    reason = ticket(asking, tenant, rain.id).reason
    assert reason == "nothing noteworthy (unreadable in the model's answer: 2)"
    assert report(owner, "extract")["made"]["dropped"] == {"unreadable facts": 2}
    assert metrics(asking) == {"unreadable facts": 2}


def test_odd_items_of_a_session_and_of_looking_back_are_counted(
    asking: Runtime, stub: StubProvider, tenant: int, owner: Engine
) -> None:
    bond: dict[str, Any] = {"anchors": [], "identity_notes": [], "topics": [], "tones": [EMPTY]}
    deep = {"consolidated": [{"text": ""}], "patterns": None, "links": ["m1"]}
    stub.follow(
        Rule(contains='"synthesize_session"', answer={**bond, "facts": [DOG, EMPTY], "summary": ""}),
        Rule(contains='"synthesize_deep"', answer=deep),
    )
    record(asking, tenant, SCOPE, [NewTurn(Role.USER, "My dog Pepper helps me every morning.")])
    for text in ("Mira likes tea.", "Mira plays chess."):
        remember(asking, tenant, Scope("Nova", "Mira"), statement=Statement("fact", text))
    for type in ("session", "deep"):
        jobs.perform(asking, synthesis.ask_for(asking, tenant, SCOPE, type=type).id, JOBS)

    assert calls(stub) == 2
    session = report(owner, "synthesize_session")
    assert (session["statements"], session["summary"]) == (1, False)
    assert session["made"]["dropped"] == {"unreadable tones": 1, "unreadable facts": 1}
    looked_back = report(owner, "synthesize_deep")["made"]["dropped"]
    assert looked_back == {"unreadable consolidated": 1, "unreadable links": 1}
    assert metrics(asking) == {**session["made"]["dropped"], **looked_back}


def test_without_redis_an_answer_with_odd_items_is_applied_all_the_same(
    asking: Runtime, stub: StubProvider, tenant: int, owner: Engine
) -> None:
    stub.follow(Rule(answer={"facts": [DOG, EMPTY]}))
    record(asking, tenant, SCOPE, [NewTurn(Role.USER, "My dog Pepper helps me every morning.")])
    asking.hot.outage.failed()
    finder.drain(asking)
    assert [row.text for row in rows(owner, "SELECT text FROM memories")] == [DOG["text"]]
    assert report(owner, "extract")["made"]["dropped"] == {"unreadable facts": 1}


def test_a_date_that_a_model_names_does_not_make_the_newest_word_old(
    asking: Runtime, stub: StubProvider, tenant: int, owner: Engine
) -> None:
    lists: dict[str, Any] = {"insights": [], "identity_notes": [], "topics": [], "tones": []}

    def home(city: str, evidence: str, **more: str) -> Rule:
        fact = {
            "text": f"Mira lives in {city}.",
            "subject": "user",
            "relation": "lives_in",
            "object": city,
            "evidence": [evidence],
        }
        return Rule(contains=evidence.removeprefix("@"), answer={**lists, "facts": [{**fact, **more}]})

    # given a home, and ten days later another one since last month, of which a model names the date
    stub.follow(home("Lisbon", "@moved to Lisbon", when="last month"), home("Porto", "@live in Porto"))
    for day, text in ((18, "I live in Porto near the river."), (28, "I moved to Lisbon last month.")):
        session = Scope(SCOPE.agent, SCOPE.user, f"day-{day}")
        at = datetime(2026, 11, day, 9, tzinfo=UTC)
        record(asking, tenant, session, [NewTurn(Role.USER, text, at=at)])
        finder.drain(asking)
    # then the later word is current, since the date that it names
    held = rows(owner, "SELECT object, valid_from, valid_until FROM memories ORDER BY object")
    assert [(row.object, row.valid_until is None) for row in held] == [("Lisbon", True), ("Porto", False)]
    assert held[0].valid_from < datetime(2026, 11, 2, tzinfo=UTC)
    assert (
        datetime(2026, 11, 18, 9, tzinfo=UTC) < held[1].valid_until <= datetime(2026, 11, 28, 9, tzinfo=UTC)
    )


TALK = tuple(f"My neighbour number {place} plays the cello in the morning." for place in range(8))


def test_a_model_that_never_answers_in_form_is_asked_twice(
    asking: Runtime, stub: StubProvider, tenant: int, owner: Engine
) -> None:
    stub.follow(Rule(Mode.NOT_JSON))
    tickets = record(asking, tenant, SCOPE, [NewTurn(Role.USER, text) for text in TALK])
    drain_until_done(asking, owner)

    assert calls(stub) == 2
    reason = (
        "there is no JSON in the answer, after one repair (model small); "
        "8 turns were asked about together and are set aside"
    )
    for turn in tickets:
        found = ticket(asking, tenant, turn.id)
        assert (found.stage, found.reason) == (Stage.FAILED, reason)
    (run,) = rows(owner, "SELECT state, reason FROM runs WHERE name = 'extract'")
    assert (run.state, run.reason) == ("failed", reason)


def test_the_line_of_a_task_that_failed_leads_to_its_turns(
    asking: Runtime, stub: StubProvider, tenant: int, owner: Engine
) -> None:
    stub.follow(Rule(Mode.NOT_JSON))
    tickets = record(asking, tenant, SCOPE, [NewTurn(Role.USER, text) for text in TALK[:2]])

    with correlation.task(None, "test") as work:
        drain_until_done(asking, owner)

    assert ticket(asking, tenant, tickets[0].id).stage is Stage.FAILED
    (run,) = rows(owner, "SELECT id FROM runs WHERE name = 'extract'")
    assert set(work.summary()["turns"]) == {str(turn.id) for turn in tickets}  # type: ignore[arg-type]
    assert work.summary()["runs"] == [str(run.id)]


def test_a_turn_that_failed_by_an_unreadable_answer_can_be_replayed(
    asking: Runtime, stub: StubProvider, tenant: int, owner: Engine
) -> None:
    stub.follow(Rule(Mode.NOT_JSON, times=2), Rule(answer={"facts": [DOG]}))
    (lost,) = record(asking, tenant, SCOPE, [NewTurn(Role.USER, "My dog Pepper helps me every morning.")])
    finder.drain(asking)
    assert ticket(asking, tenant, lost.id).stage is Stage.FAILED
    failed.replay(asking, tenant, lost.id)
    finder.drain(asking)
    assert ticket(asking, tenant, lost.id).memory_ids
    assert calls(stub) == 3


@pytest.mark.parametrize("mode", [Mode.REFUSAL, Mode.BAD_REQUEST])
def test_a_turn_that_the_model_refuses_fails_alone(
    asking: Runtime, stub: StubProvider, tenant: int, owner: Engine, mode: Mode
) -> None:
    fact = {"text": "Mira's neighbour plays the cello.", "evidence": ["@cello"]}
    stub.follow(Rule(mode, matches=r"\[t\d+\][^\[]*forbidden"), Rule(answer={"facts": [fact]}))
    texts = (TALK[0], "This one is about something forbidden to speak of.", TALK[1])
    before, refused, after = record(asking, tenant, SCOPE, [NewTurn(Role.USER, text) for text in texts])
    drain_until_done(asking, owner)

    stages = [ticket(asking, tenant, turn.id).stage for turn in (before, refused, after)]
    assert stages == [Stage.EXTRACTED, Stage.FAILED, Stage.EXTRACTED]
    # three together, the first alone, the other two together, the second alone, the third
    assert calls(stub) == 5


def test_the_latest_turns_are_synthesised_when_somebody_asks(
    asking: Runtime, stub: StubProvider, tenant: int, owner: Engine
) -> None:
    # given four short turns that were read, and a model that makes more of the last ten when it sees them together
    said = ("I'm vegan.", "I'm 34.", "I sing.", "It rains.")
    record(asking, tenant, SCOPE, [NewTurn(Role.USER, f"Filler number {number}.") for number in range(8)])
    record(asking, tenant, SCOPE, [NewTurn(Role.USER, text) for text in said])
    vegan = {"text": "Mira is vegan.", "evidence": ["@vegan"]}
    lists: dict[str, Any] = {"insights": [], "identity_notes": [], "topics": [], "tones": []}
    stub.follow(Rule(answer={**lists, "facts": [vegan]}))
    finder.drain(asking)
    before = calls(stub)
    assert before >= 1, "short turns are read"
    # when a turn synthesis is asked for
    sings = {"text": "Mira sings.", "evidence": ["@I sing"]}
    stub.follow(Rule(answer={**lists, "facts": [vegan, sings]}))
    run = synthesis.ask_for(asking, tenant, SCOPE, type="turn")
    jobs.perform(asking, run.id, JOBS)
    # then the last ten turns were read in one call, after three before them
    assert calls(stub) == before + 1
    shown = str(stub.requests[-1].body["messages"])
    # twelve turns: the first two are out of reach but for the three before the last ten
    assert ["[e1]" in shown, "[e2]" in shown, "[e3]" in shown, "[t10]" in shown] == [True, True, False, True]
    done = report(owner, "synthesize_turns")
    assert (done["turns"], len(done["memories"]), done["made"]["calls"]) == (10, 2, 1)
    # and what was known is reinforced, what is new is stored, both tagged
    stored = rows(
        owner, "SELECT text, tags, repeat_count FROM memories WHERE retired_at IS NULL ORDER BY text"
    )
    assert [row.text for row in stored] == ["Mira is vegan.", "Mira sings."]
    assert all({"auto-synthesized", "turn-synthesis"} <= set(row.tags) for row in stored)
    assert stored[0].repeat_count > stored[1].repeat_count


def test_without_a_model_the_latest_turns_are_not_synthesised(
    asking: Runtime, stub: StubProvider, tenant: int, owner: Engine
) -> None:
    record(asking, tenant, SCOPE, [NewTurn(Role.USER, "My dog Pepper helps me every morning.")])
    rules = AgentChange(frozenset({"policy"}), policy={"extraction": "rules"})
    change_agent(asking, tenant, Scope(SCOPE.agent), change=rules)
    jobs.perform(asking, synthesis.ask_for(asking, tenant, SCOPE, type="turn").id, JOBS)
    (run,) = rows(owner, "SELECT state, reason FROM runs WHERE name = 'synthesize_turns'")
    assert run.state == "failed"
    assert "set its extraction to llm" in run.reason
    assert calls(stub) == 0
