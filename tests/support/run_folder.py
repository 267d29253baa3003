"""The folder of a test run: what the run makes lies in it, and what it starts ends with it, however the run ends.

Each process of a run (with ``-n 2`` the one that was called and two others) has a folder of its own, in which all
temporary files of the process and its children go. The process holds a lock in it. A watchdog beside it, in a session
of its own, gets the lock as soon as the process is gone: it kills what belongs to the folder and deletes the folder.
Servers are daemons, so nobody else would end them after a Ctrl-C, a SIGTERM or a SIGKILL. Should the watchdog be
killed, too, the next run cleans up.

Run as a program, this module is the watchdog: ``python tests/support/run_folder.py FOLDER``.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

PREFIX = "memory-tests-"
LOCK = "run.lock"
RUNS = "TEST_RUNS"
"""The folders of the runs that a process belongs to, in its environment: of its own, and of one that started that."""

IN_MEMORY = Path("/dev/shm")
ROOM_BYTES = 8 << 30
"""What must be free of memory for a run to keep its files there; it needs less than 1 GB."""

POLL_SECONDS = 0.05
POLITE_SECONDS = 5.0
END_SECONDS = 60.0
"""How long what was killed may take to be gone."""


@dataclass(frozen=True, slots=True)
class RunFolder:
    """The folder of this process, as long as it lives."""

    path: Path
    lock: int
    watchdog: subprocess.Popen[bytes]
    usual: str

    def close(self) -> None:
        """End and delete everything now, and put temporary files where they usually go."""
        tempfile.tempdir = os.environ["TMPDIR"] = self.usual
        os.close(self.lock)
        self.watchdog.wait()


def open_run_folder() -> RunFolder:
    """Make a folder for this process and have it watched; folders whose process is gone are cleaned up before."""
    usual = Path(tempfile.gettempdir())
    parent = IN_MEMORY if "TMPDIR" not in os.environ and _has_room(IN_MEMORY) else usual
    for path in parent.glob(f"{PREFIX}*"):
        clean_if_over(path)
    path = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
    path.chmod(0o711)  # so that root's Postgres, which is another user's, may pass
    lock = os.open(path / LOCK, os.O_RDWR | os.O_CREAT)
    fcntl.flock(lock, fcntl.LOCK_EX)
    watchdog = subprocess.Popen(
        [sys.executable, __file__, str(path)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        start_new_session=True,
    )
    # pytest keeps its own folders of the last runs where one looks for them after a failure.
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(usual))
    tempfile.tempdir = os.environ["TMPDIR"] = str(path)
    os.environ[RUNS] = os.pathsep.join([*os.environ.get(RUNS, "").split(os.pathsep), str(path)])
    return RunFolder(path, lock, watchdog, str(usual))


def _has_room(folder: Path) -> bool:
    """Whether the files of a run may be kept in this folder, which is in memory.

    A database per test is thousands of files a minute, made and deleted. ext4 looks through all that were deleted
    lately before it makes one: half of a run's time on a disk.
    """
    if not os.access(folder, os.W_OK | os.X_OK):
        return False
    return min(shutil.disk_usage(folder).free, psutil.virtual_memory().available) >= ROOM_BYTES


def clean_if_over(folder: Path) -> None:
    """Clean up after a run whose process is gone, and whose watchdog is, too."""
    with contextlib.suppress(OSError):  # a run that makes its folder just now, or somebody else's
        lock = os.open(folder / LOCK, os.O_RDWR)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            clean(folder)
        finally:
            os.close(lock)


def clean(folder: Path) -> None:
    """Kill every process that belongs to the folder, and delete the folder with what links in it lead to."""
    began = time.monotonic()
    # Again until there is none: what supervises others starts them again as long as it lives itself.
    while (processes := list(members(folder))) and time.monotonic() < began + END_SECONDS:
        is_polite = time.monotonic() < began + POLITE_SECONDS
        for process in processes:
            with contextlib.suppress(psutil.Error):
                # Postgres ends at once, too, and takes its shared memory with it.
                process.send_signal(
                    signal.SIGQUIT if is_polite and process.name() == "postgres" else signal.SIGKILL
                )
        time.sleep(POLL_SECONDS)
    # Where root's Postgres may not pass, the database files lie outside and a link leads there.
    for link in [path for path in folder.rglob("postgres") if path.is_symlink()]:
        shutil.rmtree(link.resolve(), ignore_errors=True)
    shutil.rmtree(folder, ignore_errors=True)


def members(folder: Path) -> Iterator[psutil.Process]:
    """Processes that work in the folder, or were started by its run; not watchdogs."""
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.pid != os.getpid() and _belongs(process, folder) and __file__ not in process.cmdline():
                yield process


def _belongs(process: psutil.Process, folder: Path) -> bool:
    if process.status() == psutil.STATUS_ZOMBIE:
        return False
    if str(folder) in process.environ().get(RUNS, "").split(os.pathsep):
        return True
    if Path(process.cwd()).is_relative_to(folder):
        return True
    # Postgres whose files lie outside.
    return any(argument.startswith(f"unix_socket_directories={folder}/") for argument in process.cmdline())


def watch(folder: Path) -> None:
    """Wait until the process of the folder is gone, then clean up."""
    lock = os.open(folder / LOCK, os.O_RDWR)
    fcntl.flock(lock, fcntl.LOCK_EX)
    clean(folder)


if __name__ == "__main__":
    watch(Path(sys.argv[1]))
