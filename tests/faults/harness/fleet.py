"""Real processes in groups of their own, so that a signal reaches exactly who is meant."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from harness.waiting import wait_until

ROOT = Path(__file__).parents[3]
WORKER = ("-m", "celery", "-A", "workers.app", "worker", "--without-gossip", "--without-mingle")
QUEUES = "ingest,model,maintenance"
BESIDE_MODEL = "ingest,maintenance"
"""What is left for processes where questions to a language model are threads."""

FINDER = """
import signal, threading
from memory_app.log import configure
from memory_app.runtime import build
from memory_app.dispatch import finder
from memory_app.settings import Settings
settings = Settings()
configure(level=settings.log.level, form=settings.log.form)
stop = threading.Event()
signal.signal(signal.SIGTERM, lambda *_: stop.set())
finder.run(build(settings), should_stop=stop.wait)
"""
API = """
from memory_app.main.server import serve
from memory_app.log import configure
from memory_app.settings import Settings
settings = Settings()
configure(level=settings.log.level, form=settings.log.form)
serve(settings)
"""


@dataclass(frozen=True, slots=True)
class Member:
    """One process of the fleet and all it started."""

    name: str
    running: subprocess.Popen[bytes]
    log: Path

    @property
    def pid(self) -> int:
        return self.running.pid

    def said(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")

    def is_alive(self) -> bool:
        return self.running.poll() is None

    def children(self) -> list[psutil.Process]:
        with contextlib.suppress(psutil.NoSuchProcess):
            return psutil.Process(self.pid).children(recursive=True)
        return []

    def has_frozen_child(self) -> bool:
        return any(child.status() == psutil.STATUS_STOPPED for child in self.children())

    def signal_group(self, number: signal.Signals) -> None:
        """To the process and its children at the same moment."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, number)

    def signal_main(self, number: signal.Signals) -> None:
        """To the process alone."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def kill(self) -> None:
        """SIGKILL for the whole group, and wait until it is gone."""
        self.signal_group(signal.SIGKILL)
        self.running.wait()

    def stop(self, *, seconds: float = 40) -> float:
        """SIGTERM for the process; seconds until it ended."""
        self.signal_main(signal.SIGTERM)
        return wait_until(lambda: not self.is_alive(), f"{self.name} ends after SIGTERM", seconds=seconds)


@dataclass(slots=True)
class Fleet:
    """Everything a test started; whatever still runs at its end is killed."""

    environment: Mapping[str, str]
    folder: Path
    members: list[Member] = field(default_factory=list)

    def start(self, name: str, command: Sequence[str], **settings: str) -> Member:
        """Start ``python <command>`` with further environment variables."""
        log = self.folder / f"{name}-{len(self.members)}.log"
        with log.open("wb") as output:
            running = subprocess.Popen(
                [sys.executable, *command],
                cwd=ROOT,
                env={**self.environment, "PYTHONPATH": "tests/faults", **settings},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        member = Member(name, running, log)
        self.members.append(member)
        return member

    def worker(
        self,
        *,
        app: str = "workers.app",
        concurrency: int = 2,
        queues: str = QUEUES,
        time_limit: int | None = None,
        **settings: str,
    ) -> Member:
        """``time_limit``: seconds of a task, instead of those of the app."""
        options = ["-Q", queues, "--concurrency", str(concurrency)]
        if time_limit is not None:
            options += ["--soft-time-limit", str(time_limit), "--time-limit", str(time_limit)]
        return self._celery_worker("worker", app, options, settings)

    def model_worker(self, *, app: str = "workers.app", threads: int = 8, **settings: str) -> Member:
        """Of the queue for language models alone: its tasks are threads of one process."""
        options = ("-Q", "model", "--pool", "threads", "--concurrency", str(threads))
        return self._celery_worker("model-worker", app, options, settings)

    def _celery_worker(
        self, name: str, app: str, options: Sequence[str], settings: Mapping[str, str]
    ) -> Member:
        node = f"worker{len(self.members)}@{os.getpid()}"
        command = [word.replace("workers.app", app) for word in WORKER]
        return self.start(name, (*command, "-n", node, *options), **settings)

    def finder(self, **settings: str) -> Member:
        return self.start("finder", ("-c", FINDER), **settings)

    def beat(self, **settings: str) -> Member:
        schedule = self.folder / f"beat-{len(self.members)}"
        command = ("-m", "celery", "-A", "workers.app", "beat", "--schedule", str(schedule), "--pidfile", "")
        return self.start("beat", command, **settings)

    def api(self, port: int, **settings: str) -> Member:
        """The API on this port of loopback."""
        return self.start("api", ("-c", API), MEMORY_HTTP__PORT=str(port), **settings)

    def kill_all(self) -> None:
        for member in self.members:
            member.signal_group(signal.SIGCONT)
            member.kill()

    def logs(self) -> Iterator[tuple[str, str]]:
        for member in self.members:
            yield member.log.name, member.said()


@contextlib.contextmanager
def kept_running(start: Callable[[], Member]) -> Iterator[list[Member]]:
    """A supervisor: whenever the process has died, another is started. The block gets all there were, latest last."""
    over = threading.Event()
    generations = [start()]

    def watch() -> None:
        while not over.wait(0.05):
            if not generations[-1].is_alive():
                generations.append(start())

    watching = threading.Thread(target=watch, name="supervisor", daemon=True)
    watching.start()
    try:
        yield generations
    finally:
        over.set()
        watching.join()


def is_ready(worker: Member) -> bool:
    """Whether a worker has said that it takes work."""
    return " ready." in worker.said()
