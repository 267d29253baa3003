"""The process that the parts of a stack are forked from. It has loaded once what all of them need, so they share it.

Each part would otherwise import the same packages and read the same weights for itself: seconds of processor time at
the start, and a hundred megabytes each for as long as it runs. Python's own ``forkserver`` forks functions of the
program that uses it; here whole commands are run as ``python -m`` would.

`memory_app.local.stack.launch` starts it and asks it over a socket, one request after the other.
"""

from __future__ import annotations

import contextlib
import os
import runpy
import select
import signal
import socket
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path

from memory_app.local.stack.messages import receive, send

APPLICATION, SHARED = "workers.app", "workers.shared_data"

MODULES = (
    "celery.apps.beat",
    "celery.apps.worker",
    "celery.bin.celery",
    "celery.concurrency.prefork",
    "celery.concurrency.thread",
    "celery.worker.consumer",
    "memory_app.main.part_commands",
    "memory_app.main.http",
)
"""What most parts import; with them comes nearly all that is ours. The application of Celery is loaded later: it reads
the address of the broker, which is not known before the servers run."""


@dataclass(frozen=True, slots=True)
class Job:
    """A command to go on as: a module and its arguments, with the environment that it sees."""

    name: str
    module: str
    arguments: tuple[str, ...]
    environment: dict[str, str] = field(repr=False)


def serve(requests: socket.socket) -> Job | None:
    """Fork a process for each request until nobody can ask any more. None in this process at the end; in each of the
    forked ones its job."""
    children: dict[int, socket.socket] = {}
    wake, woken = _children_wake()
    while True:
        ready, _, _ = select.select([requests, wake], [], [])
        if wake in ready:
            wake.recv(4096)
            _reap(children)
        if requests not in ready:
            continue
        received = receive(requests, descriptors=2)
        if received is None:
            return None
        message, descriptors = received
        if "prepare" in message:
            _prepare(message["prepare"])
            continue
        output, lock = descriptors
        report, end = socket.socketpair()
        try:
            pid = os.fork()
        except OSError as error:
            # The parts that live must not lose what starts the next one.
            send(requests, {"refused": f"no process can be forked: {error.strerror}"}, [])
            for descriptor in (output, lock, report.detach(), end.detach()):
                os.close(descriptor)
            continue
        if pid == 0:
            for own in (requests, wake, woken, report, end, *children.values()):
                own.close()
            return _become(Job(**message), output, lock)
        children[pid] = report
        handle = os.pidfd_open(pid)
        send(requests, {"pid": pid}, [handle, end.fileno()])
        end.close()
        for descriptor in (handle, output, lock):
            os.close(descriptor)


def _children_wake() -> tuple[socket.socket, socket.socket]:
    """A socket that can be read when a child has ended, and the one that it is written to."""
    wake, woken = socket.socketpair()
    wake.setblocking(False)
    woken.setblocking(False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(woken.fileno(), warn_on_full_buffer=False)
    return wake, woken


def _reap(children: dict[int, socket.socket]) -> None:
    """Say of each child that has ended with which status; negative is the signal that ended it."""
    for pid in list(children):
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            with children.pop(pid) as report, contextlib.suppress(OSError):
                report.sendall(str(os.waitstatus_to_exitcode(status)).encode())


def _become(job: Job, output: int, lock: int) -> Job:
    """Make this forked process what a started one is. It keeps the descriptor of the lock."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.close(output)
    os.set_inheritable(lock, True)
    os.environ.clear()
    os.environ.update(job.environment)
    # What `top` and `ps -o comm` show; the command line stays that of the process which was started.
    with contextlib.suppress(OSError):
        Path("/proc/self/comm").write_text(f"memory {job.name}")
    return job


def _prepare(environment: dict[str, str]) -> None:
    """Load the application of Celery with its tasks, as it is in this environment."""
    os.environ.update(environment)
    with _left_to_parts():
        app = import_module(APPLICATION).app
        app.loader.import_default_modules()
        app.finalize()
        import_module(SHARED).settle()


def _load(modules: Iterable[str]) -> None:
    """Load what the parts share."""
    for module in modules:
        with _left_to_parts():
            import_module(module)
    with _left_to_parts():
        shared = import_module(SHARED)
        shared.load_weights()
        shared.load_languages()
        shared.settle()


def _left_to_parts() -> contextlib.AbstractContextManager[None]:
    """What cannot be loaded is left to the part that needs it, which says why. Some modules end their process."""
    return contextlib.suppress(Exception, SystemExit)


def main() -> None:
    """Serve the socket whose descriptor the command line names; further arguments are modules to load."""
    requests = socket.socket(fileno=int(sys.argv[1]))
    requests.set_inheritable(False)
    _load((*MODULES, *sys.argv[2:]))
    job = serve(requests)
    if job is not None:
        sys.argv = [job.module, *job.arguments]
        # Here and not inside of the loop: the process ends as any other that Python started.
        runpy.run_module(job.module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
