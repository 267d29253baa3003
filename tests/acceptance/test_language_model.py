"""A language model behind real workers: a story of two weeks, an outage, and a day's budget that is spent.

The model is our own HTTP server that speaks the OpenAI API; the workers are real Celery processes.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from pydantic import SecretStr
from sqlalchemy import Engine, text

from memory_app.agents.agents import AgentChange, change_agent
from memory_app.dispatch import finder
from memory_app.jobs.jobs import read
from memory_app.records.records import NewTurn, Role, Stage
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime, build
from memory_app.settings import Chat, Extract, Settings
from memory_app.sleep import synthesis
from memory_app.testing import StubProcess
from memory_app.testing.story import AGENT, RULES, SESSIONS, USER
from memory_app.turns.record import record
from memory_app.turns.tickets import ticket

PERSON = Scope(AGENT, USER)
PATIENCE_SECONDS = 200.0


def wait_until(condition: Callable[[], bool], description: str) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain: {description}"
        time.sleep(0.1)


@pytest.fixture
def stub() -> Iterator[StubProcess]:
    with StubProcess() as stub:
        yield stub


@pytest.fixture
def model(settings: Settings, stub: StubProcess) -> Iterator[Runtime]:
    """The live parts with a language model; turns become due after one silent moment."""
    with_model = settings.model_copy(
        update={
            "chat": Chat(base_url=stub.base_url, key=SecretStr("none"), model="small", large_model="large"),
            "extract": Extract(idle_seconds=0, after_turns=4, max_age_seconds=0, retry_base_seconds=0.2),
        }
    )
    runtime = build(with_model)
    yield runtime
    runtime.close()


@pytest.fixture
def worker(environment: dict[str, str], model: Runtime, stub: StubProcess, tmp_path: Path) -> Iterator[None]:
    """A real worker of all queues that asks the stub."""
    variables = {
        **environment,
        "MEMORY_CHAT__BASE_URL": stub.base_url,
        "MEMORY_CHAT__MODEL": "small",
        "MEMORY_CHAT__LARGE_MODEL": "large",
        "MEMORY_EXTRACT__RETRY_BASE_SECONDS": "0.2",
    }
    command = [sys.executable, "-m", "celery", "-A", "workers.app", "--quiet", "worker"]
    command += [
        "-Q",
        "ingest,model,maintenance",
        "--concurrency",
        "2",
        "--without-gossip",
        "--without-mingle",
    ]
    with (tmp_path / "worker.log").open("wb") as log:
        process = subprocess.Popen(command, env=variables, stdout=log, stderr=log)
        yield
        process.terminate()
        process.wait(timeout=40)


def tell(runtime: Runtime, tenant: int, session: int) -> list[object]:
    story = SESSIONS[session]
    turns = [
        NewTurn(Role(role), said, at=story.begins + timedelta(minutes=place))
        for place, (role, said) in enumerate(story.turns)
    ]
    tickets = record(runtime, tenant, Scope(AGENT, USER, story.name), turns)
    return [one.id for one in tickets]


def is_read(runtime: Runtime, tenant: int, ids: list[object]) -> bool:
    finder.find_due(runtime)
    return all(ticket(runtime, tenant, id, wait_seconds=0).stage is Stage.EXTRACTED for id in ids)  # type: ignore[arg-type]


def test_a_story_of_two_weeks_becomes_what_it_should(
    model: Runtime, worker: None, stub: StubProcess, tenant: int, owner: Engine
) -> None:
    stub.follow(*RULES)
    change_agent(
        model, tenant, Scope(AGENT), change=AgentChange(frozenset({"policy"}), policy={"extraction": "llm"})
    )
    for session in (0, 1):
        ids = tell(model, tenant, session)
        wait_until(lambda told=ids: is_read(model, tenant, told), "all turns are read")  # type: ignore[misc]
        place = Scope(AGENT, USER, SESSIONS[session].name)
        run = synthesis.ask_for(model, tenant, place, type="session")
        done = read(model, tenant, run.id, wait_seconds=PATIENCE_SECONDS)
        assert done.state == "done", done.reason

    with owner.connect() as connection:
        rows = connection.execute(
            text("SELECT kind, text, valid_until, retired_reason FROM memories ORDER BY id")
        ).all()
    current = {(row.kind, row.text) for row in rows if row.retired_reason is None and row.valid_until is None}
    kinds = {kind for kind, _ in current}
    assert {"fact", "anchor", "artifact", "identity", "expression", "episode"} <= kinds
    works = [
        (row.text, row.retired_reason) for row in rows if row.kind == "fact" and " works at " in row.text
    ]
    assert {reason for _, reason in works} == {"superseded", None}, "the new job follows the old one"


def test_an_outage_of_the_model_loses_nothing_and_wastes_few_calls(
    model: Runtime, stub: StubProcess, tenant: int, owner: Engine
) -> None:
    stub.follow(*RULES)
    change_agent(
        model, tenant, Scope(AGENT), change=AgentChange(frozenset({"policy"}), policy={"extraction": "llm"})
    )
    stub.stop()
    ids = tell(model, tenant, 0)
    finder.drain(model)
    assert ticket(model, tenant, ids[0], wait_seconds=0).stage is Stage.INDEXED  # type: ignore[arg-type]

    stub.start()
    with owner.begin() as connection:
        connection.execute(text("UPDATE sessions SET due_at = now()"))

    def is_drained() -> bool:
        finder.drain(model)
        return is_read(model, tenant, ids)

    wait_until(is_drained, "the turns are read after the outage")
    assert sum(stub.stats()["calls"].values()) <= 3, stub.stats()


def test_a_spent_day_postpones_the_work_and_the_next_day_does_it(
    model: Runtime, stub: StubProcess, tenant: int, owner: Engine
) -> None:
    stub.follow(*RULES)
    change_agent(
        model, tenant, Scope(AGENT), change=AgentChange(frozenset({"policy"}), policy={"extraction": "llm"})
    )
    capped = build(
        model.settings.model_copy(
            update={"chat": model.settings.chat.model_copy(update={"tokens_per_day": 1})}
        )
    )
    first = tell(model, tenant, 0)
    finder.drain(capped)
    second = tell(model, tenant, 1)
    finder.drain(capped)
    assert is_read(capped, tenant, first), "the first question was still free"
    assert ticket(capped, tenant, second[0], wait_seconds=0).stage is Stage.INDEXED  # type: ignore[arg-type]
    with owner.begin() as connection:
        waiting = connection.execute(
            text("SELECT failures, due_at - now() AS wait FROM sessions WHERE due_at IS NOT NULL")
        ).one()
        assert waiting.failures == 0, "waiting for the cap is no failure"
        connection.execute(text("UPDATE usage SET day = day - 1"))
        connection.execute(text("UPDATE sessions SET due_at = now() WHERE due_at IS NOT NULL"))
    finder.drain(capped)
    capped.close()
    assert is_read(model, tenant, second)
