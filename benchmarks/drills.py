"""Drills: provoke a fault on embedded servers, and show the alert that fires, after how long, and what to do.

``python -m benchmarks.drills`` lists the drills, ``python -m benchmarks.drills worker-killed model-away`` does some,
``all`` does all of them one after the other. Each starts servers, parts and a Prometheus of its own with the alerts of
``deploy/prometheus`` and ends them afterwards. It needs the program ``prometheus`` (Debian's package) and takes one to
three minutes; ``database-full`` needs the right to mount a small disk.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread
from typing import Any

import psycopg
from redis import Redis

from memory_app.local import embedded
from memory_app.local.embedded import Servers
from memory_app.tenancy.rows.keys import RIGHTS

ROOT = Path(__file__).parents[1]
POLL_SECONDS = 0.2

HELD_SECONDS = 12
"""Longer than an erasure may take by its alert."""

START_SECONDS = 300.0
FIRE_SECONDS = 180.0
SCRAPE_SECONDS = 2
SCOPE = "/v1/agents/ada/users/mira"

CLOCK_AHEAD = (
    "import time as t; r = t.time; t.time = lambda: r() + 90; from memory_app.main.cli import main; main()"
)
"""The command line on a machine whose clock is 90 s ahead."""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_until(condition: Callable[[], object], what: str, seconds: float = START_SECONDS) -> float:
    """Seconds until ``condition()`` was true; ends the drill where it is not in time."""
    began = time.monotonic()
    while not condition():
        if time.monotonic() - began > seconds:
            raise SystemExit(f"{what}: not within {seconds:.0f} s")
        time.sleep(POLL_SECONDS)
    return time.monotonic() - began


@dataclass
class Stack:
    """Servers, one process of each part, and a Prometheus that asks the API every two seconds."""

    folder: Path
    servers: Servers
    environment: dict[str, str]
    port: int
    prometheus_port: int = 0
    key: str = ""
    parts: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def start(self, name: str, *arguments: str, program: tuple[str, ...] = ("-m", "memory_app")) -> None:
        with (self.folder / f"{name}.log").open("ab") as log:
            self.parts[name] = subprocess.Popen(
                [sys.executable, *program, *arguments],
                cwd=ROOT,
                env=self.environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def signal(self, name: str, number: signal.Signals) -> None:
        """To the part and its children."""
        os.killpg(self.parts[name].pid, number)

    def call(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                text = answer.read()
                return answer.status, json.loads(text) if text[:1] in (b"{", b"[") else text
        except urllib.error.HTTPError as error:
            return error.code, None
        except OSError:
            return 0, None

    def say(self, content: str, *, user: str = "mira") -> int:
        """Record a turn; the status, which is 202 or 503."""
        path = f"/v1/agents/ada/users/{user}/sessions/chat/turns"
        status, _ = self.call("POST", path, {"role": "user", "content": content})
        if status not in (202, 503):
            raise SystemExit(f"a turn was not recorded: {status}")
        return status

    def firing(self) -> set[tuple[str, str]]:
        """Alerts that fire, each with the part, kind, queue, lock, reason or provider that it names."""
        address = f"http://127.0.0.1:{self.prometheus_port}/api/v1/alerts"
        try:
            with urllib.request.urlopen(address, timeout=10) as answer:
                alerts = json.load(answer)["data"]["alerts"]
        except OSError:
            return set()
        return {(a["labels"]["alertname"], _subject(a["labels"])) for a in alerts if a["state"] == "firing"}

    def is_well(self) -> bool:
        status, body = self.call("GET", "/health/ready")
        return status == 200 and all(part["reason"] is None for part in body["parts"].values())


def _subject(labels: Mapping[str, str]) -> str:
    names = ("part", "kind", "queue", "lock", "reason", "provider", "of", "code")
    return next((labels[name] for name in names if name in labels), "")


@contextmanager
def stack(folder: Path, *, port: int, **settings: str) -> Iterator[Stack]:
    """Everything at work and well, with an API key that may do everything."""
    with ExitStack() as stack_of:
        # On a disk of its own: a Prometheus that finds no room evaluates nothing.
        watch_folder = stack_of.enter_context(tempfile.TemporaryDirectory(prefix="memory-drill-watch-"))
        servers = embedded.start(folder / "servers", durable=False)
        stack_of.callback(embedded.stop, folder / "servers")
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("MEMORY_")},
            "MEMORY_DATABASE__URL": servers.app_url,
            "MEMORY_DATABASE__OWNER_URL": servers.owner_url,
            "MEMORY_REDIS__URL": servers.redis_url,
            "MEMORY_EMBEDDING__PROVIDER": "hash",
            "MEMORY_HTTP__PORT": str(port),
            "MEMORY_LIFE_FOLDER": str(folder / "life"),
            "MEMORY_DATA_FOLDER": str(folder / "data"),
            "MEMORY_LOG__FORM": "json",
            "PYTHONPATH": str(ROOT),
            **settings,
        }
        (folder / "data").mkdir()
        stage = Stack(folder, servers, environment, port)
        stack_of.callback(_end, stage)
        memory = [sys.executable, "-m", "memory_app"]
        subprocess.run([*memory, "migrate"], cwd=ROOT, env=environment, check=True, capture_output=True)
        rights = [word for right in RIGHTS for word in ("--right", right)]
        made = subprocess.run(
            [*memory, "keys", "create", "--tenant", "drill", *rights, "--json"],
            cwd=ROOT,
            env=environment,
            check=True,
            capture_output=True,
        )
        stage.key = json.loads(made.stdout)["key"]
        for queue in ("ingest", "model", "maintenance"):
            stage.start(f"worker-{queue}", "worker", "--queue", queue, "--concurrency", "1")
        stage.start("finder", "finder")
        stage.start("beat", "beat", "--schedule", str(folder / "beat"))
        stage.start("api", "serve")
        _watch(stage, Path(watch_folder))
        wait_until(stage.is_well, "every part is heard")
        yield stage


def _watch(stage: Stack, folder: Path) -> None:
    config = folder / "prometheus.yml"
    config.write_text(
        f"global: {{scrape_interval: {SCRAPE_SECONDS}s, evaluation_interval: {SCRAPE_SECONDS}s, scrape_timeout: 2s}}\n"
        f"rule_files: [{ROOT}/deploy/prometheus/alerts.yml]\n"
        "scrape_configs:\n"
        "  - job_name: memory\n"
        f"    static_configs: [{{targets: ['127.0.0.1:{stage.port}']}}]\n",
        encoding="utf-8",
    )
    stage.prometheus_port = free_port()
    with (folder / "prometheus.log").open("ab") as log:
        stage.parts["prometheus"] = subprocess.Popen(
            [
                "prometheus",
                f"--config.file={config}",
                f"--storage.tsdb.path={folder}/data",
                f"--web.listen-address=127.0.0.1:{stage.prometheus_port}",
            ],
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def _end(stage: Stack) -> None:
    for number in (signal.SIGCONT, signal.SIGKILL):
        for name, part in stage.parts.items():
            if part.poll() is None:
                stage.signal(name, number)
    for part in stage.parts.values():
        part.wait()


# --- the drills ---------------------------------------------------------------------------------------------


def kill_worker(stage: Stack) -> None:
    stage.signal("worker-ingest", signal.SIGKILL)


def freeze_worker(stage: Stack) -> None:
    stage.signal("worker-maintenance", signal.SIGSTOP)


def kill_beat(stage: Stack) -> None:
    stage.signal("beat", signal.SIGKILL)


def fill_queue(stage: Stack) -> None:
    with Redis.from_url(stage.servers.redis_url) as redis:
        for _ in range(50):
            redis.lpush("memory:ingest", b"null", b"\x80\x04garbage", b'{"body": 1}')


def ask_model(stage: Stack) -> None:
    """Have each turn of the agent extracted by the model."""
    policy = {"extraction": "llm", "after_turns": 1}
    status, _ = stage.call("PUT", "/v1/agents/ada", {"policy": policy})
    if status != 200:
        raise SystemExit(f"the agent's policy was not set: {status}")


def lose_model(stage: Stack) -> None:
    """The server that the settings name is not there."""
    ask_model(stage)
    for number in range(6):
        stage.say(f"I moved to town number {number} last week.", user=f"user-{number}")


def fill_disk(stage: Stack) -> None:
    with (stage.folder / "filler").open("wb", buffering=0) as filler:
        try:
            while filler.write(bytes(1 << 20)) == 1 << 20:
                pass
        except OSError:
            pass
    # As producers go on: what finds no room is refused and loses nothing.
    for number in range(400):
        if stage.say(f"{number} " + "My dog Bruno likes the beach very much. " * 200) == 503:
            return


def strand_session(stage: Stack) -> None:
    """A session is due for the model's queue, and its worker was taken away in good order."""
    ask_model(stage)
    stage.signal("worker-model", signal.SIGTERM)
    stage.parts["worker-model"].wait()
    stage.say("I moved to Lisbon last week.")


