"""The audit log: what is written down through every door, that nobody changes it unseen, and who may read it."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from commands import Memory
from fastapi import FastAPI
from sqlalchemy import Engine, text
from starlette.testclient import TestClient

from memory_app.db.db import transaction
from memory_app.main.http import PARTS, create_app
from memory_app.page.views import VIEWS
from memory_app.records.audit import Action
from memory_app.runtime import Runtime
from memory_app.tenancy import audit
from memory_app.tenancy.audit import noting
from memory_app.tenancy.rows import keys
from memory_app.web.strict import _AUDITED

SCOPE = "/v1/agents/ada/users/mira"


@pytest.fixture
def app(runtime: Runtime) -> FastAPI:
    return create_app(runtime)


@pytest.fixture
def client(app: FastAPI, api_key: str) -> TestClient:
    return TestClient(app, headers={"Authorization": f"Bearer {api_key}"})


def lines(runtime: Runtime, tenant: int) -> list[tuple[str, str]]:
    """Action and outcome, oldest first."""
    return [(entry.action, entry.outcome) for entry in audit.all_entries(runtime, tenant)]


def test_what_is_done_over_http_is_written_down(
    runtime: Runtime, tenant: int, client: TestClient, owner: Engine
) -> None:
    client.post(f"{SCOPE}/memories", json={"text": "Mira likes pears."})
    client.put("/v1/agents/ada", json={"policy": {"extraction": "off"}})
    client.get(f"{SCOPE}/export")
    client.get("/v1/users/mira/report")
    client.get("/v1/users/mira/export").read()
    client.delete("/v1/users/mira?dry_run=true")
    answer = client.delete("/v1/users/mira")
    client.post("/v1/runs/0197aaaa-0000-7000-8000-000000000001/undo")

    actions = ("agent.change", "export.scope", "report.user", "export.user", "erase.user", "erase.user")
    expected = [(action, outcome) for action in actions for outcome in ("begun", "done")]
    assert lines(runtime, tenant) == [*expected, ("run.undo", "begun"), ("run.undo", "not_found")]
    erased = audit.entries(runtime, tenant, action=Action.ERASE_USER)
    assert [entry.target for entry in erased] == [None, None, "dry_run", "dry_run"]
    assert len({entry.request_id for entry in erased}) == 2
    assert str(erased[0].request_id) == answer.headers["X-Request-Id"]
    with owner.connect() as connection:
        key_id = connection.execute(text("SELECT max(id) FROM api_keys")).scalar_one()
    assert {entry.key_id for entry in erased} == {key_id}
    about = audit.entries(runtime, tenant, user="mira")
    assert {entry.action for entry in about} == {"export.scope", "report.user", "export.user", "erase.user"}
    assert audit.entries(runtime, tenant, user="bob") == ()


def test_the_log_names_nobody(runtime: Runtime, tenant: int, client: TestClient, owner: Engine) -> None:
    client.delete("/v1/users/quokka-woman")
    client.delete("/v1/agents/ada/users/quokka-woman/sessions/quokka-talk")
    with owner.connect() as connection:
        rows = connection.execute(text("SELECT count(*) FROM audit a WHERE a::text LIKE '%quokka%'"))
        assert rows.scalar_one() == 0
    assert len(lines(runtime, tenant)) == 4


def test_a_refused_call_is_written_down_too(
    runtime: Runtime, tenant: int, app: FastAPI, owner: Engine
) -> None:
    with owner.begin() as connection:
        _, reader = keys.create(connection, "acme", rights=("read",))

    TestClient(app, headers={"Authorization": f"Bearer {reader}"}).delete("/v1/users/mira")

    assert lines(runtime, tenant) == [("erase.user", "begun"), ("erase.user", "forbidden")]


def test_every_route_that_must_be_written_down_is() -> None:
    routes = {
        (method, route.path): route.endpoint
        for part in (*PARTS, *VIEWS)
        for route in part.router.routes
        for method in route.methods
    }
    assert len(routes) > 80
    missing: list[tuple[str, str]] = []
    for (method, path), endpoint in routes.items():
        must = (
            path.endswith(("/export", "/import", "/report", "/undo", "/replay", "/discard", "/unmerge"))
            or (path.startswith("/v1/keys") and method != "GET")
            or (path == "/v1/agents/{agent}" and method != "GET")
            or (method == "DELETE" and not path.endswith(("/hot", "/pin", "/links/{id}")))
        )
        if path.startswith(("/v1/", "/ui/")) and must:
            missing += [] if endpoint in _AUDITED else [(method, path)]
    assert missing == []


def test_what_is_done_on_the_command_line_is_the_operators(
    runtime: Runtime, tenant: int, memory: Memory
) -> None:
    number = json.loads(memory("keys", "create", "--tenant", "acme", "--json").out)["id"]
    memory("keys", "revoke", str(number))
    memory("forget", "mira", "--yes", "--tenant", "acme")
    memory("report", "user", "mira", "--tenant", "acme")

    assert lines(runtime, tenant) == [
        ("key.create", "done"),
        ("key.revoke", "done"),
        ("erase.user", "begun"),
        ("erase.user", "done"),
        ("report.user", "begun"),
        ("report.user", "done"),
    ]
    assert {entry.key_id for entry in audit.all_entries(runtime, tenant)} == {None}


def test_what_ends_with_its_process_has_a_beginning(runtime: Runtime, tenant: int) -> None:
    class Killed(BaseException):
        pass

    noting(runtime, tenant, Action.ERASE_USER, user="mira").begin()
    with pytest.raises(Killed), noting(runtime, tenant, Action.UNDO, target="1"):
        raise Killed

    assert lines(runtime, tenant) == [("erase.user", "begun"), ("run.undo", "begun"), ("run.undo", "broke")]


def test_entries_of_many_at_once_form_one_chain_for_each_tenant(
    runtime: Runtime, tenant: int, other_tenant: int
) -> None:
    def act(number: int) -> None:
        with noting(runtime, (tenant, other_tenant)[number % 2], Action.UNDO, target=str(number)):
            pass

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(act, range(24)))

    for each in (tenant, other_tenant):
        chain = audit.verify(runtime, each)
        assert (chain.entries, chain.broken_at) == (24, None)


@pytest.mark.parametrize(
    ("statement", "broken_at"),
    [
        ("UPDATE audit SET outcome = 'broke' WHERE seq = 2", 2),
        ("DELETE FROM audit WHERE seq = 2", 2),
        ("DELETE FROM audit WHERE seq = 1", 1),
        ("UPDATE audit SET key_id = 99 WHERE seq = 3", 3),
    ],
)
def test_a_change_by_the_owner_of_the_database_is_noticed(
    runtime: Runtime, tenant: int, owner: Engine, memory: Memory, statement: str, broken_at: int
) -> None:
    for number in range(2):
        with noting(runtime, tenant, Action.UNDO, target=str(number)):
            pass
    with owner.begin() as connection:
        connection.execute(
            text("SELECT set_config('memory.tenant', CAST(:id AS text), true)"), {"id": tenant}
        )
        assert connection.execute(text(statement)).rowcount == 1

    assert audit.verify(runtime, tenant).broken_at == broken_at
    done = memory("audit", "verify", "--tenant", "acme")
    assert done.status == 1
    assert f"entry {broken_at}" in done.err


def test_a_cut_off_end_is_noticed_by_a_digest_that_was_kept(
    runtime: Runtime, tenant: int, owner: Engine, memory: Memory
) -> None:
    with noting(runtime, tenant, Action.UNDO):
        pass
    head = json.loads(memory("audit", "verify", "--tenant", "acme", "--json").out)["head"]
    assert memory("audit", "verify", "--tenant", "acme", "--head", head).status == 0
    with owner.begin() as connection:
        connection.execute(
            text("SELECT set_config('memory.tenant', CAST(:id AS text), true)"), {"id": tenant}
        )
        connection.execute(text("DELETE FROM audit WHERE seq = 2"))

    assert memory("audit", "verify", "--tenant", "acme").status == 0
    assert memory("audit", "verify", "--tenant", "acme", "--head", head).status == 1


def test_only_the_tenants_admin_reads_the_log(
    runtime: Runtime,
    tenant: int,
    client: TestClient,
    app: FastAPI,
    owner: Engine,
    memory: Memory,
    tmp_path: Path,
) -> None:
    client.delete("/v1/users/mira")
    with owner.begin() as connection:
        _, usual = keys.create(connection, "acme")
        _, foreign = keys.create(connection, "globex", rights=keys.RIGHTS)

    def read(key: str) -> Callable[[str], object]:
        return lambda path: TestClient(app, headers={"Authorization": f"Bearer {key}"}).get(path)

    assert read(usual)("/v1/audit").status_code == 403  # type: ignore[attr-defined]
    assert read(foreign)("/v1/audit").json()["entries"] == []  # type: ignore[attr-defined]
    page = client.get("/v1/audit?limit=1").json()
    rest = client.get(f"/v1/audit?limit=1&cursor={page['cursor']}").json()
    assert [page["entries"][0]["outcome"], rest["entries"][0]["outcome"]] == ["done", "begun"]
    assert client.get("/v1/audit?user=mira&action=erase.user").json()["entries"][0]["seq"] == 2
    assert client.get("/v1/audit?action=nonsense").status_code == 422
    chain = client.get("/v1/audit/chain").json()
    assert (chain["entries"], chain["broken_at"]) == (2, None)
    file = tmp_path / "audit.jsonl"
    assert memory("audit", "export", str(file), "--tenant", "acme").status == 0
    assert [json.loads(line)["seq"] for line in file.read_text().splitlines()] == [1, 2]
    assert "erase.user" in memory("audit", "list", "--tenant", "acme").out


def test_what_cannot_be_written_down_is_not_done(
    runtime: Runtime, tenant: int, client: TestClient, owner: Engine
) -> None:
    client.post(f"{SCOPE}/memories", json={"text": "Mira likes pears."})
    with transaction(runtime.engine, tenant), owner.connect() as connection:
        # Somebody holds the lock of the log for longer than a statement may wait.
        connection.execute(
            text("SELECT pg_advisory_xact_lock(hashtextextended('audit', :id))"), {"id": tenant}
        )
        answer = client.delete("/v1/users/mira")

    assert answer.status_code == 503
    assert client.get("/v1/users/mira/report").json()["agents"] != []
