"""A test run that is cut short, by whatever means, leaves no process and no folder behind."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
from endless import ENDLESS
from own_servers import wait_until
from run_folder import PREFIX

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

PATIENCE_SECONDS = 300.0
ENDLESS_TESTS = Path(__file__).with_name("endless.py")


@dataclass(slots=True)
class Run:
    """A ``pytest`` of two tests that never end. ``folder`` is where its temporary files go."""

    process: subprocess.Popen[bytes]
    folder: Path
    output: Path
    tests: int

    def pids(self, name: str) -> list[int]:
        """The processes of that name of each test that runs."""
        lines = [
            line.split() for path in self.folder.glob("*.pids") for line in path.read_text().splitlines()
        ]
        return [int(pid) for what, pid in lines if what == name]

    def is_under_way(self) -> bool:
        return len(self.pids("pytest")) == self.tests or self.process.poll() is not None


@contextlib.contextmanager
def run(folder: Path, *options: str, tests: int) -> Iterator[Run]:
    """A run that has come so far that ``tests`` tests are waiting; killed at the end, should it still be there."""
    output = folder / "output"
    folder.chmod(0o711)
    options = ("-p", "no:randomly", "-p", "no:cacheprovider", *options)
    with output.open("wb") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", "pytest", *options, str(ENDLESS_TESTS)],
            env={**os.environ, ENDLESS: str(folder), "TMPDIR": str(folder)},
            stdout=file,
            stderr=file,
            start_new_session=True,
            # A shell lets what it starts in the background ignore Ctrl-C, which children inherit.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
    under_way = Run(process, folder, output, tests)
    try:
        wait_until(under_way.is_under_way, "the tests run", seconds=PATIENCE_SECONDS)
        assert process.poll() is None, output.read_text()
        yield under_way
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def living(run: Run, *names: str) -> list[int]:
    return [pid for name in names for pid in run.pids(name) if lives(pid)]


def lives(pid: int) -> bool:
    """False for a process that has ended and that nobody has waited for."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def assert_nothing_is_left(run: Run) -> None:
    everything = ("pytest", "child", "postgres", "valkey")
    assert all(run.pids(name) for name in everything)
    wait_until(
        lambda: not living(run, *everything) and not list(run.folder.glob(f"{PREFIX}*")),
        "all processes have ended and the folder is gone",
        seconds=PATIENCE_SECONDS,
    )


def interrupt(run: Run) -> None:
    """Ctrl-C, as a terminal sends it: to the whole group."""
    os.killpg(run.process.pid, signal.SIGINT)


def terminate(run: Run) -> None:
    run.process.terminate()


def kill(run: Run) -> None:
    run.process.kill()


@pytest.mark.parametrize(("end", "workers"), [(terminate, 0), (interrupt, 2), (kill, 2)])
def test_a_run_that_is_ended_leaves_nothing(tmp_path: Path, end: Callable[[Run], None], workers: int) -> None:
    with run(tmp_path, "-n", str(workers), tests=workers or 1) as under_way:
        end(under_way)
        under_way.process.wait(PATIENCE_SECONDS)
        assert_nothing_is_left(under_way)
        assert "INTERNALERROR" not in under_way.output.read_text()


def test_a_run_whose_worker_is_killed_says_so_and_leaves_nothing(tmp_path: Path) -> None:
    with run(tmp_path, "-n", "2", "--dist", "loadfile", "--max-worker-restart", "0", tests=1) as under_way:
        (worker,) = under_way.pids("pytest")
        os.kill(worker, signal.SIGKILL)
        assert under_way.process.wait(PATIENCE_SECONDS) != 0
        assert_nothing_is_left(under_way)
        output = under_way.output.read_text()
        assert "crashed" in output
        assert "INTERNALERROR" not in output


def test_the_next_run_cleans_up_after_a_killed_run_and_killed_watchdog(tmp_path: Path) -> None:
    with run(tmp_path, tests=1) as under_way:
        for process in psutil.Process(under_way.process.pid).children():
            if any("run_folder" in argument for argument in process.cmdline()):
                process.kill()
        kill(under_way)
        under_way.process.wait(PATIENCE_SECONDS)
        assert len(living(under_way, "child", "postgres", "valkey")) == 3

        subprocess.run(
            [
                sys.executable,
                "-m",
                "pytest",
                "--collect-only",
                "-q",
                str(ENDLESS_TESTS),
            ],
            env={**os.environ, "TMPDIR": str(tmp_path)},
            check=True,
            capture_output=True,
        )

        assert_nothing_is_left(under_way)
