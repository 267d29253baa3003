"""Keys over HTTP: made, rotated and revoked by their tenant, and bound to one agent or one person."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from commands import Memory
from fastapi import FastAPI
from sqlalchemy import Engine, text
from starlette.testclient import TestClient

from memory_app.errors import Conflict, Forbidden, InvalidInput, Unauthorized
from memory_app.main.http import create_app
from memory_app.runtime import Runtime
from memory_app.tenancy import access
from memory_app.tenancy.rows import keys
from memory_app.turns.relay import relay

OWN, OTHERS = "/v1/agents/ada/users/mira", "/v1/agents/ada/users/bob"
SECRET = "Bob hides the spare key under the blue pot."

MakeClient = Callable[[str], TestClient]


@pytest.fixture
def app(runtime: Runtime) -> FastAPI:
    return create_app(runtime)


@pytest.fixture
def client_of(app: FastAPI) -> MakeClient:
    return lambda key: TestClient(app, headers={"Authorization": f"Bearer {key}"})


@pytest.fixture
def admin(client_of: MakeClient, api_key: str) -> TestClient:
    return client_of(api_key)


def made(owner: Engine, **fields: object) -> str:
    with owner.begin() as connection:
        return keys.create(connection, "acme", **fields)[1]  # type: ignore[arg-type]


# --- bound keys ---------------------------------------------------------------------------------------------


@pytest.fixture
def ids_of_bob(admin: TestClient) -> dict[str, str]:
    turn = admin.post(f"{OTHERS}/sessions/chat/turns", json={"role": "user", "content": SECRET}).json()
    memory = admin.post(f"{OTHERS}/memories", json={"text": SECRET}).json()
    return {"turn": turn["tickets"][0]["id"], "memory": memory["id"]}


@pytest.mark.parametrize(
    "binding",
    [
        {"user": "mira"},
        {"agent": "max"},
        {"agent": "max", "user": "bob"},
        {"agent": "ada", "user": "mira"},
    ],
)
def test_a_bound_key_is_refused_on_every_other_route(
    app: FastAPI,
    client_of: MakeClient,
    owner: Engine,
    admin: TestClient,
    ids_of_bob: dict[str, str],
    binding: dict[str, str],
) -> None:
    bound = client_of(made(owner, rights=keys.RIGHTS, **binding))
    cells = 0
    for template, methods in app.openapi()["paths"].items():
        # A bound key hears of its own agent and person there (`test_event_streams`).
        if not template.startswith("/v1/") or template == "/v1/events":
            continue
        for method in methods:
            for id in ids_of_bob.values():
                names = {
                    "id": id,
                    "agent": "ada",
                    "user": "bob",
                    "session": "chat",
                    "name": "why",
                    "key": "1",
                    "webhook": id,
                }
                body = {} if method in ("post", "put", "patch") else None
                answer = bound.request(method.upper(), template.format(**names), json=body)
                assert answer.status_code == 403, (method, template, answer.text)
                assert "spare key" not in answer.text
                cells += 1
    assert cells > 100
    assert admin.get(f"/v1/memories/{ids_of_bob['memory']}").json()["text"] == SECRET


def test_a_bound_key_works_for_its_own_person(client_of: MakeClient, owner: Engine) -> None:
    bound = client_of(made(owner, agent="ada", user="mira"))

    recorded = bound.post(f"{OWN}/sessions/chat/turns", json={"role": "user", "content": "Hello."})
    told = bound.post(f"{OWN}/memories", json={"text": "Mira likes pears."})

    assert recorded.status_code == 202
    assert told.is_success
    assert bound.post(f"{OWN}/recall", json={"query": "pears"}).status_code == 200


def test_a_name_with_a_slash_is_compared_as_it_is(client_of: MakeClient, owner: Engine) -> None:
    bound = client_of(made(owner, user="mira/home"))

    assert bound.post("/v1/agents/ada/users/mira%2Fhome/memories", json={"text": "Pears."}).is_success
    assert bound.post("/v1/agents/ada/users/mira/memories", json={"text": "Pears."}).status_code == 403


def test_a_message_with_a_bound_key_is_about_its_person_alone(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    key = made(owner, rights=("record",), user="mira")
    said = {"api_key": key, "agent": "ada", "session": "s", "role": "user", "content": "Hello."}

    assert relay(runtime, {**said, "user": "mira"}, message_id="m-1").seq == 1
    with pytest.raises(Forbidden):
        relay(runtime, {**said, "user": "bob"}, message_id="m-2")
    writer = made(owner, rights=("write",))
    with pytest.raises(Forbidden, match="record"):
        relay(runtime, {**said, "api_key": writer, "user": "mira"}, message_id="m-3")


# --- keys over HTTP -----------------------------------------------------------------------------------------


def test_a_tenant_makes_lists_and_revokes_its_keys(
    runtime: Runtime, admin: TestClient, owner: Engine
) -> None:
    with owner.begin() as connection:
        keys.create(connection, "globex", label="of globex")

    body = {"rights": ["read"], "label": "phone", "days": 30, "user": "mira"}
    new = admin.post("/v1/keys", json=body).json()

    assert access.look_up(runtime, new["key"]).rights == {"read"}
    listed = admin.get("/v1/keys").json()["keys"]
    assert [(row["label"], row["user"]) for row in listed] == [(None, None), ("phone", "mira")]
    assert new["key"] not in admin.get("/v1/keys").text
    assert admin.delete(f"/v1/keys/{new['id']}").status_code == 204
    with pytest.raises(Unauthorized):
        access.look_up(runtime, new["key"])


def test_keys_of_another_tenant_are_not_there(runtime: Runtime, admin: TestClient, owner: Engine) -> None:
    with owner.begin() as connection:
        foreign, key = keys.create(connection, "globex")

    assert admin.delete(f"/v1/keys/{foreign}").status_code == 404
    assert admin.post(f"/v1/keys/{foreign}/rotate", json={}).status_code == 404
    assert access.look_up(runtime, key).tenant == "globex"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"rights": []}, "rights"),
        ({"rights": ["fly"]}, "rights[0]"),
        ({"days": 0}, "days"),
        ({"user": ""}, "user"),
        ({"usr": "mira"}, "usr"),
    ],
)
def test_what_is_wrong_with_a_key_is_named(admin: TestClient, body: dict[str, object], field: str) -> None:
    answer = admin.post("/v1/keys", json=body)
    assert (answer.status_code, answer.json()["error"]["field"]) == (422, field)


def test_a_key_is_rotated_with_an_overlap(runtime: Runtime, admin: TestClient) -> None:
    old = admin.post("/v1/keys", json={"rights": ["read"], "agent": "ada", "days": 10}).json()

    new = admin.post(f"/v1/keys/{old['id']}/rotate", json={"overlap_hours": 1}).json()

    for key in (old["key"], new["key"]):
        caller = access.look_up(runtime, key)
        assert (caller.rights, caller.agent, caller.user) == (frozenset({"read"}), "ada", None)
    rows = {row["id"]: row for row in admin.get("/v1/keys").json()["keys"]}
    assert rows[old["id"]]["expires_at"] < rows[new["id"]]["expires_at"]
    at_once = admin.post(f"/v1/keys/{new['id']}/rotate", json={"overlap_hours": 0}).json()
    with pytest.raises(Unauthorized):
        access.look_up(runtime, new["key"])
    assert access.look_up(runtime, at_once["key"]).agent == "ada"
    assert admin.post(f"/v1/keys/{new['id']}/rotate", json={}).status_code == 409


def test_keys_on_the_command_line(runtime: Runtime, memory: Memory, owner: Engine) -> None:
    made_key = memory("keys", "create", "--tenant", "acme", "--right", "read", "--user", "mira").out.strip()
    with owner.connect() as connection:
        number = connection.execute(text("SELECT max(id) FROM api_keys")).scalar_one()

    rotated = memory("keys", "rotate", str(number), "--overlap-hours", "2").out.strip()

    assert access.look_up(runtime, made_key).user == access.look_up(runtime, rotated).user == "mira"
    assert "mira" in memory("keys", "list", "--tenant", "acme").out
    assert memory("keys", "revoke", str(number)).status == 0
    with pytest.raises(Unauthorized):
        access.look_up(runtime, made_key)
    assert memory("keys", "revoke", "999").status == 1
    assert memory("keys", "create", "--tenant", "a\x07b").status == 1


def test_a_name_that_is_none_makes_no_tenant(owner: Engine) -> None:
    with pytest.raises(InvalidInput, match="tenant"), owner.begin() as connection:
        keys.create(connection, " ")
    with owner.connect() as connection:
        assert connection.execute(text("SELECT count(*) FROM tenants")).scalar_one() == 0


def test_a_key_that_ended_is_not_rotated(runtime: Runtime, tenant: int, owner: Engine) -> None:
    with owner.begin() as connection:
        number, old = keys.create(connection, "acme")
        keys.rotate(connection, number, overlap=timedelta(0))
    with pytest.raises(Unauthorized):
        access.look_up(runtime, old)
    with pytest.raises(Conflict), owner.begin() as connection:
        keys.enter_tenant_of(connection, number)
        keys.rotate(connection, number, overlap=timedelta(0))
