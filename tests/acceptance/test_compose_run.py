"""``docker-compose.yml`` without Docker: each service's own command as a process, with its arguments and environment.

Variables come from a ``.env`` made of ``.env.example``, settings from ``memory.env`` and ``model.env``. Only addresses
and folders are replaced: names of hosts by loopback ports, what is mounted by where it stands.
"""

from __future__ import annotations

import json
import re
import secrets
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]
from free_ports import free_port
from own_servers import HOST, PostgresServer, clean_environment, open_folder, wait_until
from parts import STOP_SECONDS, call

from memory_app.local.embedded import valkey
from memory_app.testing import StubProvider

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

ROOT = Path(__file__).parents[2]
SERVICES: Mapping[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
PRODUCT = {name for name, service in SERVICES.items() if service["image"].startswith("memory-app:")}
PARTS = sorted(PRODUCT - {"migrate"})
RIGHTS = tuple(f"--right={right}" for right in ("read", "record", "write", "erase", "admin"))
VARIABLE = re.compile(r"(?<!\$)\$\{([A-Z_]+)(?::[-?]([^}]*))?\}")


def filled_example() -> dict[str, str]:
    """``.env.example``, with a password wherever a value is missing."""
    lines = re.findall(r"^([A-Z_]+)=(.*)$", (ROOT / ".env.example").read_text(), re.MULTILINE)
    return {name: value or secrets.token_hex(24) for name, value in lines}


@dataclass(slots=True)
class Program:
    """One service as a process in a session of its own."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path

    def is_alive(self) -> bool:
        return self.process.poll() is None

    def output(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(STOP_SECONDS)


@dataclass
class Host:
    """The machine on which everything runs: what the compose file says, with this machine's addresses and folders."""

    folder: Path
    values: dict[str, str]
    model_address: str
    programs: dict[str, Program] = field(default_factory=dict)

    @cached_property
    def ports(self) -> dict[str, int]:
        return {name: free_port() for name in ("postgres", "redis", "api", "flower")}

    def environment(self, name: str) -> dict[str, str]:
        """Of a service: its files, then its own variables, with those of ``.env`` put in."""
        service = SERVICES[name]
        pairs = [pair for file in service.get("env_file", ()) for pair in self.settings(file["path"])]
        pairs += [(key, self.put_in(value)) for key, value in service.get("environment", {}).items()]
        own = self.folder / "containers" / name
        own.mkdir(parents=True, exist_ok=True)
        return {**clean_environment(), **dict(pairs), "TMPDIR": str(own), "HOME": str(own)}

    def settings(self, file: str) -> list[tuple[str, str]]:
        """What a person wrote into ``memory.env`` and ``model.env``."""
        return {
            "memory.env": [("MEMORY_EXTRACT__IDLE_SECONDS", "1")],
            "model.env": [
                ("MEMORY_CHAT__BASE_URL", self.model_address),
                ("MEMORY_CHAT__MODEL", "scripted"),
                ("MEMORY_CHAT__KEY", "key-of-the-model"),
                ("MEMORY_EMBEDDING__PROVIDER", "hash"),
            ],
        }[file]

    def put_in(self, text: str) -> str:
        """Variables as compose puts them in, and addresses of this machine."""
        text = VARIABLE.sub(lambda found: self.values[found[1]], text).replace("$$", "$")
        for old, new in {
            "@postgres:5432/": f"@{HOST}:{self.ports['postgres']}/",
            "@redis:6379/": f"@{HOST}:{self.ports['redis']}/",
        }.items():
            text = text.replace(old, new)
        # Inside a container everything may listen; here only loopback does.
        whole = {"0.0.0.0": HOST, "8321": str(self.ports["api"]), "5555": str(self.ports["flower"])}
        return whole.get(text, text)

    def memory(self, name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """``memory <arguments>`` in the container of a service, to its end."""
        environment = self.environment(name)
        return subprocess.run(
            [sys.executable, "-m", "memory_app", *arguments],
            cwd=environment["TMPDIR"],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=200,
        )

    def start(self, name: str, command: list[str]) -> None:
        environment = self.environment(name)
        log = self.folder / f"{name}.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                command,
                cwd=environment["TMPDIR"],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        self.programs[name] = Program(name, process, log)

    def start_part(self, name: str) -> None:
        """A part of the product with the arguments of the compose file."""
        self.start(name, [sys.executable, "-m", "memory_app", *SERVICES[name]["command"]])

    def start_redis(self) -> None:
        """The shell of the compose file; Valkey stands for Redis."""
        shell, options, script = SERVICES["redis"]["command"]
        own = Path(self.environment("redis")["TMPDIR"])
        for old, new in {
            "/etc/memory/": f"{ROOT}/deploy/redis/",
            "/tmp/users.acl": str(own / "users.acl"),
            "dir /data": f"dir {own}\nbind {HOST}\nport {self.ports['redis']}",
            "exec redis-server": f"exec {valkey.program()}",
        }.items():
            assert old in script, old
            script = script.replace(old, new)
        self.start("redis", [shell, options, self.put_in(script)])

    def is_healthy(self, name: str) -> bool:
        """By the check of the compose file, which must belong to a part that runs."""
        program = self.programs[name]
        assert program.is_alive(), f"{name} ended:\n{program.output()[-3000:]}"
        how, command, *arguments = SERVICES[name]["healthcheck"]["test"]
        assert (how, command) == ("CMD", "memory")
        return self.memory(name, *arguments).returncode == 0

    def stop(self) -> None:
        with ExitStack() as stack:
            for program in self.programs.values():
                stack.callback(program.stop)


@contextmanager
def postgres(host: Host) -> Iterator[PostgresServer]:
    """As the image makes it: one superuser with a password, a database, and the settings of the command."""
    options = SERVICES["postgres"]["command"][2::2]
    server = PostgresServer(
        host.folder / "postgres", host.ports["postgres"], password=host.values["POSTGRES_PASSWORD"]
    )
    try:
        server.start(dict(option.split("=", 1) for option in options))
        server.create_database(SERVICES["postgres"]["environment"]["POSTGRES_DB"])
        yield server
    finally:
        server.stop()


@pytest.fixture
def model() -> Iterator[StubProvider]:
    with StubProvider() as stub:
        yield stub


@pytest.fixture
def host(model: StubProvider) -> Iterator[Host]:
    """Servers and schema are there, and the first key is made, as the head of the compose file says."""
    with open_folder("memory-compose-") as folder:
        host = Host(folder, filled_example(), model.base_url)
        with postgres(host):
            try:
                host.start_redis()
                wait_until(
                    lambda: host.memory("migrate", *SERVICES["migrate"]["command"]).returncode == 0,
                    "migrated",
                )
                yield host
            finally:
                host.stop()


def test_every_part_runs_as_the_file_says_and_a_model_is_asked(host: Host, model: StubProvider) -> None:
    made = host.memory("migrate", "keys", "create", "--tenant", "mine", *RIGHTS, "--json")
    assert made.returncode == 0, made.stderr
    key = json.loads(made.stdout)["key"]

    for name in PARTS:
        host.start_part(name)
    for name in PARTS:
        wait_until(lambda name=name: host.is_healthy(name), f"{name} is healthy")

    port = host.ports["api"]
    rules = "/v1/agents/ada/users/mira/sessions/chat/turns"
    assert extract(port, key, rules)["stage"] == "extracted"
    assert model.requests == [], "rules extract what no agent wants a model for"
    ask_a_model(port, key, "cleo")
    asked = "/v1/agents/cleo/users/mira/sessions/chat/turns"
    assert extract(port, key, asked)["stage"] == "extracted"
    assert model.requests, "the model of model.env was asked"
    doctor = host.memory("migrate", "doctor", "--json")
    checks = {check["name"]: check for check in json.loads(doctor.stdout)["checks"]}
    assert {name: check for name, check in checks.items() if check["state"] == "fail"} == {}
    assert "scripted" in checks["language model"]["found"]
    assert checks["beat"]["found"] == "2 beats"
    assert doctor.returncode == 0

    arguments = [word for program in host.programs.values() for word in program.process.args]  # type: ignore[union-attr]
    secret = [value for name, value in host.values.items() if "PASSWORD" in name]
    assert not any(value in word for value in secret for word in arguments), "no secret is an argument"
    outputs = "".join(program.output() for program in host.programs.values())
    assert not any(value in outputs for value in (*secret, "key-of-the-model"))
    assert "Traceback" not in outputs


def extract(port: int, key: str, path: str) -> dict[str, Any]:
    """The ticket of a turn that was recorded, once it is through."""
    accepted = call(port, path, key, {"role": "user", "content": "I moved to Lisbon and I have a dog."})
    ticket = accepted["tickets"][0]["id"]

    def state() -> dict[str, Any]:
        answer: dict[str, Any] = call(port, f"/v1/turns/{ticket}?wait_seconds=5", key)
        return answer

    wait_until(lambda: state()["stage"] in ("extracted", "failed"), "the turn is through")
    return state()


def ask_a_model(port: int, key: str, agent: str) -> None:
    """Let a language model extract for this agent."""
    request = urllib.request.Request(
        f"http://{HOST}:{port}/v1/agents/{agent}",
        json.dumps({"policy": {"extraction": "llm"}}).encode(),
        {"Authorization": f"Bearer {key}", "Content-Type": "application/json"},
        method="PUT",
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        assert answer.status == 200
