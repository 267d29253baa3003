"""Start a server once and stop it, from any number of processes.

A server inherits the descriptor of a locked file, and so holds that lock for exactly as long as it or a child of it
lives. Whether it runs is never told by a process id, which a killed server leaves behind and a container gives to
another process. Whoever gets the lock may start the server.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from memory_app.errors import Misconfigured
from memory_app.local.embedded import place

try:
    import fcntl
except ImportError:  # Windows, where `memory_app.local.embedded.is_available` says that no server is started
    fcntl = None  # type: ignore[assignment]

IS_SUPPORTED = fcntl is not None
"""Whether servers can be started on this system."""

# A server that was killed first reads what it had written since its last checkpoint.
START_SECONDS = 300.0

STOP_SECONDS = 60.0
POLL_SECONDS = 0.02

# More than one, since another program may take the port between the choice and the start.
LAUNCHES = 3

# More than one, since `is_free` holds the lock for a moment.
CLAIMS = 4

Pause = Callable[[float], object]
"""Waits for so many seconds. What it raises ends the waiting."""


def bring_up(
    lock: Path, *, launch: Callable[[int], None], answers: Callable[[], bool], pause: Pause = time.sleep
) -> bool:
    """True when the server was launched, False when it ran already. The caller holds the start lock.

    ``launch`` gets the descriptor that the server must inherit.
    """
    launches = 0
    log = lock.with_suffix(".log")
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if answers():
            return launches > 0
        with claimed(lock) as descriptor:
            # Without the lock the server lives: it is never launched again, however long it takes to answer.
            if descriptor is not None:
                if launches == LAUNCHES:
                    raise Misconfigured(
                        f"the server of {lock} did not start; the end of {log}:\n{place.tail(log)}"
                    )
                launch(descriptor)
                launches += 1
        pause(POLL_SECONDS)
    raise Misconfigured(
        f"the server of {lock} runs, but has not answered for {START_SECONDS:g} seconds; see {log}"
    )


def bring_down(lock: Path, pid_file: Path, *, signals: tuple[signal.Signals, signal.Signals]) -> None:
    """Stop the server with the first signal, or at last with the second."""
    for number in signals:
        signalled = None
        deadline = time.monotonic() + STOP_SECONDS
        while time.monotonic() < deadline and not is_free(lock):
            # While the lock is held, the id in the file is the server's. One that is just starting writes it later, so
            # the file is read again until then.
            server = _process_id(pid_file)
            if server is not None and server != signalled:
                _signal(server, number)
                signalled = server
            time.sleep(POLL_SECONDS)
    if not is_free(lock):
        raise Misconfigured(f"the server of {lock} does not stop; see {lock.with_suffix('.log')}")


def _process_id(pid_file: Path) -> int | None:
    with contextlib.suppress(ValueError, IndexError):
        return int((place.read(pid_file) or "").split()[0])
    return None


def _signal(server: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(server, number)
        # A stopped process (SIGSTOP) takes no signal before it goes on.
        os.kill(server, signal.SIGCONT)


@contextlib.contextmanager
def locked(path: Path, *, pause: Pause = time.sleep) -> Iterator[None]:
    """Wait for the lock and hold it during the block."""
    # The descriptor is close-on-exec: a server that is started in the block does not inherit it.
    while (descriptor := hold(path)) is None:
        pause(POLL_SECONDS)
    try:
        yield
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def claimed(path: Path) -> Iterator[int | None]:
    """The lock's descriptor, or None while a server holds it. Who inherits the descriptor keeps the lock."""
    descriptor = hold(path)
    try:
        yield descriptor
    finally:
        if descriptor is not None:
            os.close(descriptor)


def hold(path: Path) -> int | None:
    """The descriptor of the lock, held until it is closed; None while somebody else holds it."""
    descriptor = _open(path)
    for _ in range(CLAIMS):
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return descriptor
        time.sleep(POLL_SECONDS / CLAIMS)
    os.close(descriptor)
    return None


def is_free(lock: Path) -> bool:
    """Whether no server lives that was started with ``lock``."""
    if not lock.exists():
        return True
    descriptor = _open(lock)
    try:
        # Shared, so that two who look at the same moment do not take each other for the server.
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True


def _open(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except PermissionError as error:
        raise Misconfigured(
            f"{path} may not be opened: run this as the user who started the servers"
        ) from error
