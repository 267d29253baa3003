"""One thread through everything: an id of the request leads to turns, tasks, runs and memories, and each leads back."""

from __future__ import annotations

import json
import logging
from typing import Any
from uuid import UUID, uuid4

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import Engine, text

from memory_app import correlation
from memory_app.dispatch import finder
from memory_app.errors import NotFound
from memory_app.main.http import create_app
from memory_app.ops.origin import Origin
from memory_app.ops.trace import Trace, trace
from memory_app.records.records import NewTurn, Role
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.turns.record import record

TURNS = "/v1/agents/ada/users/mira/sessions/chat/turns"
LISBON = "I have a dog called Bruno from Lisbon."


@pytest.fixture
def client(runtime: Runtime, api_key: str) -> TestClient:
    return TestClient(
        create_app(runtime), headers={"Authorization": f"Bearer {api_key}"}, raise_server_exceptions=False
    )


def record_and_drain(client: TestClient, runtime: Runtime) -> tuple[UUID, UUID, UUID]:
    """The ids of a request, of the turn that it brought, and of the task that made memories of it."""
    answer = client.post(TURNS, json={"role": "user", "content": LISBON})
    assert answer.status_code == 202, answer.text
    with correlation.task(None, "drain") as work:
        finder.drain(runtime)
    assert work.task_id is not None
    return UUID(answer.headers["X-Request-Id"]), UUID(answer.json()["tickets"][0]["id"]), work.task_id


def events(found: Trace) -> list[str]:
    return [step.event for step in found.steps]


def test_every_id_on_the_way_leads_to_the_same_way(client: TestClient, runtime: Runtime, tenant: int) -> None:
    request_id, turn_id, task_id = record_and_drain(client, runtime)

    by_turn = trace(runtime, tenant, turn_id)

    (turn,), (run,), (memory,) = by_turn.turns, by_turn.runs, by_turn.memories
    assert (turn.request_id, turn.index_task_id) == (request_id, task_id)
    assert (run.name, run.state, run.task_id) == ("extract", "done", task_id)
    assert memory.run_id == run.id
    assert events(by_turn)[0] == "turn accepted"
    assert set(events(by_turn)) == {
        "turn accepted",
        "turn indexed",
        "extract started",
        "fact stored",
        "turn extracted",
        "extract done",
    }
    origins = {
        Origin.REQUEST: request_id,
        Origin.TASK: task_id,
        Origin.RUN: run.id,
        Origin.MEMORY: memory.id,
        Origin.TURN: turn_id,
    }
    for origin, id in origins.items():
        other = trace(runtime, tenant, id)
        assert other.origin is origin
        assert (other.turns, other.runs, other.memories) == (by_turn.turns, by_turn.runs, by_turn.memories)


def test_another_tenant_finds_no_trace(
    client: TestClient, runtime: Runtime, tenant: int, other_tenant: int
) -> None:
    for id in record_and_drain(client, runtime):
        with pytest.raises(NotFound):
            trace(runtime, other_tenant, id)


def test_a_turn_that_waits_says_for_what(client: TestClient, runtime: Runtime, tenant: int) -> None:
    (ticket,) = record(runtime, tenant, Scope("ada", "mira", "chat"), [NewTurn(Role.USER, LISBON)])

    found = trace(runtime, tenant, ticket.id)

    assert events(found) == ["turn accepted"]
    assert found.waiting_for is not None


def test_a_turn_that_failed_shows_when_and_why(
    client: TestClient, runtime: Runtime, tenant: int, owner: Engine
) -> None:
    (ticket,) = record(runtime, tenant, Scope("ada", "mira", "chat"), [NewTurn(Role.USER, LISBON)])
    with owner.begin() as connection:
        connection.execute(text("UPDATE sessions SET starts = 3"))
    finder.drain(runtime)

    failed = [step for step in trace(runtime, tenant, ticket.id).steps if step.event == "turn failed"]

    assert "quarantined" in (failed[0].reason or "")


def test_the_route_and_the_command_show_ids_and_no_text(
    client: TestClient, runtime: Runtime, memory: Any
) -> None:
    request_id, turn_id, task_id = record_and_drain(client, runtime)

    answer = client.get(f"/v1/trace/{request_id}")
    plain = memory("trace", str(turn_id), "--tenant", "acme")
    as_json = memory("trace", str(turn_id), "--tenant", "acme", "--json")

    assert answer.status_code == 200, answer.text
    assert answer.json()["origin"] == "request"
    assert {step["task_id"] for step in answer.json()["steps"]} >= {str(task_id)}
    assert (plain.status, as_json.status) == (0, 0)
    assert [step["event"] for step in json.loads(as_json.out)["steps"]] == [
        step["event"] for step in answer.json()["steps"]
    ]
    assert f"turn accepted  turn {turn_id}, request {request_id}" in plain.out
    assert "Lisbon" not in answer.text + plain.out + as_json.out


def test_an_unknown_id_is_not_found(client: TestClient, memory: Any) -> None:
    answer = client.get(f"/v1/trace/{uuid4()}")

    assert (answer.status_code, answer.json()["error"]["field"]) == (404, "id")
    assert memory("trace", str(uuid4()), "--tenant", "acme").status == 1


def test_why_names_the_task_that_made_a_memory(client: TestClient, runtime: Runtime, tenant: int) -> None:
    _, turn_id, task_id = record_and_drain(client, runtime)
    (memory,) = trace(runtime, tenant, turn_id).memories

    why = client.get(f"/v1/memories/{memory.id}/why").json()

    assert [run["task_id"] for run in why["runs"]] == [str(task_id)]


def test_a_request_keeps_the_id_that_its_caller_gave(client: TestClient) -> None:
    given = str(uuid4())

    answer = client.post(TURNS, json={"role": "nobody", "content": LISBON}, headers={"X-Request-Id": given})

    assert answer.headers["X-Request-Id"] == given
    assert answer.json()["error"]["request_id"] == given


def test_what_is_no_id_is_not_kept(client: TestClient) -> None:
    answer = client.get("/v1/failed", headers={"X-Request-Id": "mira lives in Lisbon"})

    assert UUID(answer.headers["X-Request-Id"]).version == 7


def test_a_request_is_one_line_with_outcome_time_and_ids(
    client: TestClient, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    answer = client.post(TURNS, json={"role": "user", "content": LISBON})
    client.get("/health/live")
    turn_id = answer.json()["tickets"][0]["id"]

    written = "".join(capsys.readouterr()) + "\n".join(entry.getMessage() for entry in caplog.records)
    lines = [line for line in written.splitlines() if "turns" in line and turn_id in line]

    assert len(lines) == 1
    assert answer.headers["X-Request-Id"] in lines[0]
    for word in ("202", "ms", "POST"):
        assert word in lines[0]


def test_a_run_knows_the_request_that_asked_for_it(client: TestClient, runtime: Runtime, tenant: int) -> None:
    record_and_drain(client, runtime)

    answer = client.post("/v1/agents/ada/users/mira/sleep", json={})

    assert answer.status_code == 202, answer.text
    found = trace(runtime, tenant, UUID(answer.headers["X-Request-Id"]))
    assert [(run.name, run.state) for run in found.runs] == [("sleep", "queued")]
    assert events(found) == ["sleep asked for"]
