"""Who may ask: keys, rights, tenants. Another tenant's ids and names are simply not there, on every route."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import pytest
from fastapi import FastAPI
from sqlalchemy import Engine, text
from starlette.testclient import TestClient

from memory_app.dispatch import finder
from memory_app.main.http import create_app
from memory_app.runtime import Runtime
from memory_app.tenancy.rows import keys
from memory_app.tenancy.rows.keys import Caller
from memory_app.web.auth import REMEMBERED_SECONDS, Callers, is_protected

SCOPE = "/v1/agents/ada/users/mira"
SECRET = "Mira hides the spare key under the blue pot."

MakeClient = Callable[..., TestClient]


@pytest.fixture
def app(runtime: Runtime) -> FastAPI:
    return create_app(runtime)


@pytest.fixture
def client_of(app: FastAPI, owner: Engine) -> Iterator[MakeClient]:
    """Makes a client of a tenant with a new key of the given rights."""

    def make(tenant: str, *rights: str) -> TestClient:
        with owner.begin() as connection:
            _, key = keys.create(connection, tenant, rights=rights or keys.RIGHTS)
        return TestClient(app, headers={"Authorization": f"Bearer {key}"})

    yield make


def assert_error(answer: object, status: int, kind: str) -> None:
    assert answer.status_code == status, answer.text  # type: ignore[attr-defined]
    assert answer.json()["error"]["type"] == kind  # type: ignore[attr-defined]


# --- keys ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "Bearer",
        "Bearer ",
        "Basic bWVtOm1lbQ==",
        "Bearer mem_short",
        "Bearer mem_" + "a" * 43 + "_00000000",
        "Bearer mem_é_é",
        "Bearer " + "x" * 5_000,
        "mem_abc",
    ],
)
def test_without_a_good_key_nothing_is_answered(app: FastAPI, header: str | None) -> None:
    headers = {} if header is None else {"Authorization": header.encode("latin-1")}

    answer = TestClient(app).get(f"{SCOPE}/stats", headers=headers)

    assert_error(answer, 401, "unauthorized")
    assert answer.headers["WWW-Authenticate"] == "Bearer"


def test_a_well_formed_key_that_nobody_made_is_refused(app: FastAPI) -> None:
    answer = TestClient(app).get("/v1/failed", headers={"Authorization": f"Bearer {keys.new_key()}"})

    assert_error(answer, 401, "unauthorized")


def test_two_keys_at_once_are_refused(app: FastAPI, api_key: str) -> None:
    headers = [("Authorization", f"Bearer {api_key}"), ("Authorization", f"Bearer {keys.new_key()}")]

    assert_error(TestClient(app).get("/v1/failed", headers=headers), 401, "unauthorized")


def test_an_unknown_address_is_not_told_from_a_known_one_without_a_key(app: FastAPI) -> None:
    assert_error(TestClient(app).get("/v1/nothing"), 401, "unauthorized")


def test_a_key_is_asked_for_before_the_body_is_read(app: FastAPI) -> None:
    answer = TestClient(app).post(f"{SCOPE}/memories", content=b"x" * 3_000_000)

    assert_error(answer, 401, "unauthorized")


def test_an_expired_key_is_refused(app: FastAPI, owner: Engine) -> None:
    with owner.begin() as connection:
        _, key = keys.create(connection, "acme", expires_at=datetime.now(UTC) - timedelta(seconds=1))

    answer = TestClient(app).get("/v1/failed", headers={"Authorization": f"Bearer {key}"})

    assert_error(answer, 401, "unauthorized")


def test_a_revoked_key_stops_working_within_seconds(runtime: Runtime, owner: Engine) -> None:
    now = 1_000.0
    callers = Callers(runtime, clock=lambda: now)
    with owner.begin() as connection:
        key_id, key = keys.create(connection, "acme")
    assert callers.look_up(key).tenant == "acme"
    with owner.begin() as connection:
        keys.enter_tenant_of(connection, key_id)
        keys.revoke(connection, key_id)

    assert callers.remembered(key, seconds=REMEMBERED_SECONDS) is not None
    now += REMEMBERED_SECONDS
    assert callers.remembered(key, seconds=REMEMBERED_SECONDS) is None
    with pytest.raises(Exception, match="revoked"):
        callers.look_up(key)


def test_the_last_use_of_a_key_is_noted(client_of: MakeClient, owner: Engine) -> None:
    client_of("acme").get("/v1/failed")

    with owner.begin() as connection:
        assert (
            connection.execute(text("SELECT count(*) FROM api_keys WHERE last_used_at IS NOT NULL")).scalar()
            == 1
        )


def test_the_use_of_a_key_is_noted_once_a_minute(runtime: Runtime) -> None:
    now = 1_000.0
    callers = Callers(runtime, clock=lambda: now)
    caller = Caller(1, 1, "acme", frozenset(keys.RIGHTS))

    assert [callers.is_due_for_note(caller) for _ in range(3)] == [True, False, False]
    now += 60
    assert callers.is_due_for_note(caller)


# --- rights -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("right", "method", "path"),
    [
        ("write", "POST", f"{SCOPE}/memories"),
        ("record", "POST", f"{SCOPE}/sessions/s/turns"),
        ("erase", "DELETE", f"{SCOPE}/sessions/s"),
        ("erase", "DELETE", "/v1/users/mira"),
        ("admin", "GET", "/v1/keys"),
        ("admin", "POST", "/v1/keys"),
        ("write", "DELETE", f"{SCOPE}/sessions/s/hot"),
        ("read", "GET", f"{SCOPE}/memories"),
        ("read", "POST", f"{SCOPE}/recall"),
        ("read", "POST", f"{SCOPE}/context"),
        ("read", "GET", "/v1/agents/ada"),
        ("admin", "PUT", "/v1/agents/ada"),
    ],
)
def test_a_key_does_only_what_it_has_the_right_to(
    client_of: MakeClient, right: str, method: str, path: str
) -> None:
    others = [other for other in keys.RIGHTS if other != right]

    answer = client_of("acme", *others).request(method, path, json={"text": "a", "query": "a"})

    assert_error(answer, 403, "forbidden")


def test_every_route_but_those_of_operators_asks_for_a_right(app: FastAPI) -> None:
    open_routes = [path for path in app.openapi()["paths"] if not is_protected(path)]

    assert sorted(open_routes) == ["/health/live", "/health/ready", "/metrics"]
    for path, methods in app.openapi()["paths"].items():
        for operation in methods.values():
            assert path in open_routes or {"401", "403"} <= set(operation["responses"]), path


# --- tenants ------------------------------------------------------------------------------------------------


@pytest.fixture
def acme_ids(runtime: Runtime, client_of: MakeClient) -> dict[str, str]:
    """What acme has stored: ids that another tenant may guess."""
    acme = client_of("acme")
    turn = acme.post(f"{SCOPE}/sessions/chat/turns", json={"role": "user", "content": SECRET}).json()
    memory = acme.post(f"{SCOPE}/memories", json={"text": SECRET, "tags": ["home"]}).json()
    acme.put("/v1/agents/ada", json={"persona": {"name": "Ada of acme"}})
    finder.drain(runtime)
    return {"turn": turn["tickets"][0]["id"], "memory": memory["id"]}


def operations(app: FastAPI) -> list[tuple[str, str]]:
    """Every method and path of the API, from its own description."""
    return [
        (method.upper(), path)
        for path, methods in app.openapi()["paths"].items()
        if path.startswith("/v1/")
        for method in methods
    ]


BODIES = {
    "/correct": {"text": "Mira hides nothing."},
    "/turns": {"role": "user", "content": "Hello there, anybody?"},
    "/memories": {"text": "Somebody likes pears."},
    "/recall": {"query": "where is the spare key", "limit": 50},
    "/context": {"query": "where is the spare key"},
    "{agent}": {"persona": {"name": "Ada of globex"}},
}


def test_no_route_gives_a_tenant_anything_of_another(
    app: FastAPI, runtime: Runtime, client_of: MakeClient, acme_ids: dict[str, str]
) -> None:
    globex, acme = client_of("globex"), client_of("acme")
    before = acme.get(f"/v1/memories/{acme_ids['memory']}").json()

    for method, template in operations(app):
        for known in acme_ids.values():
            path = template.replace("{id}", known).replace("{agent}", "ada").replace("{user}", "mira")
            body = next((body for end, body in BODIES.items() if template.endswith(end)), None)
            answer = globex.request(
                method, path.replace("{session}", "chat"), json=body if method in ("POST", "PUT") else None
            )
            assert "spare key" not in answer.text, template
            assert "of acme" not in answer.text, template
            if "{id}" in template:
                assert_error(answer, 404, "not_found")

    assert acme.get(f"/v1/memories/{acme_ids['memory']}").json() == before
    assert acme.get("/v1/agents/ada").json()["persona"]["name"] == "Ada of acme"
    assert acme.get(f"{SCOPE}/sessions/chat/turns").json()["turns"][0]["content"] == SECRET
    assert len(acme.get(f"{SCOPE}/sessions/chat/turns").json()["turns"]) == 1


def test_names_are_those_of_the_tenant(client_of: MakeClient, acme_ids: dict[str, str]) -> None:
    globex = client_of("globex")
    assert_error(globex.get(f"{SCOPE}/memories"), 404, "not_found")

    globex.post(f"{SCOPE}/memories", json={"text": "Mira of globex likes pears."})

    texts = [memory["text"] for memory in globex.get(f"{SCOPE}/memories").json()["memories"]]
    assert texts == ["Mira of globex likes pears."]


def test_the_same_idempotency_key_of_two_tenants_means_two_turns(client_of: MakeClient) -> None:
    turn = {"role": "user", "content": "I water the plants.", "idempotency_key": "one"}

    tickets = [
        client_of(tenant).post(f"{SCOPE}/sessions/chat/turns", json=turn).json()["tickets"][0]
        for tenant in ("acme", "globex")
    ]

    assert tickets[0]["id"] != tickets[1]["id"]
    assert [ticket["duplicate"] for ticket in tickets] == [False, False]


def test_a_cursor_of_another_tenant_shows_only_ones_own(
    client_of: MakeClient, acme_ids: dict[str, str]
) -> None:
    globex = client_of("globex")
    globex.post(f"{SCOPE}/memories", json={"text": "Mira of globex likes pears."})

    page = globex.get(f"{SCOPE}/memories?cursor={acme_ids['memory']}").json()

    assert SECRET not in [memory["text"] for memory in page["memories"]]


# --- without a key ------------------------------------------------------------------------------------------


@pytest.fixture
def open_app(runtime: Runtime, tenant: int) -> FastAPI:
    """An application that takes callers without a key for ``acme``, as on a developer's machine."""
    return create_app(runtime, anonymous=Caller(0, tenant, "acme", frozenset(keys.RIGHTS)))


@pytest.mark.parametrize("address", ["http://localhost:8321", "http://127.0.0.1:8321", "http://[::1]:8321"])
def test_a_local_program_needs_no_key_where_that_is_allowed(open_app: FastAPI, address: str) -> None:
    assert TestClient(open_app, base_url=address).get("/v1/failed").status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "localhost.evil.example"},
        {"Host": ""},
        {"Host": "localhost", "Origin": "https://evil.example"},
        {"Host": "localhost", "Origin": "null"},
    ],
)
def test_a_web_page_cannot_use_that_door(open_app: FastAPI, headers: dict[str, str]) -> None:
    answer = TestClient(open_app, base_url="http://localhost").get("/v1/failed", headers=headers)

    assert_error(answer, 401, "unauthorized")


def test_a_wrong_key_is_refused_even_where_none_is_needed(open_app: FastAPI) -> None:
    client = TestClient(open_app, base_url="http://localhost")

    answer = client.get("/v1/failed", headers={"Authorization": f"Bearer {keys.new_key()}"})

    assert_error(answer, 401, "unauthorized")
