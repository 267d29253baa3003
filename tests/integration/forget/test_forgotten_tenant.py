"""A tenant is forgotten: everybody and every agent, each with a receipt; another tenant loses nothing."""

from __future__ import annotations

from typing import Any

import pytest
from commands import Memory
from queries import rows, tables_with
from sqlalchemy import Engine

from memory_app.app import MemoryApp
from memory_app.db.tables import metadata
from memory_app.dispatch import finder
from memory_app.errors import StoreBusy, Unauthorized
from memory_app.forget import tenant_erasure
from memory_app.forget.receipt import Subject
from memory_app.forget.receipts import list_receipts
from memory_app.forget.rows.tenants import KEPT
from memory_app.records.run import OPEN, RunName, RunState
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.tenancy import access
from memory_app.tenancy.rows import keys

WORD = "quokka"
PEOPLE = ("mira", "bob/slash", "éva")
AGENTS = ("ada", "max")


def fill(app: MemoryApp) -> None:
    app.change_agent("max", persona={"name": f"Max the {WORD}"})
    for agent in AGENTS:
        app.remember(Scope(agent), f"{agent} is a {WORD} at heart.", kind="core")
        for user in PEOPLE:
            app.record(
                Scope(agent, user, "chat"), f"I keep a {WORD} in Porto.", idempotency_key=f"{agent}-{user}"
            )
            app.remember(Scope(agent, user), f"{user} keeps a {WORD}.", kind="fact")
    app.set_grant("mira", "ada", to="max", kinds=["fact"])
    app.checkpoint(Scope("ada", "mira"))
    finder.drain(app.runtime)


@pytest.fixture
def app(runtime: Runtime, tenant: int) -> MemoryApp:
    app = MemoryApp(runtime, tenant)
    fill(app)
    return app


def drain(app: MemoryApp) -> None:
    while finder.drain(app.runtime) != finder.NOTHING:
        pass


def left_of(owner: Engine, tenant_id: int) -> dict[str, int]:
    counts = {
        table.name: rows(owner, f"SELECT count(*) AS n FROM {table.name} WHERE tenant_id = {tenant_id}")[0].n
        for table in metadata.sorted_tables
        if "tenant_id" in table.c and table.name not in KEPT
    }
    return {name: count for name, count in counts.items() if count}


def test_nothing_is_left_but_what_proves_it(
    app: MemoryApp, owner: Engine, tenant: int, other_tenant: int, api_key: str
) -> None:
    neighbour = MemoryApp(app.runtime, other_tenant)
    fill(neighbour)
    before = left_of(owner, other_tenant)
    planned = app.forget_tenant(dry_run=True).report
    assert planned is not None and planned["counts"]["turns"] == 6 and planned["counts"]["users"] == 3
    assert left_of(owner, tenant)["turns"] == 6, "a dry run changes nothing"

    run = app.forget_tenant()

    with pytest.raises(Unauthorized):
        access.look_up(app.runtime, api_key)
    drain(app)
    done = app.run(run.id)
    assert done.state is RunState.DONE
    assert set(left_of(owner, tenant)) == {"runs"}
    left = rows(owner, f"SELECT name, options::text AS options FROM runs WHERE tenant_id = {tenant}")
    assert all(row.name == RunName.FORGET for row in left), "the runs that say of what kind each receipt is"
    assert not any(name in row.options for row in left for name in (*PEOPLE, *AGENTS))
    assert left_of(owner, other_tenant) == before
    receipts = list_receipts(app.runtime, {tenant: "acme"})
    assert sorted(receipt.of or "" for receipt in receipts) == sorted(
        [Subject.USER] * len(PEOPLE) + [Subject.AGENT] * len(AGENTS)
    )
    assert done.report is not None
    counts = dict(done.report["counts"])
    assert (counts["turns"], counts["users"], counts["agents"]) == (6, 3, 2)
    for table in ("turns", "users", "agents", "scopes", "memories"):
        assert counts[table] == sum(receipt.counts.get(table, 0) for receipt in receipts)
    assert any(entry.action == "erase.tenant" for entry in app.audit())


def test_the_name_may_come_back(app: MemoryApp, owner: Engine) -> None:
    app.forget_tenant()
    drain(app)
    with owner.begin() as connection:
        _, key = keys.create(connection, "acme", rights=keys.RIGHTS)
    assert access.look_up(app.runtime, key).tenant_id == app.tenant_id
    app.record(Scope("ada", "mira", "chat"), "Hello again.")
    drain(app)
    assert [turn.text for turn in app.turns(Scope("ada", "mira", "chat"))] == ["Hello again."]
    assert app.run(app.forget_tenant().id).state is RunState.QUEUED
    drain(app)
    assert app.users() == ()


def test_it_goes_on_where_a_turn_ended(
    app: MemoryApp, owner: Engine, tenant: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = app.forget_tenant()
    check, left = tenant_erasure._check, [2]

    def end(deadline: float) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise StoreBusy("the turn is over", retry_after=1)
        check(deadline)

    monkeypatch.setattr(tenant_erasure, "_check", end)
    finder.drain(app.runtime)
    assert left_of(owner, tenant)["users"] == 1
    half = app.run(run.id)
    assert half.state in OPEN and half.report is not None and half.report["counts"]["users"] == 2
    monkeypatch.undo()
    with owner.begin() as connection:
        connection.exec_driver_sql(
            "UPDATE runs SET due_at = now() WHERE name = 'forget' AND finished_at IS NULL"
        )
    drain(app)
    done: Any = app.run(run.id)
    assert done.state is RunState.DONE and done.report["counts"]["users"] == 3
    assert set(left_of(owner, tenant)) == {"runs"}


def test_asking_twice_is_one_erasure(app: MemoryApp) -> None:
    assert app.forget_tenant().id == app.forget_tenant().id
    drain(app)
    again = app.forget_tenant()
    drain(app)
    report = app.run(again.id).report
    assert report is not None and set(report["counts"]) <= {"runs"}


def test_the_command_asks_and_shows(app: MemoryApp, memory: Memory, owner: Engine) -> None:
    assert memory("forget-tenant", "acme").status != 0, "nobody said yes"
    assert tables_with(owner, WORD) != []
    unknown = memory("forget-tenant", "acne", "--yes")
    assert unknown.status == 1 and "acne" in unknown.err
    shown = memory("forget-tenant", "acme", "--dry-run")
    assert shown.status == 0 and "would be deleted" in shown.out
