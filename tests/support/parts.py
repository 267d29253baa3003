"""The parts of the product as processes of their own, started as a person or a supervisor starts them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from own_servers import wait_until

STOP_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Process:
    """``memory <command>`` in a session of its own."""

    name: str
    running: subprocess.Popen[bytes]
    log: Path

    def output(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")

    def is_alive(self) -> bool:
        return self.running.poll() is None

    def wait_for(self, text: str) -> None:
        """Until it has written this; fails if it ended before."""

        def is_written() -> bool:
            assert self.is_alive(), f"{self.name} ended:\n{self.output()}"
            return text in self.output()

        wait_until(is_written, f"{self.name} writes {text!r}; it wrote:\n{self.output()[-3000:]}")

    def stop(self) -> None:
        """SIGTERM, and SIGKILL for all of it in the end."""
        self.running.terminate()
        try:
            self.running.wait(STOP_SECONDS)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(self.running.pid, signal.SIGKILL)
            self.running.wait()


@contextmanager
def started(name: str, *arguments: str, environment: Mapping[str, str], folder: Path) -> Iterator[Process]:
    """Run ``memory <arguments>`` while the block runs."""
    log = folder / f"{name}.log"
    with log.open("wb") as output:
        running = subprocess.Popen(
            [sys.executable, "-m", "memory_app", *arguments],
            cwd=folder,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    process = Process(name, running, log)
    try:
        yield process
    finally:
        process.stop()


def run(
    *arguments: str, environment: Mapping[str, str], seconds: float = 120
) -> subprocess.CompletedProcess[str]:
    """``memory <arguments>`` to its end."""
    return subprocess.run(
        [sys.executable, "-m", "memory_app", *arguments],
        env=dict(environment),
        capture_output=True,
        text=True,
        check=False,
        timeout=seconds,
    )


def call(port: int, path: str, key: str, body: object | None = None) -> Any:
    """JSON of an answer of the API; GET, or POST with a body. Raises HTTPError."""
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}{path}",
        None if body is None else json.dumps(body).encode(),
        {"Authorization": f"Bearer {key}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)
