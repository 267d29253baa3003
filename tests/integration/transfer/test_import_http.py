"""Importing over HTTP: real snapshots are large, and what is wrong with one is answered, never a 500."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import Engine, text
from starlette.testclient import TestClient

from memory_app.dispatch import finder
from memory_app.main.http import create_app
from memory_app.records.records import NewTurn, Role
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime, build
from memory_app.settings import Http, Settings
from memory_app.transfer import snapshots
from memory_app.transfer.snapshot_rows import FIELDS
from memory_app.turns.record import record

BASE = "/v1/agents/ada/users/bob"
TO = "/v1/agents/ada/users/new/import"
BODY_LIMIT_BYTES = 10_000
IMPORT_LIMIT_BYTES = 400_000
WRONG: tuple[Any, ...] = ([], {"a": [1]}, -(10**18), "\0")
OTHER: tuple[Any, ...] = (None, [], ["a"], {}, 7, "a")


@pytest.fixture
def client(settings: Settings, runtime: Runtime, api_key: str) -> Iterator[TestClient]:
    """An application whose ordinary bodies may be smaller than any snapshot."""
    limits = Http(body_limit_bytes=BODY_LIMIT_BYTES, import_limit_bytes=IMPORT_LIMIT_BYTES)
    own = build(settings.model_copy(update={"http": limits}))
    yield TestClient(create_app(own), headers={"Authorization": f"Bearer {api_key}"})
    own.close()


@pytest.fixture
def snapshot(runtime: Runtime, other_tenant: int) -> dict[str, Any]:
    """A snapshot of another tenant, larger than an ordinary body may be."""
    said = [f"I have a {animal} named {animal.upper()}." for animal in ("dog", "cat", "goat", "hen", "mule")]
    record(runtime, other_tenant, Scope("ada", "bob", "chat"), [NewTurn(Role.USER, one) for one in said])
    finder.drain(runtime)
    made: dict[str, Any] = json.loads(
        json.dumps(snapshots.export(runtime, other_tenant, Scope("ada", "bob")))
    )
    assert BODY_LIMIT_BYTES < len(json.dumps(made)) < IMPORT_LIMIT_BYTES
    return made


def stored(owner: Engine, tenant: int) -> dict[str, int]:
    tables = ("agents", "users", "scopes", "memories", "turns", "sessions", "entities", "links", "mentions")
    with owner.connect() as connection:
        return {
            table: connection.execute(
                text(f"SELECT count(*) FROM {table} WHERE tenant_id = :tenant"), {"tenant": tenant}
            ).scalar_one()
            for table in tables
        }


def test_a_snapshot_larger_than_other_bodies_is_imported(
    client: TestClient, snapshot: dict[str, Any]
) -> None:
    answered = client.post(TO, json=snapshot)
    assert (answered.status_code, answered.json()["counts"]) == (200, snapshot["counts"])


def test_other_addresses_keep_their_limit(client: TestClient, snapshot: dict[str, Any]) -> None:
    for path in (f"{BASE}/checkpoints", f"{BASE}/recall"):
        refused = client.post(path, json=snapshot)
        assert refused.status_code == 413, path
        assert str(BODY_LIMIT_BYTES) in refused.json()["error"]["message"]
    assert client.post(f"{TO}/import", json=snapshot).status_code == 404
    assert client.put(TO, json=snapshot).status_code == 405


def test_a_snapshot_above_the_limit_is_refused_naming_the_limit(client: TestClient) -> None:
    body = b" " * (IMPORT_LIMIT_BYTES + 1)

    def unannounced() -> Iterator[bytes]:
        yield from (body[:100], body[100:])

    for content in (body, unannounced()):
        refused = client.post(TO, content=content)
        error = refused.json()["error"]
        assert (refused.status_code, error["type"], error["field"]) == (413, "too_large", "body")
        assert str(IMPORT_LIMIT_BYTES) in error["message"]
        assert "import_limit_bytes" in error["message"]


@pytest.mark.slow
def test_a_malformed_snapshot_is_an_error_and_stores_nothing(
    client: TestClient, snapshot: dict[str, Any], owner: Engine, tenant: int
) -> None:
    before = stored(owner, tenant)
    for name, fields in FIELDS.items():
        for field, sort in fields.items() if snapshot[name] else ():
            for replacement in WRONG:
                changed = copy.deepcopy(snapshot)
                changed[name][-1][field] = replacement
                refused = client.post(TO, json=changed)
                if refused.status_code == 200:
                    assert replacement == [] or field == "metadata"
                    with owner.begin() as connection:
                        for table in ("scopes", "agents", "users"):
                            connection.execute(
                                text(f"DELETE FROM {table} WHERE tenant_id = :tenant"), {"tenant": tenant}
                            )
                    continue
                error = refused.json()["error"]
                assert (refused.status_code, error["type"]) == (422, "invalid_input"), (name, field)
                assert error["field"] == f"{name}[{len(snapshot[name]) - 1}].{field}"
            if sort.later:
                continue
            changed = copy.deepcopy(snapshot)
            del changed[name][-1][field]
            assert client.post(TO, json=changed).status_code == 422
    assert stored(owner, tenant) == before


@pytest.mark.parametrize(
    "part", ["nodes", "counts", "scope", "embedder", "canonical", "created_at", "format"]
)
def test_a_part_of_a_wrong_sort_is_named(client: TestClient, snapshot: dict[str, Any], part: str) -> None:
    for replacement in OTHER:
        if part == "nodes" and replacement == []:
            continue
        refused = client.post(TO, json=snapshot | {part: replacement})
        assert refused.status_code == 422
        assert refused.json()["error"]["field"].startswith(part)


@pytest.mark.parametrize("depth", [20, 300, 900, 5_000])
def test_what_is_nested_very_deeply_is_refused(
    client: TestClient, snapshot: dict[str, Any], depth: int
) -> None:
    deep = "[" * depth + "]" * depth
    turns = copy.deepcopy(snapshot["turns"])
    turns[0]["metadata"] = {"a": "HERE"}
    for changed in (snapshot | {"counts": "HERE"}, snapshot | {"turns": turns}):
        body = json.dumps(changed).replace('"HERE"', deep)
        refused = client.post(TO, content=body, headers={"Content-Type": "application/json"})
        assert (refused.status_code, refused.json()["error"]["type"]) in (
            (400, "invalid_input"),
            (422, "invalid_input"),
        )
        assert refused.json()["error"]["field"] in ("body", "counts", "turns[0].metadata")
        assert depth == 5_000 or refused.json()["error"]["field"] != "body"
