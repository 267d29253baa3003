"""Keys for one person or one agent name them, and go with them."""

from __future__ import annotations

from datetime import timedelta

import pytest
from queries import rows, tables_with
from sqlalchemy import Engine
from starlette.testclient import TestClient

from memory_app.app import MemoryApp
from memory_app.db.db import transaction
from memory_app.dispatch import finder
from memory_app.errors import Unauthorized
from memory_app.forget.erasure import erase_user
from memory_app.main.http import create_app
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.tenancy import access
from memory_app.tenancy.rows import keys

BINDINGS = {
    "hers": {"user": "quokka"},
    "hers with ada": {"user": "quokka", "agent": "ada"},
    "another's": {"user": "bob"},
    "ada's": {"agent": "ada"},
    "for all": {},
}


@pytest.fixture
def app(runtime: Runtime, tenant: int) -> MemoryApp:
    return MemoryApp(runtime, tenant)


@pytest.fixture
def made(owner: Engine, app: MemoryApp) -> dict[str, str]:
    with owner.begin() as connection:
        return {
            label: keys.create(connection, "acme", rights=keys.RIGHTS, label=label, **binding)[1]  # type: ignore[arg-type]
            for label, binding in BINDINGS.items()
        }


def living(app: MemoryApp, made: dict[str, str]) -> set[str]:
    found = set()
    for label, key in made.items():
        try:
            access.look_up(app.runtime, key)
        except Unauthorized:
            continue
        found.add(label)
    return found


@pytest.mark.parametrize("is_known", [True, False], ids=["known", "without a turn"])
def test_keys_for_a_person_go_with_them(
    app: MemoryApp, made: dict[str, str], owner: Engine, is_known: bool
) -> None:
    if is_known:
        app.record(Scope("ada", "quokka", "chat"), "I keep bees.")
    rehearsed = app.forget("quokka", dry_run=True).report
    assert living(app, made) == set(BINDINGS)
    report = app.forget("quokka").report
    assert report is not None and rehearsed is not None
    assert report["counts"] == rehearsed["counts"]
    assert report["counts"]["api_keys"] == 2
    assert living(app, made) == {"another's", "ada's", "for all"}
    assert tables_with(owner, "quokka") == []


def test_keys_for_an_agent_go_with_it(app: MemoryApp, made: dict[str, str]) -> None:
    app.record(Scope("ada", "bob", "chat"), "I keep bees.")
    run = app.forget_agent("ada")
    finder.drain(app.runtime)
    report = app.run(run.id).report
    assert report is not None and report["counts"]["api_keys"] == 2
    assert living(app, made) == {"hers", "another's", "for all"}


def test_keys_of_another_tenant_stay(
    app: MemoryApp, made: dict[str, str], runtime: Runtime, other_tenant: int
) -> None:
    MemoryApp(runtime, other_tenant).forget("quokka")
    assert living(app, made) == set(BINDINGS)


def test_a_person_may_erase_themselves_with_their_key(app: MemoryApp, made: dict[str, str]) -> None:
    app.record(Scope("ada", "quokka", "chat"), "I keep bees.")
    client = TestClient(create_app(app.runtime), headers={"Authorization": f"Bearer {made['hers']}"})
    assert client.delete("/v1/users/bob").status_code == 403
    answer = client.delete("/v1/users/quokka")
    assert (answer.status_code, answer.json()["state"]) == (202, "done")
    assert answer.json()["report"]["counts"]["api_keys"] == 2
    assert living(app, made) == {"another's", "ada's", "for all"}


@pytest.mark.one_shard
def test_a_bound_transaction_deletes_no_other_keys(
    app: MemoryApp, made: dict[str, str], runtime: Runtime, tenant: int
) -> None:
    for bound in (runtime.bound("ada", None), runtime.bound(None, "bob"), runtime.bound("ada", "quokka")):
        with transaction(bound.engine, tenant) as connection:
            keys.delete_named(connection, user="quokka")
    assert living(app, made) == {"hers", "another's", "ada's", "for all"}


def test_a_key_made_since_an_erasure_stays_when_it_is_done_again(
    app: MemoryApp, made: dict[str, str], owner: Engine, tenant: int
) -> None:
    (now,) = rows(owner, "SELECT now() AS at")
    with owner.begin() as connection:
        connection.exec_driver_sql(
            "UPDATE api_keys SET created_at = now() - interval '1 day' WHERE label = 'hers'"
        )
    with transaction(app.runtime.engine, tenant) as connection:
        erase_user(connection, tenant, "quokka", before=now.at - timedelta(hours=1))
    assert living(app, made) == set(BINDINGS) - {"hers"}
