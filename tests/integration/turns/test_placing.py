"""Where work is done: what waits for a model, what computes, and what may kill its process are kept apart."""

from __future__ import annotations

from typing import Any

import pytest
from redis import Redis as RedisClient
from sqlalchemy import Engine, text

from memory_app import queue
from memory_app.agents.agents import AgentChange, change_agent
from memory_app.dispatch import finder
from memory_app.dispatch.job_table import JOBS
from memory_app.jobs import jobs
from memory_app.records.records import NewTurn, Role, Stage
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.settings import Settings
from memory_app.sleep import synthesis
from memory_app.turns.extract import extract_session
from memory_app.turns.index import index_turns
from memory_app.turns.record import record
from memory_app.turns.routing import queue_of
from memory_app.turns.tickets import ticket

AT_ONCE = {"idle_seconds": 0, "max_age_seconds": 0}


def said(runtime: Runtime, tenant: int, *, extraction: str) -> Any:
    """The id of an indexed turn of an agent that extracts so."""
    policy = AgentChange(frozenset({"policy"}), policy={"extraction": extraction, **AT_ONCE})
    change_agent(runtime, tenant, Scope("ada"), change=policy)
    (accepted,) = record(
        runtime, tenant, Scope("ada", "bob", "chat"), [NewTurn(Role.USER, "I live in Paris these days.")]
    )
    index_turns(runtime)
    return accepted.id


def change(owner: Engine, statement: str) -> None:
    with owner.begin() as connection:
        connection.execute(text(statement))


def messages(settings: Settings) -> dict[str, int]:
    """How many stand in each queue, which is emptied; as if the hints under way were forgotten too."""
    with RedisClient.from_url(settings.redis.url.get_secret_value(), protocol=2) as client:
        found = {name: client.llen(f"{settings.redis.prefix}{name}") for name in queue.QUEUES}
        for key in client.scan_iter(f"{settings.redis.prefix}*"):
            client.delete(key)
    return {name: count for name, count in found.items() if isinstance(count, int) and count}


@pytest.mark.parametrize(
    ("extraction", "starts", "place"),
    [
        ("rules", 0, queue.INGEST),
        ("rules", 1, queue.INGEST),
        ("llm", 0, queue.MODEL),
        ("llm", 1, queue.MAINTENANCE),
    ],
)
def test_a_session_is_hinted_at_where_it_suits(
    runtime: Runtime,
    settings: Settings,
    tenant: int,
    owner: Engine,
    *,
    extraction: str,
    starts: int,
    place: str,
) -> None:
    said(runtime, tenant, extraction=extraction)
    change(owner, f"UPDATE sessions SET due_at = now(), starts = {starts}")
    messages(settings)
    finder.find_due(runtime)
    assert messages(settings) == {place: 1}
    assert queue_of(asks_model=extraction == "llm", is_suspect=starts > 0) == place


def test_who_indexes_a_turn_says_where_its_session_is_worked_on(
    runtime: Runtime, settings: Settings, tenant: int
) -> None:
    said(runtime, tenant, extraction="llm")
    assert messages(settings)[queue.MODEL] == 1


def test_a_process_that_does_other_work_gets_no_session_whose_worker_died(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    turn_id = said(runtime, tenant, extraction="rules")
    with owner.connect() as connection:
        session = connection.execute(text("SELECT id FROM sessions")).scalar_one()
    change(owner, "UPDATE sessions SET starts = 1")
    assert extract_session(runtime, session, shared=True).turns == 0
    with owner.connect() as connection:
        assert connection.execute(text("SELECT starts, fence FROM sessions")).one() == (1, 0)
    assert extract_session(runtime, session).turns == 1, "alone it is done"
    assert ticket(runtime, tenant, turn_id).stage is Stage.EXTRACTED


def test_a_run_whose_worker_died_is_done_alone(
    runtime: Runtime, settings: Settings, tenant: int, owner: Engine
) -> None:
    said(runtime, tenant, extraction="rules")
    run = synthesis.ask_for(runtime, tenant, Scope("ada", "bob"), type="deep")
    change(owner, "UPDATE sessions SET due_at = NULL")
    change(owner, "UPDATE runs SET state = 'running', starts = 1, lease_until = now() - interval '1 second'")
    messages(settings)
    finder.find_due(runtime)
    assert messages(settings) == {queue.MAINTENANCE: 1}
    jobs.perform(runtime, run.id, JOBS, shared=True)
    assert jobs.read(runtime, tenant, run.id).state == "running", "it was left to another"
    jobs.perform(runtime, run.id, JOBS)
    assert jobs.read(runtime, tenant, run.id).state == "failed", "this agent asks no model"
