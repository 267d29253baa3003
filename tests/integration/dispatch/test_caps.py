"""Work that waits for a tenant's cap on a language model: its ticket says so, and it goes on once the cap is raised."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import all_shards
import pytest
from queries import rows
from sqlalchemy import Engine

from memory_app.agents.agents import AgentChange, change_agent
from memory_app.db.db import transaction
from memory_app.dispatch import caps, finder
from memory_app.dispatch.job_table import JOBS
from memory_app.jobs import jobs
from memory_app.records.records import NewTurn, Role
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime, build
from memory_app.settings import Chat, Extract, Settings
from memory_app.sleep import synthesis
from memory_app.tenancy.rows import usage
from memory_app.testing import Rule, StubProvider
from memory_app.turns.record import record
from memory_app.turns.tickets import ticket

SCOPE = Scope("Nova", "Mira", "chat")
DOG = {"text": "Mira has a dog called Pepper.", "evidence": ["@Pepper"]}

Start = Callable[[int | None], Runtime]


@pytest.fixture
def stub() -> Iterator[StubProvider]:
    with StubProvider() as stub:
        stub.follow(Rule(answer={"facts": [DOG]}))
        yield stub


@pytest.fixture
def start(settings: Settings, stub: StubProvider, tenant: int) -> Iterator[Start]:
    """Parts with a model and a cap of so many tokens a day, for an agent that asks it."""
    with ExitStack() as running:

        def started(tokens: int | None) -> Runtime:
            parts = {
                "chat": Chat(base_url=stub.base_url, model="small", tokens_per_day=tokens),
                "extract": Extract(idle_seconds=0, max_age_seconds=0),
            }
            runtime = all_shards.at_work(build(settings.model_copy(update=parts)))
            running.callback(runtime.close)
            return runtime

        change = AgentChange(frozenset({"policy"}), policy={"extraction": "llm"})
        change_agent(started(None), tenant, Scope(SCOPE.agent), change=change)
        yield started


def spend(runtime: Runtime, tenant: int) -> None:
    with transaction(runtime.directory.engine, tenant) as connection:
        usage.add(connection, tenant, model="small", tokens_in=1_000, tokens_out=0, cost_usd=0)


def test_a_turn_waits_for_its_cap_and_goes_on_when_it_is_raised(
    start: Start, stub: StubProvider, tenant: int, owner: Engine
) -> None:
    capped = start(1_000)
    (said,) = record(capped, tenant, SCOPE, [NewTurn(Role.USER, "My dog is called Pepper.")])
    spend(capped, tenant)
    finder.drain(capped)
    assert stub.requests == []
    waiting = str(ticket(capped, tenant, said.id).waiting_for)
    assert "MEMORY_CHAT__TOKENS_PER_DAY" in waiting and "until a new day begins" in waiting

    # nothing changes while the cap stands
    assert caps.free_below_cap(capped) == 0
    finder.drain(capped)
    assert stub.requests == []

    raised = start(1_000_000)
    assert caps.free_below_cap(raised) == 1
    finder.drain(raised)
    assert ticket(raised, tenant, said.id).stage == "extracted"
    assert [row.waits_for_cap for row in rows(owner, "SELECT waits_for_cap FROM sessions")] == [False]


def test_a_new_day_frees_what_waits(start: Start, tenant: int, owner: Engine) -> None:
    capped = start(1_000)
    record(capped, tenant, SCOPE, [NewTurn(Role.USER, "My dog is called Pepper.")])
    spend(capped, tenant)
    finder.drain(capped)
    with owner.begin() as connection:
        connection.exec_driver_sql("UPDATE usage SET day = day - 1")
    assert caps.free_below_cap(capped) == 1


def test_a_run_waits_for_its_cap_without_a_failure(
    start: Start, stub: StubProvider, tenant: int, owner: Engine
) -> None:
    capped = start(1_000)
    record(capped, tenant, SCOPE, [NewTurn(Role.USER, "My dog is called Pepper.")])
    spend(capped, tenant)
    run = synthesis.ask_for(capped, tenant, SCOPE, type="session")
    jobs.perform(capped, run.id, JOBS)
    (waiting,) = rows(
        owner, "SELECT attempts, failing_since, waits_for_cap FROM runs WHERE name <> 'extract'"
    )
    assert (waiting.attempts, waiting.failing_since, waiting.waits_for_cap) == (0, None, True)
    assert caps.free_below_cap(capped) == 0
    uncapped = start(None)
    assert caps.free_below_cap(uncapped) >= 1
    jobs.perform(uncapped, run.id, JOBS)
    assert jobs.read(uncapped, tenant, run.id).state == "done"


def test_other_tenants_and_other_pauses_are_left_alone(start: Start, tenant: int, owner: Engine) -> None:
    capped = start(1_000)
    record(capped, tenant, SCOPE, [NewTurn(Role.USER, "My dog is called Pepper.")])
    with owner.begin() as connection:
        connection.exec_driver_sql("UPDATE sessions SET due_at = now() + interval '1 hour', failures = 2")
    assert caps.free_below_cap(start(None)) == 0
