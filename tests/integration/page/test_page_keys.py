"""Keys on the page: what is shown of them, and that its acts are those of the API."""

from __future__ import annotations

import re

import pytest
from fastapi import FastAPI
from page_visitor import Visitor
from sqlalchemy import Engine
from starlette.testclient import TestClient

from memory_app.main.http import create_app
from memory_app.runtime import Runtime
from memory_app.tenancy import audit
from memory_app.tenancy.keys import list_keys
from memory_app.tenancy.rows import keys
from memory_app.tenancy.rows.keys import KeyRow

SCRIPT = "<script>alert('key')</script>"


@pytest.fixture
def app(runtime: Runtime) -> FastAPI:
    return create_app(runtime)


@pytest.fixture
def visitor(app: FastAPI, owner: Engine, tenant: int) -> Visitor:
    with owner.begin() as connection:
        _, key = keys.create(connection, "acme", rights=keys.RIGHTS, label=SCRIPT)
    visitor = Visitor(app)
    visitor.log_in(key)
    return visitor


def newest(runtime: Runtime, tenant: int) -> KeyRow:
    return list_keys(runtime, tenant)[-1]


def shown_key(visitor: Visitor) -> str:
    (key,) = re.findall(r'class="secret" value="(mem_[^"]+)"', visitor.html)
    return str(key)


def test_a_key_is_shown_once_and_opens_the_api(
    runtime: Runtime, tenant: int, app: FastAPI, visitor: Visitor
) -> None:
    visitor.get("/keys")
    assert SCRIPT in visitor.text and SCRIPT not in visitor.html

    answer = visitor.send(
        "/keys", label="the app", rights=["read", "write"], days="30", agent="", user="mira/1"
    )

    assert answer.status_code == 201 and answer.headers["Cache-Control"] == "no-store"
    key = shown_key(visitor)
    assert "set-cookie" not in answer.headers or key not in answer.headers["set-cookie"]
    row = newest(runtime, tenant)
    assert (row.label, row.rights, row.agent_name, row.user_name) == (
        "the app",
        ("read", "write"),
        None,
        "mira/1",
    )
    assert row.expires_at is not None and (row.expires_at - row.created_at).days in (29, 30)
    client = TestClient(app, headers={"Authorization": f"Bearer {key}"})
    assert client.get("/v1/keys").status_code == 403
    visitor.get("/keys")
    assert key not in visitor.html and row.prefix in visitor.html
    assert [(entry.action, entry.outcome) for entry in audit.all_entries(runtime, tenant)] == [
        ("key.create", "begun"),
        ("key.create", "done"),
    ]


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({}, "rights: choose from"),
        ({"rights": "fly"}, "rights: choose from"),
        ({"rights": "read", "days": "0"}, "days: 1 to"),
        ({"rights": "read", "days": "soon"}, "days: a whole number"),
        ({"rights": "read", "days": "9" * 400}, "days: a whole number"),
        ({"rights": "read", "label": "x" * 5_000}, "label"),
    ],
    ids=["no right", "unknown right", "no day", "no number", "huge", "long"],
)
def test_what_does_not_fit_is_said_beside_the_form_and_written_down(
    runtime: Runtime, tenant: int, visitor: Visitor, fields: dict[str, str], says: str
) -> None:
    before = newest(runtime, tenant)
    visitor.get("/keys")

    answer = visitor.send("/keys", agent="ada's", **fields)

    assert answer.status_code == 422
    assert says in visitor.text
    assert 'value="ada&#39;s"' in visitor.html, "what was filled in is still there"
    assert newest(runtime, tenant) == before
    assert [entry.outcome for entry in audit.all_entries(runtime, tenant)] == ["begun", "invalid_input"]


def test_a_rotated_key_goes_on_beside_the_new_one(runtime: Runtime, tenant: int, visitor: Visitor) -> None:
    old = newest(runtime, tenant)
    visitor.get("/keys")

    answer = visitor.send(f"/keys/{old.id}/rotate", overlap_hours="2")

    assert answer.status_code == 201
    assert shown_key(visitor).startswith("mem_")
    assert f"Key {old.id} goes on for 2 hours" in visitor.text
    new = newest(runtime, tenant)
    assert (new.id != old.id, new.rights, new.label) == (True, old.rights, old.label)
    (ending,) = [key for key in list_keys(runtime, tenant) if key.id == old.id]
    assert ending.expires_at is not None


@pytest.mark.parametrize("hours", ["", "-1", "9000", "1.5", "NaN"])
def test_a_rotation_needs_hours(runtime: Runtime, tenant: int, visitor: Visitor, hours: str) -> None:
    key = newest(runtime, tenant)
    visitor.get("/keys")

    assert visitor.send(f"/keys/{key.id}/rotate", overlap_hours=hours).status_code == 422
    assert "overlap_hours" in visitor.text
    assert newest(runtime, tenant).id == key.id


def test_limits_of_a_key_are_set_and_taken_away(runtime: Runtime, tenant: int, visitor: Visitor) -> None:
    key = newest(runtime, tenant)
    visitor.get("/keys")

    visitor.send(f"/keys/{key.id}/limits", requests_per_minute="60", bytes_per_minute="")
    assert newest(runtime, tenant).limits == {"requests_per_minute": 60}
    assert "60 requests per minute" in visitor.text

    visitor.send(f"/keys/{key.id}/limits", requests_per_minute="", bytes_per_minute="")
    assert newest(runtime, tenant).limits == {}
    assert visitor.send(f"/keys/{key.id}/limits", requests_per_minute="0").status_code == 422


def test_revoking_its_own_key_ends_the_session(runtime: Runtime, tenant: int, visitor: Visitor) -> None:
    key = newest(runtime, tenant)
    visitor.get("/keys")
    assert "this session" in visitor.text

    answer = visitor.send(f"/keys/{key.id}/revoke")

    assert answer.url.path == "/ui/login"
    assert newest(runtime, tenant).revoked_at is not None


def test_keys_of_others_are_neither_shown_nor_changed(
    runtime: Runtime, owner: Engine, visitor: Visitor
) -> None:
    with owner.begin() as connection:
        number, _ = keys.create(connection, "globex", label="quokka")
    visitor.get("/keys")

    assert "quokka" not in visitor.text
    assert visitor.send(f"/keys/{number}/revoke").status_code == 404
    for key in ("0", "-1", "x", str(2**63)):
        assert visitor.send(f"/keys/{key}/revoke").status_code == 422, key


@pytest.mark.parametrize("path", ["/keys", "/audit", "/audit/chain"])
def test_only_who_administers_the_tenant_sees_keys_and_log(
    app: FastAPI, owner: Engine, tenant: int, path: str
) -> None:
    with owner.begin() as connection:
        usual = keys.create(connection, "acme")[1]
        bound = keys.create(connection, "acme", rights=keys.RIGHTS, user="mira")[1]
    for key in (usual, bound):
        visitor = Visitor(app)
        visitor.log_in(key)
        assert visitor.get(path).status_code == 403
        assert visitor.send("/keys", rights="admin").status_code == 403
        assert 'href="/ui/keys"' not in visitor.get("/nowhere").text
