"""Asking for a synthesis, and seeing what questions cost."""

from __future__ import annotations

from decimal import Decimal

import pytest
from starlette.testclient import TestClient

from memory_app.extraction import model_calls
from memory_app.main.http import create_app
from memory_app.providers.chat import Usage
from memory_app.records.records import NewTurn, Role
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.turns.record import record

SCOPE = "/v1/agents/ada/users/mira"


@pytest.fixture
def client(runtime: Runtime, api_key: str) -> TestClient:
    return TestClient(create_app(runtime), headers={"Authorization": f"Bearer {api_key}"})


def test_a_synthesis_is_asked_for_as_a_run(client: TestClient, runtime: Runtime, tenant: int) -> None:
    record(runtime, tenant, Scope("ada", "mira", "chat"), [NewTurn(Role.USER, "I have a dog called Bruno.")])
    answer = client.post(f"{SCOPE}/synthesis", json={"type": "session", "session": "chat"})
    assert answer.status_code == 202
    run = answer.json()
    assert (run["name"], run["state"]) == ("synthesize_session", "queued")
    assert client.get(f"/v1/runs/{run['id']}").json()["state"] == "queued"


@pytest.mark.parametrize(
    ("body", "status", "field"),
    [
        ({"type": "weekly"}, 422, "type"),
        ({"type": "session"}, 422, "session"),
        ({"type": "turn"}, 422, "session"),
        ({"type": "turn", "session": "chat", "dry_run": True}, 422, "dry_run"),
        ({"type": "session", "session": "unheard of"}, 404, "session"),
        ({"type": "deep", "days": 0}, 422, "days"),
    ],
)
def test_a_wrong_request_names_its_field(
    client: TestClient, runtime: Runtime, tenant: int, body: dict[str, object], status: int, field: str
) -> None:
    record(runtime, tenant, Scope("ada", "mira", "chat"), [NewTurn(Role.USER, "I have a dog called Bruno.")])
    answer = client.post(f"{SCOPE}/synthesis", json=body)
    assert (answer.status_code, answer.json()["error"]["field"]) == (status, field)


def test_usage_adds_up_by_day_and_model_and_only_for_its_tenant(
    client: TestClient, runtime: Runtime, tenant: int, other_tenant: int
) -> None:
    for _ in range(2):
        model_calls.note(runtime, tenant, Usage("small", 100, 20, 0.5))
    model_calls.note(runtime, other_tenant, Usage("small", 7, 7, 0.5))
    (day,) = client.get("/v1/usage").json()["days"]
    assert (day["calls"], day["tokens_in"], day["tokens_out"]) == (2, 200, 40)
    assert Decimal(day["cost_usd"]) == 0
