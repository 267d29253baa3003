"""Start the process of a part: forked from one that has loaded everything where the system can, else by itself."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import structlog

from memory_app.local.stack.messages import receive, send
from memory_app.settings import PREFIX

log = structlog.get_logger(__name__)

FORK_SERVER = "memory_app.local.stack.fork_server"

START_SECONDS = 300.0
"""Longest wait for a fork: the process that forks first loads what the parts share."""

STATUS_SECONDS = 1.0
"""Wait for the status of a process that has ended."""

STATUS_UNKNOWN = 255

END_SECONDS = 10.0


class Process(Protocol):
    """A process that was started. As `subprocess.Popen` has it."""

    pid: int

    @property
    def returncode(self) -> int | None:
        """Its status when `poll` has seen that it ended; negative is the signal that ended it."""

    def poll(self) -> int | None:
        """Its status, or None while it lives."""

    def wait(self, timeout: float | None = None) -> int:
        """Wait until it ends. Raises `subprocess.TimeoutExpired`."""

    def send_signal(self, number: int) -> None:
        """Send it a signal, if it lives."""


class Launcher(Protocol):
    """Starts processes that lead a group of their own."""

    def prepare(self, environment: Mapping[str, str]) -> None:
        """Tell the settings that the parts will have in common, now that the servers run."""

    def launch(
        self, name: str, command: Sequence[str], environment: Mapping[str, str], *, output: int, lock: int
    ) -> Process:
        """Run ``command``, which is Python with ``-m``. It writes to ``output`` and keeps ``lock`` open.

        Raises OSError when it cannot be started now.
        """


@contextmanager
def launching(file: Path, environment: Mapping[str, str], *, modules: Sequence[str]) -> Iterator[Launcher]:
    """What starts the parts of a stack. A process of its own that does so for all writes to ``file``.

    ``modules`` are loaded before, besides those of every part.
    """
    if not _can_fork():
        yield _Starter()
        return
    forker = _Forker(file, dict(environment), tuple(modules))
    try:
        forker.start()
        yield forker
    finally:
        forker.end()


def _can_fork() -> bool:
    # Elsewhere libraries of the system do not stand a fork without a new program after it.
    if sys.platform != "linux":
        return False
    # Some containers forbid it.
    try:
        os.close(os.pidfd_open(os.getpid()))
    except OSError:
        return False
    return True


class _Starter:
    """Starts a new Python for each command."""

    def prepare(self, environment: Mapping[str, str]) -> None:
        """Nothing is shared."""

    def launch(
        self, name: str, command: Sequence[str], environment: Mapping[str, str], *, output: int, lock: int
    ) -> Process:
        return subprocess.Popen(
            command,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            pass_fds=(lock,),
            start_new_session=True,
        )


@dataclass(slots=True)
class _Forker:
    """Asks a `fork_server`, which is started again when it is gone. What it forked lives on without it."""

    file: Path
    environment: dict[str, str] = field(repr=False)
    modules: tuple[str, ...]
    _prepared: dict[str, str] = field(default_factory=dict, repr=False)
    _server: subprocess.Popen[bytes] | None = None
    _requests: socket.socket | None = None

    def start(self) -> None:
        """Start the server, which loads for a while before it answers."""
        ours, theirs = socket.socketpair()
        ours.settimeout(START_SECONDS)
        output = os.open(self.file, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            self._server = subprocess.Popen(
                (sys.executable, "-m", FORK_SERVER, str(theirs.fileno()), *self.modules),
                # A process with several threads cannot be forked safely, and every part takes one for BLAS anyway.
                env={
                    **_without_secrets(self.environment),
                    "PYTHONUNBUFFERED": "1",
                    "OPENBLAS_NUM_THREADS": "1",
                },
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )
        except BaseException:
            ours.close()
            raise
        finally:
            os.close(output)
            theirs.close()
        self._requests = ours
        if self._prepared:
            self.prepare(self._prepared)

    def prepare(self, environment: Mapping[str, str]) -> None:
        self._prepared = dict(environment)
        assert self._requests is not None
        # Where it has ended, the next launch starts another, which is told again.
        with contextlib.suppress(OSError):
            send(self._requests, {"prepare": self._prepared}, [])

    def launch(
        self, name: str, command: Sequence[str], environment: Mapping[str, str], *, output: int, lock: int
    ) -> Process:
        _, option, module, *arguments = command
        assert option == "-m", command
        if self._server is None or self._server.poll() is not None:
            self.end()
            self.start()
        assert self._requests is not None
        message = {
            "name": name,
            "module": module,
            "arguments": arguments,
            "environment": dict(environment),
        }
        try:
            send(self._requests, message, [output, lock])
            answer = receive(self._requests, descriptors=2)
        except OSError:
            # What it would answer later belongs to no request any more.
            self.end()
            raise
        if answer is None:
            self.end()
            raise ConnectionError(f"the process that starts the parts has ended; see {self.file}")
        said, descriptors = answer
        if "refused" in said:
            raise OSError(said["refused"])
        handle, report = descriptors
        return _Forked(said["pid"], handle, socket.socket(fileno=report))

    def end(self) -> None:
        """End the server. Nothing that it forked ends with it."""
        if self._requests is not None:
            self._requests.close()
            self._requests = None
        if self._server is not None:
            try:
                self._server.wait(END_SECONDS)
            except subprocess.TimeoutExpired:
                self._server.kill()
                self._server.wait()
            self._server = None


class _Forked:
    """A forked process, by a handle that no other process ever gets."""

    def __init__(self, pid: int, handle: int, report: socket.socket) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._handle = handle
        self._report = report
        report.settimeout(STATUS_SECONDS)

    def poll(self) -> int | None:
        if self.returncode is None and _is_readable(self._handle, 0):
            self.returncode = self._status()
            os.close(self._handle)
            self._report.close()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        deadline = None if timeout is None else time.monotonic() + timeout
        while (status := self.poll()) is None:
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                assert timeout is not None
                raise subprocess.TimeoutExpired(str(self.pid), timeout)
            _is_readable(self._handle, left)
        return status

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._handle, number)

    def _status(self) -> int:
        """As the server reports it."""
        with contextlib.suppress(OSError, ValueError):
            return int(self._report.recv(16))
        # The server is gone, and nobody else may ask for it.
        return STATUS_UNKNOWN


def _without_secrets(environment: Mapping[str, str]) -> dict[str, str]:
    """Without the settings, but for those that say what to load and for whom: what a process was started with can be
    read in `/proc` of all that are forked from it, and each part has settings of its own."""
    return {
        name: value
        for name, value in environment.items()
        if not name.startswith(PREFIX) or name in ("MEMORY_EMBEDDING__PROVIDER", "MEMORY_DATA_FOLDER")
    }


def _is_readable(descriptor: int, seconds: float | None) -> bool:
    return bool(select.select([descriptor], [], [], seconds)[0])
