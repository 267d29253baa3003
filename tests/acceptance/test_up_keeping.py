"""``memory up`` never ends what lives: frozen, starved or slow, the same processes are there afterwards."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from up_stage import Up, data_folder, extracted, part_pids, server_pids, up, wait_until

from memory_app.errors import Misconfigured
from memory_app.local import embedded, stack
from memory_app.local.embedded import lifetime, place
from memory_app.local.stack.api import Api, calling
from memory_app.local.stack.folder import Folder

FREEZE_SECONDS = 15.0
"""Longer than any look at a server waits for its answer."""

BUSY_LOOPS = 8

NOBODY = (0, 2**31 - 1)
"""What stands in the file of a server that is not started yet."""


@pytest.fixture(scope="module")
def running() -> Iterator[Up]:
    """A stack for all tests of this file."""
    with data_folder() as folder, up(folder, "--port", "0", "--no-flower") as running:
        assert running.addresses.flower is None
        yield running


@pytest.fixture
def api(running: Up) -> Iterator[Api]:
    with calling(running.addresses.api, Folder(running.folder).key.read_text()) as api:
        yield api


def every_pid(folder: Path) -> dict[str, int]:
    return {**server_pids(folder), **part_pids(folder)}


def ends_of_logs(running: Up) -> str:
    """Why a part ended that should not have."""
    logs = [running.output, *sorted(Folder(running.folder).logs.glob("*.log"))]
    return "\n".join(f"{log.name}: {place.tail(log)}" for log in logs)


def with_descendants(pid: int) -> list[psutil.Process]:
    process = psutil.Process(pid)
    return [process, *process.children(recursive=True)]


@contextlib.contextmanager
def frozen(pids: list[int]) -> Iterator[None]:
    """Processes that get no time at all, and all of theirs."""
    stopped = [process for pid in pids for process in with_descendants(pid)]
    for process in stopped:
        process.suspend()
    try:
        yield
    finally:
        for process in stopped:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.resume()


@contextlib.contextmanager
def busy_machine() -> Iterator[None]:
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(BUSY_LOOPS)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def test_without_flower_there_is_none(running: Up) -> None:
    assert "flower" not in part_pids(running.folder)
    assert not running.has_written("Flower")


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("names", [("postgres",), ("valkey",), ("postgres", "valkey"), ("parts",)])
def test_what_is_frozen_for_a_while_is_not_restarted(running: Up, api: Api, names: tuple[str, ...]) -> None:
    before = every_pid(running.folder)
    pids = part_pids(running.folder) if names == ("parts",) else server_pids(running.folder)
    with frozen([pid for name, pid in pids.items() if names == ("parts",) or name in names]):
        time.sleep(FREEZE_SECONDS)  # how long it lasts is what the test is about

    assert extracted(api, f"I bought a lamp for {names[0]}.")["stage"] == "extracted"

    assert every_pid(running.folder) == before
    assert running.process.poll() is None


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_on_a_starved_machine_nothing_is_restarted(running: Up, api: Api) -> None:
    before = every_pid(running.folder)
    with busy_machine():
        end, number = time.monotonic() + FREEZE_SECONDS, 0
        while time.monotonic() < end:
            extracted(api, f"I saw film number {number}.")
            number += 1

    assert every_pid(running.folder) == before


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("dead", ["valkey", "postgres"])
def test_only_the_server_that_is_gone_is_started_again(running: Up, api: Api, dead: str) -> None:
    before = server_pids(running.folder)
    parts = part_pids(running.folder)

    os.kill(before[dead], signal.SIGKILL)

    wait_until(lambda: server_pids(running.folder)[dead] not in (before[dead], *NOBODY), "it is started")
    assert extracted(api, f"I lost my {dead} key.")["stage"] == "extracted"
    assert {**server_pids(running.folder), dead: 0} == {**before, dead: 0}
    assert part_pids(running.folder) == parts, ends_of_logs(running)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_what_cannot_be_started_again_for_now_ends_nothing(running: Up, api: Api) -> None:
    # given a part that cannot be started, as its log cannot be written
    folder = Folder(running.folder)
    before = every_pid(running.folder)
    log = folder.logs / "beat.log"
    log.rename(folder.logs / "kept")
    log.mkdir()
    os.killpg(before["beat"], signal.SIGKILL)
    # when the stack tries
    wait_until(lambda: running.has_written("not_tended"), "it says that it cannot")
    # then the others go on, and the part comes as soon as it can
    assert extracted(api, "I painted the door.")["stage"] == "extracted"
    assert {**every_pid(running.folder), "beat": 0} == {**before, "beat": 0}
    log.rmdir()
    wait_until(lambda: part_pids(running.folder)["beat"] != before["beat"], "Beat is started again")


def test_a_start_gives_up_on_silent_servers_and_leaves_them_running(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with data_folder() as folder:
        embedded.start(folder, durable=False)
        # only now, since the first start also makes the data folder
        monkeypatch.setattr(lifetime, "START_SECONDS", 6.0)
        before = server_pids(folder)
        with (
            frozen([before["postgres"]]),
            pytest.raises(Misconfigured, match="runs, but has not answered"),
            stack.running(stack.Options(folder, parts=()), say=lambda _: None),
        ):
            pass

        assert embedded.find(folder) is not None
        assert server_pids(folder) == before
