"""One part as a child process: started in a group of its own, started again when it dies, stopped politely.

A child holds the lock of its part for as long as it or a child of its own lives, so that a part that outlived a killed
supervisor is found and ended, whatever has become of its process id.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import structlog

from memory_app.errors import Misconfigured
from memory_app.local.embedded import lifetime, place
from memory_app.local.stack.folder import Folder, rotate
from memory_app.local.stack.launch import Launcher, Process

log = structlog.get_logger(__name__)

POLL_SECONDS = 0.05
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.5, 30.0
# A child that lived this long died of something new, so the back-off begins anew.
SETTLED_SECONDS = 60.0
KILL_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Part:
    """What is run. ``stop_signals`` are sent in order, each with so many seconds to end; then the group is killed."""

    name: str
    command: tuple[str, ...]
    environment: Mapping[str, str] = field(repr=False)
    is_ready: Callable[[], bool]
    stop_signals: tuple[tuple[signal.Signals, float], ...] = ((signal.SIGTERM, 10.0),)


class Child:
    """A part at work. Not safe between threads: one loop tends all children."""

    def __init__(self, part: Part, folder: Folder, launcher: Launcher) -> None:
        self.part = part
        self._launcher = launcher
        self.log = folder.logs / f"{part.name}.log"
        self.restarts = 0
        self._lock = folder.locks / f"{part.name}.lock"
        self._pid = folder.locks / f"{part.name}.pid"
        self._process: Process | None = None
        self._started_at = 0.0
        self._start_at = 0.0
        self._pause = FIRST_PAUSE_SECONDS

    def start(self) -> None:
        """Launch it."""
        # Of an earlier start: a child of a part may outlive it, and would take the port or the tasks.
        end_orphan(self._lock, self._pid)
        with lifetime.claimed(self._lock) as descriptor:
            if descriptor is None:
                raise Misconfigured(f"{self.part.name} of an earlier start does not end; see {self.log}")
            self._process = self._launch(descriptor)
        self._started_at = time.monotonic()
        place.write(self._pid, str(self._process.pid))

    def is_alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def tend(self) -> None:
        """Start it again if its process is gone, after a pause that doubles each time. Raises as `start`."""
        if self.is_alive():
            return
        now = time.monotonic()
        if self._process is not None:
            if now - self._started_at > SETTLED_SECONDS:
                self._pause = FIRST_PAUSE_SECONDS
            log.warning("part_died", part=self.part.name, status=self._process.returncode, wait=self._pause)
            self._process = None
            self._postpone(now)
        elif now >= self._start_at:
            self.restarts += 1
            # Before the start, which may fail: then the next try is after the next pause.
            self._postpone(now)
            self.start()

    def stop(self) -> None:
        """Stop it with its signals, and kill what remains of its group."""
        process, self._process = self._process, None
        if process is None:
            return
        for number, seconds in self.part.stop_signals:
            if process.poll() is None:
                process.send_signal(number)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(seconds)
        _kill_group(self._lock, process.pid)
        process.wait()

    def _postpone(self, now: float) -> None:
        self._start_at = now + self._pause
        self._pause = min(self._pause * 2, LONGEST_PAUSE_SECONDS)

    def _launch(self, lock: int) -> Process:
        rotate(self.log)
        output = os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            return self._launcher.launch(
                self.part.name, self.part.command, self.part.environment, output=output, lock=lock
            )
        finally:
            os.close(output)


def end_orphans(folder: Folder) -> None:
    """End every part that outlived its supervisor, so that ports and queues are free again."""
    for lock in folder.locks.glob("*.lock"):
        end_orphan(lock, lock.with_suffix(".pid"))


def end_orphan(lock: Path, pid_file: Path) -> None:
    """Kill the group that still holds the lock."""
    with contextlib.suppress(ValueError):
        _kill_group(lock, int(place.read(pid_file) or ""))


def _kill_group(lock: Path, group: int) -> None:
    # While the lock is held, no other group can have this number.
    deadline = time.monotonic() + KILL_SECONDS
    while not lifetime.is_free(lock) and time.monotonic() < deadline:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(group, signal.SIGKILL)
        time.sleep(POLL_SECONDS)
