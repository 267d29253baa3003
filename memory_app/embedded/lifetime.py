"""How a server is started once and stopped, whoever asks, from however many processes.

The one idea: a server inherits the descriptor of a locked file, and so holds that lock for exactly as long as
it or a child of it lives. "Does it run?" is never a question about a process id, which a killed server leaves
behind and a container gives to somebody else. Whoever gets the lock may start the server.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from memory_app.embedded import place
from memory_app.errors import Misconfigured

START_SECONDS = 120.0
STOP_SECONDS = 60.0
POLL_SECONDS = 0.02
LAUNCHES = 3
"""More than one, as somebody else may take the port between the choice and the start."""


def bring_up(lock: Path, *, launch: Callable[[int], None], answers: Callable[[], bool]) -> bool:
    """True when the server was launched, False when it ran already. The caller holds the start lock.

    ``launch`` gets the descriptor that the server must inherit.
    """
    launches = 0
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if answers():
            return launches > 0
        with claimed(lock) as descriptor:
            if descriptor is not None:
                if launches == LAUNCHES:
                    break
                launch(descriptor)
                launches += 1
        time.sleep(POLL_SECONDS)
    log = lock.with_suffix(".log")
    raise Misconfigured(f"the server of {lock} did not start; the end of {log}:\n{place.tail(log)}")


def bring_down(lock: Path, pid_file: Path, *, signals: tuple[signal.Signals, signal.Signals]) -> None:
    """Ask with the first signal, insist with the second. While the lock is held, the id is the server's."""
    for number in signals:
        if is_free(lock):
            return
        with contextlib.suppress(FileNotFoundError, ProcessLookupError, ValueError, IndexError):
            os.kill(int(pid_file.read_text().split()[0]), number)
        deadline = time.monotonic() + STOP_SECONDS
        while time.monotonic() < deadline and not is_free(lock):
            time.sleep(POLL_SECONDS)
    if not is_free(lock):
        raise Misconfigured(f"the server of {lock} does not stop; see {lock.with_suffix('.log')}")


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Wait for the lock and hold it; nothing that is started meanwhile inherits it."""
    descriptor = _open(path)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def claimed(path: Path) -> Iterator[int | None]:
    """The lock's descriptor, or None while a server holds it. Who inherits the descriptor keeps the lock."""
    descriptor = _open(path)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        held = False
    except BlockingIOError:
        held = True
    try:
        yield None if held else descriptor
    finally:
        os.close(descriptor)


def is_free(lock: Path) -> bool:
    """Whether no server lives that was started with ``lock``."""
    if not lock.exists():
        return True
    with claimed(lock) as descriptor:
        return descriptor is not None


def _open(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
