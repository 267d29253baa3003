"""The block "servers of your own" of docs/operations.md, run word by word on servers that ask for passwords."""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from documentation import block_run_by, command_lines
from free_ports import free_port
from own_servers import (
    HOST,
    PostgresServer,
    ValkeyServer,
    clean_environment,
    open_folder,
    postgres_server,
    valkey_server,
    wait_until,
)
from pooler import PgBouncer, pgbouncer
from redis_servers import Authority, DebianRedis, make_authority, redis_server

ROOT = Path(__file__).parents[2]
ONCE = frozenset({"migrate", "keys", "doctor"})
"""Commands of the block that end by themselves; the others are parts."""
STOP_SECONDS = 90.0


def block() -> list[str]:
    """The lines of the block, without comments."""
    return command_lines(block_run_by("docs/operations.md", __file__))


@dataclass(slots=True)
class Deployment:
    """The block on given servers: its exports with passwords filled in, its parts as processes."""

    folder: Path
    environment: dict[str, str]
    parts: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def run(self, line: str) -> subprocess.CompletedProcess[str]:
        """A command that ends by itself."""
        return subprocess.run(
            self._command(line),
            env=self.environment,
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=110,
            check=False,
        )

    def start(self, line: str) -> None:
        """A part, until `stop`."""
        with self._log(line).open("ab") as log:
            self.parts[line] = subprocess.Popen(
                self._command(line),
                env=self.environment,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def check_alive(self) -> None:
        for line, process in self.parts.items():
            assert process.poll() is None, f"{line} ended: {self._log(line).read_text()[-2000:]}"

    def stop(self) -> None:
        """Ask every part to end; what does not is killed with its children."""
        for process in self.parts.values():
            process.terminate()
        for process in self.parts.values():
            with suppress(subprocess.TimeoutExpired):
                process.wait(STOP_SECONDS)
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def logs(self) -> str:
        return "\n".join(self._log(line).read_text() for line in self.parts)

    def _command(self, line: str) -> list[str]:
        words = line.split()
        assert words[0] == "memory", line
        return [sys.executable, "-m", "memory_app", *words[1:]]

    def _log(self, line: str) -> Path:
        return self.folder / f"{line.replace(' ', '-')}.log"


def exports(replaced: Mapping[str, str]) -> dict[str, str]:
    """The block's settings, with the words a reader replaces replaced."""
    settings: dict[str, str] = {}
    for line in block():
        if line.startswith("export "):
            name, _, value = line.removeprefix("export ").partition("=")
            for word, own in replaced.items():
                value = value.replace(word, own)
            settings[name] = value
    return settings


@contextmanager
def deployed(settings: Mapping[str, str]) -> Iterator[Deployment]:
    """A deployment of which nothing runs yet."""
    with open_folder("memory-own-") as folder:
        environment = {**clean_environment(), "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1", **settings}
        deployment = Deployment(folder, environment)
        try:
            yield deployment
        finally:
            deployment.stop()


def call(port: int, key: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
    request = urllib.request.Request(
        f"http://{HOST}:{port}{path}",
        None if body is None else json.dumps(body).encode(),
        {"Authorization": f"Bearer {key}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


def is_ready(url: str, login: str | None = None) -> bool:
    request = urllib.request.Request(url)
    if login is not None:
        request.add_header("Authorization", "Basic " + base64.b64encode(login.encode()).decode())
    with suppress(OSError), urllib.request.urlopen(request, timeout=10) as answer:
        return bool(answer.status == 200)
    return False


def run_block(deployment: Deployment, *, api_port: int, flower_port: int) -> None:
    """Every line of the block in its order; a turn goes in before the doctor is asked."""
    key = ""
    for line in block():
        if line.startswith("export ") or line == "memory doctor":
            continue
        command = line.split()[1]
        if command in ONCE:
            done = deployment.run(line)
            assert done.returncode == 0, f"{line}: {done.stderr}"
            key = done.stdout.strip() if command == "keys" else key
        else:
            deployment.start(line)
    api = f"http://{HOST}:{api_port}"
    wait_until(lambda: deployment.check_alive() or is_ready(f"{api}/health/ready"), "the API is ready")
    login = deployment.environment["FLOWER_BASIC_AUTH"]
    flower = f"http://{HOST}:{flower_port}/healthcheck"
    wait_until(lambda: deployment.check_alive() or is_ready(flower, login), "Flower answers")

    turns = call(
        api_port,
        key,
        "/v1/agents/ada/users/mira/sessions/chat-1/turns",
        {"role": "user", "content": "I moved to Lisbon last month and I have a dog called Bruno."},
    )
    ticket = turns["tickets"][0]["id"]
    path = f"/v1/turns/{ticket}?wait_seconds=5"
    wait_until(
        lambda: deployment.check_alive() or call(api_port, key, path)["stage"] == "extracted",
        "the turn is extracted",
    )

    # A worker that has just started answers the roll call a moment later.
    wait_until(lambda: deployment.run("memory doctor").returncode == 0, "doctor is green")
    deployment.check_alive()


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    with postgres_server() as server:
        yield server


@pytest.fixture(scope="module")
def redis() -> Iterator[ValkeyServer]:
    with valkey_server() as server:
        yield server


@pytest.mark.timeout(600)
def test_the_block_works_on_servers_with_passwords(postgres: PostgresServer, redis: ValkeyServer) -> None:
    postgres.create_database("memory")
    api_port, flower_port = free_port(), free_port()
    settings = exports(
        {
            "OWNER_PASSWORD": postgres.password,
            "APP_PASSWORD": "app-secret-5f2",
            "REDIS_PASSWORD": redis.password,
            "FLOWER_PASSWORD": "flower-secret",
            "db:5432": f"{HOST}:{postgres.port}",
            "redis:6379": f"{HOST}:{redis.port}",
        }
    )
    own = {"MEMORY_HTTP__PORT": str(api_port), "FLOWER_PORT": str(flower_port)}
    with deployed(settings | own) as deployment:
        run_block(deployment, api_port=api_port, flower_port=flower_port)

        for secret in (postgres.password, "app-secret-5f2", redis.password, "flower-secret"):
            assert secret not in deployment.logs()


@pytest.fixture
def authority() -> Iterator[Authority]:
    with open_folder("memory-ca-") as folder:
        yield make_authority(folder / "ca")


@pytest.fixture
def tls_redis() -> Iterator[DebianRedis]:
    with redis_server(tls=True) as server:
        yield server


@pytest.fixture
def tls_postgres(postgres: PostgresServer, authority: Authority) -> Iterator[PgBouncer]:
    """The wheel's PostgreSQL is built without TLS, so a PgBouncer in session mode speaks it."""
    owner, app = postgres.url("tls"), postgres.url("tls", user="memory_app", password="app-secret-5f2")
    with pgbouncer(owner, app, mode="session", pool_size=80, authority=authority) as pooler:
        yield pooler


@pytest.mark.system
@pytest.mark.timeout(600)
def test_the_block_works_over_tls(
    postgres: PostgresServer, tls_postgres: PgBouncer, tls_redis: DebianRedis, authority: Authority
) -> None:
    postgres.create_database("tls")
    api_port, flower_port = free_port(), free_port()
    verified = f"?sslmode=verify-full&sslrootcert={authority.file}"
    assert tls_redis.authority is not None
    settings = exports(
        {
            "OWNER_PASSWORD": postgres.password,
            "APP_PASSWORD": "app-secret-5f2",
            "redis://:REDIS_PASSWORD": f"rediss://:{tls_redis.password}",
            "FLOWER_PASSWORD": "flower-secret",
            "db:5432/memory": f"localhost:{tls_postgres.port}/tls{verified}",
            "redis:6379": f"localhost:{tls_redis.port}",
        }
    )
    own = {
        "MEMORY_HTTP__PORT": str(api_port),
        "FLOWER_PORT": str(flower_port),
        "MEMORY_REDIS__CA_FILE": str(tls_redis.authority.file),
    }
    with deployed(settings | own) as deployment:
        run_block(deployment, api_port=api_port, flower_port=flower_port)