def set_clock(stage: Stack) -> None:
    stage.signal("api", signal.SIGKILL)
    stage.parts["api"].wait()
    stage.start("api", "serve", program=("-c", CLOCK_AHEAD))


def hold_erasure(stage: Stack) -> None:
    """A person is to be erased while somebody else is busy with their rows."""
    stage.say("I have a dog called Bruno.")
    url = stage.servers.owner_url.replace("postgresql+psycopg", "postgresql")
    erasing = Thread(target=stage.call, args=("DELETE", "/v1/users/mira"))
    with psycopg.connect(url) as connection:
        connection.execute("SELECT FROM scopes FOR UPDATE")
        erasing.start()
        time.sleep(HELD_SECONDS)
        connection.rollback()
    erasing.join()


def hold_sessions(stage: Stack) -> None:
    """Somebody leaves a transaction open, and a person goes on talking."""
    stage.say("I have a dog called Bruno.")
    url = stage.servers.owner_url.replace("postgresql+psycopg", "postgresql")
    with psycopg.connect(url) as connection:
        connection.execute("SELECT FROM sessions FOR UPDATE")
        for _ in range(4):
            stage.say("I moved to Lisbon last week.")
        connection.rollback()


@dataclass(frozen=True)
class Drill:
    """``alert`` and the subject that it names, or ``other`` in its place; ``settings`` are those of the parts."""

    provoke: Callable[[Stack], None]
    alert: str
    subject: str = ""
    other: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)
    disk_megabytes: int | None = None


