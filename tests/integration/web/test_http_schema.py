"""Requests made up from the API's own description: whatever comes, the answer is one that is described, and no 500."""

from __future__ import annotations

from contextlib import suppress

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.schemas import APIOperation
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from starlette.testclient import TestClient

from memory_app.main.http import create_app
from memory_app.runtime import Runtime
from memory_app.turns import tickets

EXAMPLES = 8
"""Per operation. Enough to meet each field once; the wrong inputs we know of have tests of their own."""

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]


@pytest.fixture
def described(runtime: Runtime, api_key: str, monkeypatch: pytest.MonkeyPatch) -> schemathesis.BaseSchema:
    """The description of an API that has a turn and a memory to find. It waits for nothing for long."""
    monkeypatch.setattr(tickets, "WAIT_LIMIT_SECONDS", 0.02)
    app = create_app(runtime)
    client = TestClient(app, headers={"Authorization": f"Bearer {api_key}"})
    client.post(
        "/v1/agents/ada/users/mira/sessions/chat-1/turns", json={"role": "user", "content": "Hello Ada."}
    )
    client.post("/v1/agents/ada/users/mira/memories", json={"text": "Mira lives in Lisbon."})
    return schemathesis.openapi.from_asgi("/openapi.json", app)


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_every_answer_is_one_that_is_described(described: schemathesis.BaseSchema, api_key: str) -> None:
    headers = {"Authorization": f"Bearer {api_key}"}
    operations = [found.ok() for found in described.get_all_operations()]
    assert len(operations) >= 20

    for operation in operations:
        for mode in GenerationMode:
            try_made_up_requests(operation, mode, headers)


def try_made_up_requests(operation: APIOperation, mode: GenerationMode, headers: dict[str, str]) -> None:
    """Right ones (positive) and wrong ones (negative)."""
    # No worker runs here, and readiness may say so: with 503, as described.
    is_ready = operation.path == "/health/ready"
    checks = [check for check in CHECKS if not (is_ready and check is not_a_server_error)]

    @settings(
        max_examples=EXAMPLES,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
        derandomize=True,
        database=None,
    )
    @given(operation.as_strategy(generation_mode=mode))
    def check(case: schemathesis.Case) -> None:
        case.call_and_validate(headers=headers, checks=checks)

    with suppress(Unsatisfiable):  # An address without parameters has no wrong requests.
        check()
