"""`MemoryApp.local`: a program needs no second terminal, and leaves nothing running however it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from up_stage import PATIENCE_SECONDS, assert_nothing_runs, data_folder, part_pids, wait_until

from memory_app import MemoryApp, Scope
from memory_app.local import embedded
from memory_app.local.stack.folder import Folder, holder

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

CHAT = Scope("ada", "mira", "chat")

# Waits for a line before it ends, and says when it is ready.
PROGRAM = """
import sys
from memory_app import MemoryApp, Scope

memory = MemoryApp.local(sys.argv[1])
print(memory.record(Scope("ada", "mira", "chat"), "I moved to Lisbon.").seq, flush=True)
sys.stdin.readline()
memory.close()
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    with data_folder() as folder:
        yield folder


@contextmanager
def program(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """A program that uses the folder, when it is ready to."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MEMORY_")}
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment | {"MEMORY_EMBEDDING__PROVIDER": "hash"},
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline().strip().isdigit()
        yield process
    finally:
        process.kill()
        process.communicate(timeout=PATIENCE_SECONDS)


def nothing_runs(folder: Path) -> bool:
    is_stopped = embedded.gone(folder) == ("PostgreSQL", "Valkey")
    return is_stopped and holder(Folder(folder.resolve())) is None


def test_a_block_starts_what_is_needed_and_stops_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORY_EMBEDDING__PROVIDER", "hash")
    with MemoryApp.local(folder) as memory:
        # Servers, a worker and the finder: no API, no port of which is open.
        assert part_pids(folder).keys() == {"finder", "worker-local"}
        ticket = memory.record(CHAT, "I moved to Lisbon last month.")
        wait_until(lambda: memory.ticket(ticket.id).stage == "extracted", "it is read")
        run = memory.sleep(Scope("ada", "mira"))
        wait_until(lambda: memory.run(run.id).state == "done", "it has slept")
    assert_nothing_runs(folder)
    # And again, with what was there.
    with MemoryApp.local(folder) as memory:
        assert [turn.text for turn in memory.turns(CHAT)] == ["I moved to Lisbon last month."]
    assert_nothing_runs(folder)


def test_programs_share_what_runs_and_the_last_one_stops_it(folder: Path) -> None:
    with program(folder) as first:
        keeper = holder(Folder(folder.resolve()))
        with program(folder) as second:
            assert holder(Folder(folder.resolve())) == keeper
            first.communicate("\n", timeout=PATIENCE_SECONDS)
            # The first one did not wait for the end, and ended nothing.
            assert first.returncode == 0
            assert holder(Folder(folder.resolve())) == keeper
            second.communicate("\n", timeout=PATIENCE_SECONDS)
    assert_nothing_runs(folder)


def test_a_program_that_is_killed_leaves_nothing_running(folder: Path) -> None:
    with program(folder) as process:
        os.kill(process.pid, signal.SIGKILL)
        process.wait(PATIENCE_SECONDS)
        wait_until(lambda: nothing_runs(folder), "everything has stopped")
    assert_nothing_runs(folder)


def test_a_keeper_that_is_killed_leaves_nothing_after_its_last_user(folder: Path) -> None:
    with program(folder) as process:
        keeper = holder(Folder(folder.resolve()))
        assert keeper is not None
        os.kill(keeper, signal.SIGKILL)
        wait_until(lambda: holder(Folder(folder.resolve())) is None, "the keeper is gone")
        process.communicate("\n", timeout=PATIENCE_SECONDS)
    wait_until(lambda: nothing_runs(folder), "everything has stopped")
    assert_nothing_runs(folder)