DRILLS = {
    "worker-killed": Drill(kill_worker, "MemoryPartSilent", "worker-ingest"),
    "part-frozen": Drill(freeze_worker, "MemoryPartSilent", "worker-maintenance"),
    "beat-away": Drill(kill_beat, "MemoryPartSilent", "beat"),
    "queue-garbage": Drill(fill_queue, "MemoryMessagesDropped"),
    "model-away": Drill(
        lose_model,
        "MemoryCircuitOpen",
        "chat",
        settings={"MEMORY_CHAT__BASE_URL": "http://127.0.0.1:9/v1", "MEMORY_CHAT__MODEL": "gone"},
    ),
    # A server that finds no room for its WAL stops.
    "database-full": Drill(
        fill_disk, "MemoryDatabaseFull", "53100", other="MemoryDatabaseAway", disk_megabytes=700
    ),
    "session-stuck": Drill(
        strand_session,
        "MemoryWorkStalled",
        "sessions",
        settings={"MEMORY_CHAT__BASE_URL": "http://127.0.0.1:9/v1", "MEMORY_CHAT__MODEL": "gone"},
    ),
    "clock-off": Drill(set_clock, "MemoryClockOff"),
    "erasure-under-load": Drill(
        hold_erasure, "MemoryErasureSlow", settings={"MEMORY_DATABASE__LOCK_TIMEOUT_MS": "60000"}
    ),
    "lock-held": Drill(
        hold_sessions,
        "MemoryLocksWait",
        "session",
        settings={"MEMORY_DATABASE__LOCK_TIMEOUT_MS": "1000"},
    ),
}


@contextmanager
def _folder(megabytes: int | None) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="memory-drill-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        if megabytes is None:
            yield folder
            return
        mount = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m,mode=755", "tmpfs", name]
        subprocess.run(mount, check=True)
        try:
            yield folder
        finally:
            subprocess.run(["umount", "--lazy", name], check=False)


def remedy(alert: str) -> str:
    """What the runbook says to do."""
    page = (ROOT / "docs/runbook.md").read_text(encoding="utf-8")
    section = page.partition(f"\n## {alert}\n")[2].partition("\n## ")[0]
    found = re.search(r"\*\*Do:\*\* (.+)", section, re.S)
    return " ".join(found[1].split()) if found else ""


def run(name: str) -> None:
    drill = DRILLS[name]
    with (
        _folder(drill.disk_megabytes) as folder,
        stack(folder, port=free_port(), **drill.settings) as stage,
    ):
        wait_until(lambda: not stage.firing(), "no alert fires before the fault")

        def alarm() -> str | None:
            """The alert for this fault, once it fires."""
            for alert, subject in stage.firing():
                if alert == drill.other or (alert == drill.alert and drill.subject in ("", subject)):
                    return alert
            return None

        began = time.monotonic()
        drill.provoke(stage)
        provoked = time.monotonic() - began
        try:
            wait_until(alarm, f"{name}: {drill.alert} fires", FIRE_SECONDS)
        except SystemExit:
            print(f"{name}: firing instead: {sorted(stage.firing())}")
            raise
        alert = alarm() or drill.alert
        print(
            f"{name}: {alert} after {time.monotonic() - began:.1f} s, of which the fault took {provoked:.1f} s"
        )
        print(f"  firing: {', '.join(sorted(' '.join(pair).strip() for pair in stage.firing()))}")
        print(f"  do: {remedy(alert)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("drills", nargs="*", choices=[*DRILLS, "all", []])
    chosen = parser.parse_args().drills
    if not chosen:
        for name, drill in DRILLS.items():
            print(f"{name:<20} {drill.alert} {drill.subject}")
    for name in DRILLS if "all" in chosen else chosen:
        run(name)


if __name__ == "__main__":
    main()
