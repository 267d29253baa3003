"""An agent is forgotten with all that it knows of everybody; the people and other agents stay."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from queries import rows, tables_with
from sqlalchemy import Engine
from starlette.testclient import TestClient

from memory_app.app import MemoryApp
from memory_app.dispatch import finder
from memory_app.errors import Erased, InvalidInput, NotFound
from memory_app.forget import agent_erasure
from memory_app.forget.forget import read_receipt_line
from memory_app.forget.receipt import Subject
from memory_app.forget.receipts import Outcome, list_receipts, replay
from memory_app.main.http import create_app
from memory_app.records.run import RunState
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.tenancy import audit
from memory_app.turns import relay

WORD = "quokka"
PEOPLE = ("mira", "bob/slash", "éva")


@pytest.fixture
def app(runtime: Runtime, tenant: int) -> MemoryApp:
    app = MemoryApp(runtime, tenant)
    app.change_agent("max", persona={"name": f"Max the {WORD}"})
    app.remember(Scope("max"), f"Max is a {WORD} at heart.", kind="core")
    for user in PEOPLE:
        app.record(Scope("max", user, "chat"), f"I keep a {WORD} in Porto.", idempotency_key=f"k-{user}")
        app.remember(Scope("max", user), f"{user} keeps a {WORD}.", kind="fact")
        app.record(Scope("ada", user, "chat"), "I keep bees.")
    finder.drain(runtime)
    return app


def forget(app: MemoryApp, agent: str = "max") -> Any:
    run = app.forget_agent(agent)
    finder.drain(app.runtime)
    return app.run(run.id)


def test_nothing_of_it_is_left_and_the_rest_stays(app: MemoryApp, owner: Engine, tenant: int) -> None:
    rehearsed = app.forget_agent("max", dry_run=True)
    assert tables_with(owner, WORD) != []

    run = forget(app)

    assert run.state is RunState.DONE
    assert run.report["counts"] == {**rehearsed.report["counts"], "agents": 1}
    assert run.report["counts"]["turns"] == 3 and run.report["counts"]["scopes"] == 4
    assert tables_with(owner, WORD) == []
    with pytest.raises(NotFound):
        app.agent("max")
    for user in PEOPLE:
        assert [turn.text for turn in app.turns(Scope("ada", user, "chat"))] == ["I keep bees."]
        with pytest.raises(NotFound):
            app.stats(Scope("max", user))
    assert {user.name for user in app.users()} == set(PEOPLE)
    (receipt,) = list_receipts(app.runtime, {tenant: "acme"})
    assert receipt.of is Subject.AGENT and dict(receipt.counts) == run.report["counts"]
    assert dict(app.erasure(run.report["erasure"]).counts) == run.report["counts"]


def test_the_same_name_comes_back_as_a_new_agent(app: MemoryApp) -> None:
    forget(app)
    app.record(Scope("max", "mira", "chat"), "Hello again.")
    finder.drain(app.runtime)
    assert [turn.seq for turn in app.turns(Scope("max", "mira", "chat"))] == [1]
    assert app.agent("max").persona.name != f"Max the {WORD}"
    # An erased turn that is sent again is not taken for a new one.
    with pytest.raises(Erased):
        app.record(Scope("max", "mira", "chat"), f"I keep a {WORD} in Porto.", idempotency_key="k-mira")
    assert forget(app).state is RunState.DONE
    assert forget(app).report["counts"] == {}, "there is nothing any more"


def test_a_message_from_before_the_erasure_is_refused(
    app: MemoryApp, runtime: Runtime, api_key: str, owner: Engine
) -> None:
    message = {
        "agent": "max",
        "user": "mira",
        "session": "chat",
        "role": "user",
        "content": f"The {WORD} waits in the broker.",
        "sent_at": (datetime.now(UTC) - timedelta(seconds=1)).isoformat(),
        "api_key": api_key,
    }
    forget(app)
    with pytest.raises(Erased):
        relay.relay(runtime, message, message_id="m-1")
    assert tables_with(owner, WORD) == []
    assert [refused.message_id for refused in app.refused()] == ["m-1"]


def test_a_worker_that_dies_leaves_the_counts_to_the_next(
    app: MemoryApp, owner: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = app.forget_agent("max", dry_run=True).report["counts"]
    run = app.forget_agent("max")
    erase_scope = agent_erasure._erase_scope
    left = [2]

    def die(*arguments: Any) -> Any:
        left[0] -= 1
        if left[0] < 0:
            raise SystemExit
        return erase_scope(*arguments)

    monkeypatch.setattr(agent_erasure, "_erase_scope", die)
    with pytest.raises(SystemExit):
        finder.drain(app.runtime)
    (half,) = rows(
        owner, "SELECT count(*) AS n FROM scopes c JOIN agents a ON a.id = c.agent_id WHERE a.name = 'max'"
    )
    assert half.n == 2
    monkeypatch.setattr(agent_erasure, "_erase_scope", erase_scope)
    with owner.begin() as connection:
        connection.exec_driver_sql(
            "UPDATE runs SET lease_until = NULL WHERE name = 'forget' AND finished_at IS NULL"
        )
    finder.drain(app.runtime)
    done = app.run(run.id)
    assert done.state is RunState.DONE
    assert done.report is not None and done.report["counts"] == {**expected, "agents": 1}
    assert tables_with(owner, WORD) == []


def test_what_is_recorded_while_it_runs_goes_as_well(
    app: MemoryApp, owner: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    finish = agent_erasure._finish
    late = [f"A late {WORD}."]

    def record_first(*arguments: Any) -> Any:
        while late:
            app.record(Scope("max", "late", "chat"), late.pop())
        return finish(*arguments)

    monkeypatch.setattr(agent_erasure, "_finish", record_first)
    run = forget(app)
    assert run.report["counts"]["turns"] == 4
    assert tables_with(owner, WORD) == []


def test_a_receipt_forgets_it_again_after_a_restore(
    app: MemoryApp,
    runtime: Runtime,
    tenant: int,
    owner: Engine,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = forget(app)
    line = _receipt_line(app, run)
    path = tmp_path / "receipts.jsonl"
    path.write_text(line + "\n", encoding="utf-8")
    with owner.begin() as connection:
        connection.exec_driver_sql("DELETE FROM erasures")
        connection.exec_driver_sql("DELETE FROM erased_turns")
    # As a backup from before would have it: rows that are older than the erasure.
    app.record(Scope("max", "mira", "chat"), f"I keep a {WORD} in Porto.")
    app.remember(Scope("max"), f"Max is a {WORD}.", kind="core")
    with owner.begin() as connection:
        for table, column in (
            ("turns", "accepted_at"),
            ("memories", "stored_at"),
            ("agents", "created_at"),
            ("scopes", "created_at"),
        ):
            connection.exec_driver_sql(f"UPDATE {table} SET {column} = now() - interval '1 day'")
    outcomes = [row.outcome for row in replay(runtime, {tenant: "acme"}, [path])]
    assert outcomes == [Outcome.ERASED]
    assert tables_with(owner, WORD) == []
    assert [turn.text for turn in app.turns(Scope("ada", "mira", "chat"))] == ["I keep bees."]
    assert [row.outcome for row in replay(runtime, {tenant: "acme"}, [path])] == [Outcome.KNOWN]


def _receipt_line(app: MemoryApp, run: Any) -> str:
    return read_receipt_line(app.runtime, app.tenant_id, run.report["erasure"])


def test_over_http_it_needs_the_right_and_is_in_the_audit_log(
    app: MemoryApp, runtime: Runtime, tenant: int, api_key: str
) -> None:
    client = TestClient(create_app(runtime), headers={"Authorization": f"Bearer {api_key}"})
    answer = client.delete("/v1/agents/max")
    assert answer.status_code == 202 and answer.json()["state"] == "queued"
    finder.drain(runtime)
    run = client.get(f"/v1/runs/{answer.json()['id']}").json()
    assert run["state"] == "done" and run["report"]["erasure"]
    assert client.get("/v1/agents/max").status_code == 404
    reader = app.make_key(rights=["read", "write"])
    refused = TestClient(create_app(runtime), headers={"Authorization": f"Bearer {reader.key}"})
    assert refused.delete("/v1/agents/ada").status_code == 403
    actions = [entry.action for entry in audit.entries(runtime, tenant)]
    assert actions.count("erase.agent") >= 2
    with pytest.raises(InvalidInput):
        app.forget_agent(" ")
