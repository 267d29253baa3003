"""The log line of a request says with which error it was answered, in a word of ours."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from fastapi.testclient import TestClient
from log_lines import logged

from memory_app.main.http import create_app
from memory_app.runtime import Runtime
from memory_app.web import observe

SCOPE = "/v1/agents/ada/users/mira"


@pytest.fixture
def client(runtime: Runtime, api_key: str) -> TestClient:
    return TestClient(create_app(runtime), headers={"Authorization": f"Bearer {api_key}"})


def line_of(client: TestClient, body: dict[str, Any]) -> dict[str, Any]:
    with logged(observe) as logs:
        client.post(f"{SCOPE}/recall", json=body)
    (line,) = [entry for entry in logs if entry["event"] == "request"]
    return dict(line)


def test_an_answer_without_an_error_names_none(client: TestClient) -> None:
    turn = {"role": "user", "content": "I live in Lisbon."}
    assert client.post(f"{SCOPE}/sessions/chat/turns", json=turn).status_code == 202

    line = line_of(client, {"query": "Where does Mira live?"})

    assert (line["status"], "error" in line) == (200, False)


def test_input_that_is_wrong_is_named(client: TestClient) -> None:
    line = line_of(client, {"query": "Where does Mira live?", "limit": "many"})

    assert (line["status"], line["error"]) == (422, "invalid_input")
    assert "many" not in str(line)


def test_what_was_not_found_is_named_by_its_kind_alone(client: TestClient) -> None:
    number = uuid4()
    with logged(observe) as logs:
        client.get(f"/v1/runs/{number}")
    (line,) = [entry for entry in logs if entry["event"] == "request"]

    assert (line["status"], line["error"]) == (404, "not_found")
    assert str(number) not in str(line)
