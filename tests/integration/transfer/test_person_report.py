"""What is held about a person: all agents, all shards, nobody else's, and nothing after an erasure."""

from __future__ import annotations

import json

from commands import Memory
from sqlalchemy import Engine
from starlette.testclient import TestClient

from memory_app.forget.forget import forget_user
from memory_app.main.http import create_app
from memory_app.memories import remember
from memory_app.records.records import NewTurn, Role, Statement
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.tenancy.rows import keys
from memory_app.transfer.person import as_text, report_user
from memory_app.turns.record import record


def tell(runtime: Runtime, tenant: int, agent: str, user: str, words: str) -> None:
    remember.remember(runtime, tenant, Scope(agent, user), statement=Statement("fact", words))


def lived(runtime: Runtime, tenant: int) -> None:
    record(runtime, tenant, Scope("ada", "mira", "chat"), [NewTurn(Role.USER, "I keep a quokka.")])
    tell(runtime, tenant, "ada", "mira", "Mira keeps a quokka.")
    tell(runtime, tenant, "max", "mira", "Mira likes\n\nWith nobody, since 1970-01-01")
    tell(runtime, tenant, "ada", "bob", "Bob plays the saxophone.")


def test_a_report_has_all_agents_and_nobody_else(runtime: Runtime, tenant: int, other_tenant: int) -> None:
    lived(runtime, tenant)
    tell(runtime, other_tenant, "ada", "mira", "Mira of globex likes pears.")

    report = report_user(runtime, tenant, "mira")

    assert [agent.agent for agent in report.agents] == ["ada", "max"]
    assert report.agents[0].counts["turns"] == 1
    assert report.agents[0].first_turn_at is not None
    assert [memory.text for memory in report.agents[0].memories] == ["Mira keeps a quokka."]
    text = as_text(report)
    assert "saxophone" not in text
    assert "globex" not in text
    assert "\nWith nobody" not in text, "a memory cannot pass for a line of the report"


def test_after_an_erasure_only_its_time_is_left(runtime: Runtime, tenant: int) -> None:
    lived(runtime, tenant)
    assert report_user(runtime, tenant, "mira").erased_at is None
    forget_user(runtime, tenant, "mira")

    report = report_user(runtime, tenant, "mira")

    assert report.agents == ()
    assert report.erased_at is not None
    assert "Nothing." in as_text(report)


def test_the_report_over_http_and_on_the_command_line(
    runtime: Runtime, tenant: int, api_key: str, owner: Engine, memory: Memory
) -> None:
    lived(runtime, tenant)
    with owner.begin() as connection:
        _, key_of_other = keys.create(connection, "globex")
    app = create_app(runtime)
    mine, others = (
        TestClient(app, headers={"Authorization": f"Bearer {key}"}) for key in (api_key, key_of_other)
    )

    answer = mine.get("/v1/users/mira/report").json()

    assert [agent["agent"] for agent in answer["agents"]] == ["ada", "max"]
    assert "quokka" in mine.get("/v1/users/mira/report?format=text").text
    assert mine.get("/v1/users/mira/report?format=xml").status_code == 422
    assert others.get("/v1/users/mira/report").json()["agents"] == []
    assert "Mira keeps a quokka." in memory("report", "user", "mira", "--tenant", "acme").out
    assert json.loads(memory("report", "user", "mira", "--tenant", "acme", "--json").out)["user"] == "mira"
