"""All parts of the product as processes, each with its own user of a Redis, against servers of the test."""

from __future__ import annotations

import base64
import json
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from free_ports import free_port
from own_servers import wait_until
from parts import Process, call, run, started
from redis_servers import DebianRedis

FLOWER_LOGIN = "me:flower-secret"
QUEUES = ("--queue", "ingest", "--queue", "model", "--queue", "maintenance")
COMMANDS: Mapping[str, tuple[str, ...]] = {
    "api": ("serve",),
    "worker": ("worker", *QUEUES),
    "beat": ("beat",),
    "finder": ("finder",),
    "flower": ("flower",),
}


@dataclass(slots=True)
class Fleet:
    """What runs, and how to reach it. ``environment`` holds what is the same for all parts."""

    redis: DebianRedis
    environment: Mapping[str, str]
    folder: Path
    host: str = "localhost"
    api_port: int = field(default_factory=free_port)
    flower_port: int = field(default_factory=free_port)

    def environment_of(self, part: str, **settings: str) -> dict[str, str]:
        own = {
            **self.environment,
            "MEMORY_REDIS__URL": self.redis.url(self.redis.login(part), host=self.host),
            "MEMORY_HTTP__PORT": str(self.api_port),
            "FLOWER_PORT": str(self.flower_port),
            "FLOWER_BASIC_AUTH": FLOWER_LOGIN,
            "FLOWER_ADDRESS": "127.0.0.1",
            "FLOWER_READ_ONLY": "true",
        }
        if self.redis.authority is not None:
            own["MEMORY_REDIS__CA_FILE"] = str(self.redis.authority.file)
        return own | settings

    @contextmanager
    def running(self, *parts: str, **settings: str) -> Iterator[dict[str, Process]]:
        """These parts, or all."""
        with ExitStack() as stack:
            processes = {}
            for part in parts or COMMANDS:
                own = self.environment_of(part, **settings)
                process = started(part, *COMMANDS[part], environment=own, folder=self.folder)
                processes[part] = stack.enter_context(process)
            yield processes

    def run_doctor(self, **settings: str) -> dict[str, dict[str, str]]:
        """What it looked at, by name."""
        done = run("doctor", "--json", environment=self.environment_of("doctor", **settings))
        assert done.stdout, done.stderr
        return {check["name"]: check for check in json.loads(done.stdout)["checks"]}

    def is_healthy(self) -> bool:
        """Whether every part is heard and nothing is wrong."""
        try:
            with urllib.request.urlopen(
                f"http://127.0.0.1:{self.api_port}/health/ready", timeout=10
            ) as answer:
                parts = json.load(answer)["parts"]
                return all(part["reason"] is None for part in parts.values())
        except OSError:
            return False

    def flower_page(self, path: str) -> str:
        """Raises OSError when Flower does not answer 200."""
        login = base64.b64encode(FLOWER_LOGIN.encode()).decode()
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.flower_port}{path}", headers={"Authorization": f"Basic {login}"}
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            return str(answer.read().decode())

    def extract(self, key: str, text: str) -> None:
        """Record a turn, and wait until it is a memory."""
        path = "/v1/agents/ada/users/mira/sessions/chat/turns"
        accepted = call(self.api_port, path, key, {"role": "user", "content": text})
        ticket = accepted["tickets"][0]["id"]
        wait_until(
            lambda: call(self.api_port, f"/v1/turns/{ticket}?wait_seconds=5", key)["stage"] == "extracted",
            "the turn is extracted",
        )
