"""Starting and stopping ``memory up``: whenever it is told to stop, and however it ends, nothing is left running."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from up_stage import (
    PATIENCE_SECONDS,
    USER,
    Up,
    assert_nothing_runs,
    data_folder,
    extracted,
    part_pids,
    run,
    server_pids,
    up,
    wait_until,
)

from memory_app.local.stack.api import calling
from memory_app.local.stack.folder import Folder

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture
def folder() -> Iterator[Path]:
    with data_folder() as folder:
        yield folder


def kill(running: Up) -> None:
    """End the supervisor alone, so that it cannot stop anything."""
    os.kill(running.process.pid, signal.SIGKILL)
    running.process.wait(PATIENCE_SECONDS)


def test_a_stopped_stack_runs_nothing_and_keeps_data_key_and_addresses(folder: Path) -> None:
    # given a stack with one turn in it, whose usual ports are taken by others
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = str(other.getsockname()[1])
        with up(folder, MEMORY_HTTP__PORT=taken) as running:
            before = running.addresses
            with calling(before.api, running.key) as api:
                extracted(api, "I moved to Lisbon last month.")
            # when it is told to stop
            assert running.interrupt() == 0
    # then nothing runs
    assert_nothing_runs(folder)

    # and when it is started again, the turn is there under the same key and address, although the usual one is free
    with up(folder, MEMORY_HTTP__PORT=taken) as running:
        after = running.addresses
        assert (after.api, after.flower) == (before.api, before.flower)
        with calling(after.api, running.key) as api:
            assert len(api.call("GET", f"{USER}/sessions/chat/turns")["turns"]) == 1
        assert run("stop", "--data", str(folder)).returncode == 0
        assert running.process.wait(PATIENCE_SECONDS) == 0
        assert_nothing_runs(folder)


def test_what_a_killed_supervisor_left_is_taken_over_or_stopped(folder: Path) -> None:
    # given a supervisor that was killed
    with up(folder, "--port", "0", "--no-flower") as running:
        before = running.addresses
        servers, parts = server_pids(folder), part_pids(folder)
        kill(running)
    # when another is started
    with up(folder, "--port", "0", "--no-flower") as running:
        # then it finds the servers at work, has parts of its own, and answers where the first one did
        assert running.addresses.api == before.api
        assert server_pids(folder) == servers
        assert set(part_pids(folder).values()).isdisjoint(parts.values())
        with calling(before.api, running.key) as api:
            assert extracted(api, "I moved to Porto.")["stage"] == "extracted"
        # and when that is killed, too, `memory stop` ends what it left
        kill(running)
    assert run("stop", "--data", str(folder)).returncode == 0
    assert_nothing_runs(folder)


@pytest.mark.parametrize(
    "step",
    [
        "creating the database files",
        "starting Valkey",
        "bringing the database",
        "starting worker-maintenance",
        "finder is ready",
    ],
)
def test_ctrl_c_at_any_moment_of_the_start_leaves_nothing(folder: Path, step: str) -> None:
    with up(folder, "--port", "0", "--no-flower") as running:
        wait_until(lambda: running.has_written(step), step)
        assert running.interrupt() == 0
        assert "Traceback" not in running.output.read_text()
        assert_nothing_runs(folder)


def test_memory_stop_ends_a_stack_that_is_still_starting(folder: Path) -> None:
    with up(folder, "--port", "0", "--no-flower") as running:
        wait_until(lambda: running.has_written("starting api"), "it starts")
        assert run("stop", "--data", str(folder)).returncode == 0
        assert running.process.wait(PATIENCE_SECONDS) == 0
        assert_nothing_runs(folder)


def test_a_part_that_does_not_start_stops_the_others_and_names_its_log(folder: Path) -> None:
    done = run("up", "--data", str(folder), "--port", "0", FLOWER_MAX_TASKS="many")

    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("memory: flower does not start")
    assert str(Folder(folder).logs / "flower.log") in done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    assert_nothing_runs(folder)


def test_a_port_that_is_taken_is_refused_before_anything_is_left_running(folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])
        done = run("up", "--data", str(folder), "--port", port)

    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith(f"memory: port {port} is taken")
    assert "Traceback" not in done.stdout + done.stderr
    assert_nothing_runs(folder)


def test_a_data_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    done = run("up", "--data", str(tmp_path / "file"))

    assert done.returncode == 1
    assert str(tmp_path / "file") in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
