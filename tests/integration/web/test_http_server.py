"""The API as a process of its own: what it refuses to serve, and that a real socket behaves like the rest."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
from free_ports import free_port
from sqlalchemy import Engine

from memory_app.errors import Misconfigured
from memory_app.main.server import check_door
from memory_app.runtime import Runtime
from memory_app.settings import Http
from memory_app.tenancy.rows import keys

SERVE = (
    "from memory_app.main.server import serve; from memory_app.settings import Settings; serve(Settings())"
)
TURNS = "/v1/agents/ada/users/mira/sessions/chat/turns"
START_SECONDS = 300


@pytest.fixture
def address(environment: dict[str, str], tmp_path: Path) -> Iterator[str]:
    """A served API; its log must hold no names and no words."""
    port, log = free_port(), tmp_path / "server.log"
    variables = {
        **environment,
        "MEMORY_HTTP__PORT": str(port),
        "MEMORY_HTTP__BODY_LIMIT_BYTES": "100000",
        "MEMORY_LOG__LEVEL": "DEBUG",
    }
    with log.open("wb") as output:
        process = subprocess.Popen([sys.executable, "-c", SERVE], env=variables, stdout=output, stderr=output)
        try:
            wait_until_live(process, f"http://127.0.0.1:{port}")
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait(timeout=30)
    written = log.read_text()
    assert "route=/v1/agents/{agent}" in written
    assert "Traceback" not in written
    assert "mira" not in written


def wait_until_live(process: subprocess.Popen[bytes], address: str) -> None:
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end:
        assert process.poll() is None, "the server ended"
        try:
            if httpx.get(f"{address}/health/live", timeout=5).status_code == 200:
                return
        except httpx.TransportError:
            time.sleep(0.05)
    raise AssertionError("the server did not answer in time")


def test_turns_of_many_callers_at_once_are_numbered_without_gaps(address: str, api_key: str) -> None:
    with httpx.Client(base_url=address, headers={"Authorization": f"Bearer {api_key}"}, timeout=30) as client:

        def send(n: int) -> int:
            answer = client.post(TURNS, json={"role": "user", "content": f"This is turn {n}."})
            assert answer.status_code == 202, answer.text
            return int(answer.json()["tickets"][0]["seq"])

        with ThreadPoolExecutor(8) as pool:
            numbers = list(pool.map(send, range(40)))

        assert sorted(numbers) == list(range(1, 41))
        assert len(client.get(f"{TURNS}?limit=50").json()["turns"]) == 40


def test_a_served_api_refuses_strangers_large_bodies_and_bad_addresses(address: str, api_key: str) -> None:
    headers = {"Authorization": f"Bearer {api_key}", "Content-Type": "application/json"}
    with httpx.Client(base_url=address, timeout=30) as client:
        assert client.get("/v1/failed").status_code == 401
        assert client.post(TURNS, content=b" " * 100_001, headers=headers).status_code == 413
        assert client.post(TURNS, content=iter([b" " * 50_000] * 3), headers=headers).status_code == 413
        assert client.get("/v1/agents/%FF", headers=headers).status_code == 422
        assert client.get("/v1/agents/a%2Fb", headers=headers).json()["error"]["field"] == "agent"
        assert client.get("/v1/failed", headers=headers).status_code == 200
        assert "server" not in client.get("/health/live").headers


def at(runtime: Runtime, http: Http) -> Runtime:
    """The same live parts behind another address."""
    return replace(runtime, settings=runtime.settings.model_copy(update={"http": http}))


def test_an_address_that_others_reach_is_not_served_without_a_key(runtime: Runtime, owner: Engine) -> None:
    public = at(runtime, Http(host="0.0.0.0"))
    with pytest.raises(Misconfigured, match="keys create"):
        check_door(public)
    with owner.begin() as connection:
        key_id, _ = keys.create(connection, "acme")

    assert check_door(public) is None

    with owner.begin() as connection:
        keys.enter_tenant_of(connection, key_id)
        keys.revoke(connection, key_id)
    with pytest.raises(Misconfigured, match="keys create"):
        check_door(public)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.0.7", "example.org", ""])
def test_callers_without_a_key_are_refused_on_a_public_address(runtime: Runtime, host: str) -> None:
    public = at(runtime, Http(host=host, allow_anonymous_tenant="acme"))

    with pytest.raises(Misconfigured, match="loopback"):
        check_door(public)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost"])
def test_callers_without_a_key_may_be_served_on_a_loopback_address(runtime: Runtime, host: str) -> None:
    local = at(runtime, Http(host=host, allow_anonymous_tenant="acme"))

    caller = check_door(local)

    assert caller is not None
    assert caller.tenant == "acme"
    assert check_door(runtime) is None
