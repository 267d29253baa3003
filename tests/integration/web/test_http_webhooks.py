"""Webhooks over HTTP: who may have them, what is refused, and that a secret is shown once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from uuid import uuid4

import pytest
from receiver import Receiver, receiving
from sqlalchemy import Engine
from starlette.testclient import TestClient

from memory_app.client import verify_webhook
from memory_app.main.http import create_app
from memory_app.runtime import Runtime
from memory_app.settings import Erasure, Webhooks
from memory_app.tenancy.rows import keys

MakeClient = Callable[[str], TestClient]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as receiver:
        yield receiver


@pytest.fixture
def client_of(runtime: Runtime) -> MakeClient:
    settings = runtime.settings.model_copy(
        update={
            "webhooks": Webhooks(allow_private=True, allow_http=True, ports=frozenset()),
            "erasure": Erasure.model_validate({"secret": "a secret of the server that is long enough"}),
        }
    )
    app = create_app(replace(runtime, settings=settings))
    return lambda key: TestClient(app, headers={"Authorization": f"Bearer {key}"})


@pytest.fixture
def admin(client_of: MakeClient, api_key: str) -> TestClient:
    return client_of(api_key)


def key(owner: Engine, **fields: object) -> str:
    with owner.begin() as connection:
        return keys.create(connection, "acme", **fields)[1]  # type: ignore[arg-type]


def test_a_webhook_is_made_listed_changed_tested_and_deleted(admin: TestClient, receiver: Receiver) -> None:
    made = admin.post("/v1/webhooks", json={"url": receiver.url, "types": ["turn"], "user": "mira"})
    assert made.status_code == 201
    webhook, secret = made.json()["webhook"], made.json()["secret"]
    path = f"/v1/webhooks/{webhook['id']}"
    listed = admin.get("/v1/webhooks")
    assert listed.json() == {"webhooks": [webhook]}
    assert "turn.failed" in webhook["types"]
    assert "secret" not in listed.text and "salt" not in listed.text

    pinged = admin.post(f"{path}/ping").json()
    assert (pinged["outcome"], pinged["status"], pinged["events"]) == ("delivered", 204, 0)
    message = receiver.messages[0]
    assert verify_webhook(message.headers, message.body, secret)["type"] == "ping"

    changed = admin.patch(path, json={"paused": True, "user": None}).json()
    assert (changed["paused_reason"], changed["user"], changed["types"]) == ("asked", None, webhook["types"])
    assert admin.patch(path, json={}).json() == changed
    rotated = admin.post(f"{path}/rotate", json={})
    assert rotated.status_code == 200 and rotated.json()["secret"] != secret
    assert admin.post(f"{path}/resend", json={"after": "oldest"}).status_code == 200

    admin.post(f"{path}/ping")
    first = admin.get(f"{path}/deliveries", params={"limit": 1}).json()
    rest = admin.get(f"{path}/deliveries", params={"limit": 2, "cursor": first["cursor"]}).json()
    assert [len(page["deliveries"]) for page in (first, rest)] == [1, 1]
    assert rest["deliveries"] == [pinged] and rest["cursor"] is None

    assert admin.delete(path).status_code == 204
    for answer in (admin.delete(path), admin.get(f"{path}/deliveries"), admin.post(f"{path}/ping")):
        assert answer.status_code == 404
    actions = [entry["action"] for entry in admin.get("/v1/audit").json()["entries"]]
    assert {"webhook.create", "webhook.change", "webhook.rotate", "webhook.delete"} <= set(actions)
    assert str(webhook["id"]) in admin.get("/v1/audit").text


@pytest.mark.parametrize(
    "fields",
    [
        {"rights": ["read", "record", "write", "erase"]},
        {"rights": ["admin"], "user": "mira"},
        {"rights": ["admin"], "agent": "ada"},
    ],
    ids=["no admin", "of a person", "of an agent"],
)
def test_only_who_administers_the_whole_tenant_has_webhooks(
    client_of: MakeClient, owner: Engine, tenant: int, receiver: Receiver, fields: dict[str, object]
) -> None:
    client = client_of(key(owner, **fields))
    id = uuid4()
    answers = [
        client.get("/v1/webhooks"),
        client.post("/v1/webhooks", json={"url": receiver.url, "user": "mira", "agent": "ada"}),
        client.patch(f"/v1/webhooks/{id}", json={}),
        client.delete(f"/v1/webhooks/{id}"),
        client.post(f"/v1/webhooks/{id}/rotate", json={}),
        client.get(f"/v1/webhooks/{id}/deliveries"),
        client.post(f"/v1/webhooks/{id}/resend", json={"after": "oldest"}),
        client.post(f"/v1/webhooks/{id}/ping"),
    ]
    assert [answer.status_code for answer in answers] == [403] * 8
    assert receiver.messages == []


def test_other_tenants_find_nothing(
    client_of: MakeClient, admin: TestClient, owner: Engine, other_tenant: int, receiver: Receiver
) -> None:
    made = admin.post("/v1/webhooks", json={"url": receiver.url}).json()
    with owner.begin() as connection:
        stranger = client_of(keys.create(connection, "globex", rights=("admin",))[1])
    path = f"/v1/webhooks/{made['webhook']['id']}"
    assert stranger.get("/v1/webhooks").json() == {"webhooks": []}
    for answer in (
        stranger.patch(path, json={"paused": True}),
        stranger.delete(path),
        stranger.post(f"{path}/rotate", json={}),
        stranger.get(f"{path}/deliveries"),
        stranger.post(f"{path}/resend", json={"after": "oldest"}),
        stranger.post(f"{path}/ping"),
    ):
        assert answer.status_code == 404
    assert receiver.messages == []


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({}, "url"),
        ({"url": None}, "url"),
        ({"url": "ftp://127.0.0.1/"}, "url"),
        ({"url": "http://169.254.169.254/latest/meta-data"}, "url"),
        ({"url": "http://[::ffff:169.254.169.254]/"}, "url"),
        ({"url": "http://user:word@127.0.0.1/"}, "url"),
        ({"types": []}, "types"),
        ({"types": ["turns"]}, "types"),
        ({"types": "turn"}, "types"),
        ({"agent": ""}, "agent"),
        ({"user": "a\nb"}, "user"),
        ({"description": "x" * 201}, "description"),
        ({"after": "yesterday"}, "after"),
        ({"secret": "whsec_mine"}, "secret"),
    ],
)
def test_bad_input_is_named(
    admin: TestClient, receiver: Receiver, fields: dict[str, object], field: str
) -> None:
    body = {"url": receiver.url, **fields} if fields else {}
    answer = admin.post("/v1/webhooks", json=body)
    assert answer.status_code in (400, 422), answer.text
    assert answer.json()["error"]["field"] == field
    assert admin.get("/v1/webhooks").json() == {"webhooks": []}


@pytest.mark.parametrize(
    ("fields", "field"), [({"url": None}, "url"), ({"paused": None}, "paused"), ({"paused": "no"}, "paused")]
)
def test_a_change_that_means_nothing_is_refused(
    admin: TestClient, receiver: Receiver, fields: dict[str, object], field: str
) -> None:
    made = admin.post("/v1/webhooks", json={"url": receiver.url}).json()
    answer = admin.patch(f"/v1/webhooks/{made['webhook']['id']}", json=fields)
    assert (answer.status_code, answer.json()["error"]["field"]) == (422, field)
