"""The sign of life of this process: a file for the check of its own machine, a key in Redis for readiness and doctor.

It must come from the loop that does the work. A thread of its own would go on while the work hangs.
"""

from __future__ import annotations

import contextlib
import os
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from typing import Final

import structlog

from memory_app import queue
from memory_app.errors import MemoryAppError
from memory_app.hot import life as hot_life
from memory_app.hot.client import Hot
from memory_app.hot.faults import HotUnavailable
from memory_app.hot.life import Sign
from memory_app.life import LifeFile

log = structlog.get_logger(__name__)

API: Final = "api"
FINDER: Final = "finder"
BEAT: Final = "beat"


def worker_of(name: str) -> str:
    """The kind of part that takes work from a queue."""
    return f"worker-{name}"


WORKERS: Final = tuple(worker_of(name) for name in queue.QUEUES)
KINDS: Final = (API, *WORKERS, FINDER, BEAT)


@dataclass(frozen=True, slots=True)
class Heard:
    """The processes of one kind of part: those that go on, and those that said something once and stopped."""

    living: tuple[Sign, ...] = ()
    silent: tuple[Sign, ...] = ()

    @property
    def is_silent(self) -> bool:
        """A process was there, did not end in order, and gives no sign of life."""
        return bool(self.silent) and not self.living

    @property
    def is_absent(self) -> bool:
        """No process is there, or all ended in order."""
        return not self.silent and not self.living

    @property
    def trouble(self) -> str | None:
        """What is wrong, in a few words."""
        if self.is_silent:
            return f"silent for {self.silent[0].age_seconds:.0f} s"
        return "none has been heard" if self.is_absent else None


def listen(hot: Hot) -> Mapping[str, Heard]:
    """Read the signs of life of every kind of part. Raises `HotUnavailable`."""
    return {
        kind: Heard(
            living=tuple(sign for sign in signs if not sign.is_silent),
            silent=tuple(sign for sign in signs if sign.is_silent),
        )
        for kind, signs in hot_life.read(hot, KINDS).items()
    }


class Life:
    """Says that this process lives, as one or several kinds of part. Never raises; not safe between threads."""

    def __init__(self, hot: Hot, kinds: Sequence[str], folder: Path | None) -> None:
        self._hot = hot
        self.kinds = tuple(kinds)
        self._instance = f"{socket.gethostname()}:{os.getpid()}"
        self._files = _files(self.kinds, folder)
        # In the past, so that the first note is sent at once.
        self._noted_at = -hot_life.EVERY_SECONDS

    def note(self, *, tasks: int = 0) -> None:
        """Note that the loop goes on with ``tasks`` in hand. Call it at every round: few of the notes go to Redis."""
        self.touch()
        now = time.monotonic()
        # Half of it: a call that comes a moment too early must not make the sign a whole period late.
        if now - self._noted_at < hot_life.EVERY_SECONDS / 2:
            return
        # Before the call: with Redis away, its time-outs must not slow down every round of the loop.
        self._noted_at = now
        try:
            hot_life.note(self._hot, self.kinds, self._instance, tasks=tasks)
        except HotUnavailable as error:
            log.debug("life_not_noted", error=error.kind)

    def touch(self) -> None:
        """Note it on this machine alone."""
        # An error of the disk is no reason to stop working; the check of the machine will show it.
        with contextlib.suppress(OSError):
            for file in self._files:
                file.touch()

    def leave(self) -> None:
        """Note that this process takes no more work."""
        try:
            hot_life.leave(self._hot, self.kinds, self._instance)
        except HotUnavailable as error:
            log.debug("life_not_left", error=error.kind)

    def end(self) -> None:
        """Note that the process ends in order."""
        self.leave()
        for file in self._files:
            file.remove()
        # So that a late touch does not bring a file back.
        self._files = ()


class Waiting:
    """Touches a file of life while the loop stands still for a good reason, such as a broker that is away."""

    def __init__(self, touch: Callable[[], None]) -> None:
        self._touch = touch
        self._over = Event()
        # A daemon: it must not keep a process alive that ends for another reason.
        self._thread = Thread(target=self._go_on, name="waiting", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Returns when the thread has ended: a file that is closed next must not be touched any more."""
        self._over.set()
        self._thread.join()

    def _go_on(self) -> None:
        while not self._over.is_set():
            self._touch()
            self._over.wait(hot_life.EVERY_SECONDS)


def _files(kinds: Sequence[str], folder: Path | None) -> tuple[LifeFile, ...]:
    """Open the files of life; none where they cannot be written, so that the part runs without its check."""
    try:
        return tuple(LifeFile(kind, folder) for kind in kinds)
    except (OSError, MemoryAppError) as error:
        log.warning("life_file_not_written", error=str(error))
        return ()
