"""Use what runs in a data folder together with other processes: the last one to go ends it.

A user of the folder shares a lock on a file, which the kernel lets go when the process ends, however it ends. The
keeper takes the lock for itself as soon as nobody shares it, and holds it until everything has stopped: who comes
meanwhile waits, and then starts everything anew.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from memory_app.errors import Misconfigured
from memory_app.local import embedded
from memory_app.local.embedded import lifetime, place
from memory_app.local.stack.child import end_orphans
from memory_app.local.stack.folder import Folder, holder, open_folder, read_addresses, rotate

try:
    import fcntl
except ImportError:  # Windows, where `memory_app.local.embedded.is_available` says that no server is started
    fcntl = None  # type: ignore[assignment]

POLL_SECONDS = 0.05
READY_SECONDS = 300.0
"""Longest wait until everything runs: a database that was killed first reads what it had written."""

STOP_SECONDS = 120.0
"""Longest wait of the last user until everything has stopped."""

STARTS = 3
"""Keepers that one user starts, before it says why they end."""

Command = Callable[[Path], tuple[str, ...]]

_ended: list[subprocess.Popen[bytes]] = []
"""Keepers that were started here and run on for others. Nobody waits for their end."""


def lock_of(folder: Path) -> Path:
    return folder / "local.lock"


def ready_of(folder: Path) -> Path:
    return folder / "local.ready"


class KeeperLease:
    """The lock as the keeper sees it."""

    def __init__(self, folder: Path) -> None:
        self.ready = ready_of(folder)
        self._descriptor = _open(lock_of(folder))
        self._is_over = False

    def is_over(self) -> bool:
        """Whether nobody uses the folder any more. Once it was so, nobody can come until this process has ended."""
        if not self._is_over:
            self._is_over = _lock(self._descriptor, fcntl.LOCK_EX)
        return self._is_over


@dataclass(slots=True)
class Use:
    """Use of a folder by this process. ``is_kept``: a keeper runs there, and not a ``memory up``."""

    folder: Folder
    descriptor: int
    keeper: subprocess.Popen[bytes] | None = field(default=None, repr=False)
    is_kept: bool = True

    def end(self) -> None:
        """End the use. The last user waits until everything has stopped; harmless the second time."""
        if self.descriptor < 0:
            return
        os.close(self.descriptor)
        self.descriptor = -1
        if self.is_kept:
            self._wait_until_stopped()
        if self.keeper is not None and self.keeper.poll() is None:
            _ended.append(self.keeper)

    def _wait_until_stopped(self) -> None:
        deadline = time.monotonic() + STOP_SECONDS
        while time.monotonic() < deadline:
            if lifetime.is_free(self.folder.lock) or _is_shared(self.folder.path):
                break
            time.sleep(POLL_SECONDS)
        if not lifetime.is_free(self.folder.lock):
            return
        if self.keeper is not None:
            # It has let go of the folder, and its process ends now.
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.keeper.wait(STOP_SECONDS)
        self._sweep()

    def _sweep(self) -> None:
        """Stop what a keeper left that was killed; nobody else can begin to use the folder meanwhile."""
        descriptor = _open(lock_of(self.folder.path))
        try:
            if _lock(descriptor, fcntl.LOCK_EX):
                end_orphans(self.folder)
                embedded.stop(self.folder.path)
        finally:
            os.close(descriptor)


def use(path: Path, *, command: Command) -> Use:
    """Use the folder, in which a keeper is started by ``command`` if nothing runs there; returns when all is ready.

    Raises `Misconfigured` when it does not start.
    """
    reason = embedded.is_available()
    if reason:
        raise Misconfigured(reason)
    folder = open_folder(path)
    deadline = time.monotonic() + READY_SECONDS
    use = Use(folder, _share(folder.path, deadline))
    try:
        _wait_until_ready(use, command, deadline)
    except BaseException:
        # Also after Ctrl-C: without its user the keeper stops.
        use.end()
        raise
    return use


def _wait_until_ready(use: Use, command: Command, deadline: float) -> None:
    starts = 0
    while not _is_ready(use):
        is_gone = use.keeper is None or use.keeper.poll() is not None
        if is_gone and lifetime.is_free(use.folder.lock):
            if starts == STARTS:
                raise Misconfigured(f"nothing starts in {use.folder.path}: {_last_line(use.folder)}")
            starts += 1
            use.keeper = _start(use.folder, command)
        if time.monotonic() > deadline:
            raise Misconfigured(f"what runs in {use.folder.path} is not ready; see {_log(use.folder)}")
        time.sleep(POLL_SECONDS)


def _is_ready(use: Use) -> bool:
    pid = place.read(ready_of(use.folder.path))
    # A file without its process was left behind by one that was killed.
    if pid and holder(use.folder) == int(pid):
        return True
    if read_addresses(use.folder.path) is None:
        return False
    use.is_kept = False
    return True


def _start(folder: Folder, command: Command) -> subprocess.Popen[bytes]:
    log = _log(folder)
    rotate(log)
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        # In a session of its own: Ctrl-C in a notebook must not end what the next cell uses.
        return subprocess.Popen(
            command(folder.path),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    finally:
        os.close(output)


def _log(folder: Folder) -> Path:
    return folder.logs / "local.log"


def _last_line(folder: Folder) -> str:
    return place.tail(_log(folder)).splitlines()[-1]


def _share(folder: Path, deadline: float) -> int:
    descriptor = _open(lock_of(folder))
    while not _lock(descriptor, fcntl.LOCK_SH):
        if time.monotonic() > deadline:
            os.close(descriptor)
            raise Misconfigured(f"what runs in {folder} does not stop; see {folder / 'logs'}")
        time.sleep(POLL_SECONDS)
    return descriptor


def _is_shared(folder: Path) -> bool:
    """Whether somebody else uses the folder."""
    descriptor = _open(lock_of(folder))
    try:
        # It is neither free nor the keeper's own.
        return not _lock(descriptor, fcntl.LOCK_EX) and _lock(descriptor, fcntl.LOCK_SH)
    finally:
        os.close(descriptor)


def _open(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def _lock(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
