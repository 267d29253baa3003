"""How the process of a part is started, in both ways: forked from one that has loaded everything, and by itself."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psutil
import pytest

from memory_app.local.embedded import lifetime
from memory_app.local.stack import launch
from memory_app.local.stack.launch import Launcher, Process, launching

PATIENCE_SECONDS = 120.0

PART = """
import gc, json, os, signal, sys, time
from memory_app.providers.embedders import word_llama
print(json.dumps({
    "pid": os.getpid(), "group": os.getpgrp(), "session": os.getsid(0), "arguments": sys.argv[1:],
    "environment": dict(os.environ), "name": open("/proc/self/comm").read().strip(),
    "descriptors": len(os.listdir("/proc/self/fd")), "handlers": [
        signal.getsignal(number) is signal.SIG_DFL for number in (signal.SIGTERM, signal.SIGCHLD)],
    "has_worker": "celery.apps.worker" in sys.modules, "has_tasks": "workers.ingest" in sys.modules,
    "has_weights": word_llama._weights.cache_info().currsize == 1, "frozen": gc.get_freeze_count(),
}), flush=True)
if sys.argv[1] == "wait":
    time.sleep(600)
if sys.argv[1] == "fail":
    raise ValueError("it failed")
sys.exit(int(sys.argv[1]))
"""


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("modules")
    (folder / "part_on_trial.py").write_text(PART)
    path = os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**os.environ, "PYTHONPATH": path, "MEMORY_DATABASE__OWNER_URL": "postgresql://owner:pw@db/memory"}


def made(way: str, folder: Path, environment: dict[str, str]) -> Iterator[Launcher]:
    with ExitStack() as stack:
        with pytest.MonkeyPatch.context() as patched:
            if way == "started":
                patched.setattr(launch, "_can_fork", lambda: False)
            launcher = stack.enter_context(launching(folder / "start.log", environment, modules=()))
        launcher.prepare({"MEMORY_REDIS__URL": "redis://127.0.0.1:1/0"})
        yield launcher


@pytest.fixture(scope="module", params=["forked", "started"])
def launcher(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, environment: dict[str, str]
) -> Iterator[Launcher]:
    yield from made(request.param, tmp_path_factory.mktemp("start"), environment)


@pytest.fixture(scope="module")
def forker(tmp_path_factory: pytest.TempPathFactory, environment: dict[str, str]) -> Iterator[Launcher]:
    yield from made("forked", tmp_path_factory.mktemp("fork"), environment)


@pytest.fixture
def start(tmp_path: Path, environment: dict[str, str]) -> Iterator[Callable[..., Process]]:
    """Start the module with an argument; its output is in ``out`` and its lock is ``lock``."""
    started: list[Process] = []

    def start(launcher: Launcher, argument: str, **settings: str) -> Process:
        output = os.open(tmp_path / "out", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        own = {
            name: value for name, value in environment.items() if not name.startswith("MEMORY_")
        } | settings
        with lifetime.claimed(tmp_path / "lock") as lock:
            assert lock is not None
            command = (sys.executable, "-m", "part_on_trial", argument)
            started.append(launcher.launch("on-trial", command, own, output=output, lock=lock))
        os.close(output)
        return started[-1]

    yield start
    for process in started:
        if process.poll() is None:
            os.kill(process.pid, signal.SIGKILL)
            process.wait(PATIENCE_SECONDS)


def said(folder: Path) -> dict[str, Any]:
    """What the process said of itself, once it has."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not (text := (folder / "out").read_text()).endswith("}\n"):
        assert time.monotonic() < deadline, text
        time.sleep(0.02)
    facts: dict[str, Any] = json.loads(text.splitlines()[-1])
    return facts


def test_a_part_is_as_if_started_alone(
    launcher: Launcher, start: Callable[..., Process], tmp_path: Path
) -> None:
    process = start(launcher, "wait", MEMORY_LOG__LEVEL="DEBUG")
    facts = said(tmp_path)

    assert facts["pid"] == facts["group"] == facts["session"] == process.pid
    assert facts["arguments"] == ["wait"]
    assert {name for name in facts["environment"] if name.startswith("MEMORY_")} == {"MEMORY_LOG__LEVEL"}
    assert facts["handlers"] == [True, True]
    # Three of its own, the lock, and the listing itself.
    assert facts["descriptors"] == 5, facts
    assert process.poll() is None
    assert not lifetime.is_free(tmp_path / "lock")


@pytest.mark.parametrize("argument, status", [("0", 0), ("3", 3), ("fail", 1)])
def test_how_a_part_ended_is_told(
    launcher: Launcher, start: Callable[..., Process], tmp_path: Path, argument: str, status: int
) -> None:
    process = start(launcher, argument)

    assert process.wait(PATIENCE_SECONDS) == status
    assert process.returncode == process.poll() == status
    assert ("ValueError: it failed" in (tmp_path / "out").read_text()) == (argument == "fail")
    assert lifetime.is_free(tmp_path / "lock")


def test_a_signal_reaches_it_and_is_told(
    launcher: Launcher, start: Callable[..., Process], tmp_path: Path
) -> None:
    process = start(launcher, "wait")
    said(tmp_path)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.01)

    process.send_signal(signal.SIGTERM)

    assert process.wait(PATIENCE_SECONDS) == -signal.SIGTERM
    process.send_signal(signal.SIGTERM)


def test_a_forked_part_has_what_all_share_already(
    forker: Launcher, start: Callable[..., Process], tmp_path: Path
) -> None:
    start(forker, "wait")
    facts = said(tmp_path)

    assert (facts["has_worker"], facts["has_tasks"], facts["has_weights"]) == (True, True, True)
    assert facts["frozen"] > 100_000
    assert facts["name"] == "memory on-trial"


def test_a_part_outlives_what_it_was_forked_from(
    forker: Launcher, start: Callable[..., Process], tmp_path: Path
) -> None:
    first = start(forker, "wait")
    said(tmp_path)
    server = psutil.Process(first.pid).parent()
    assert server is not None and "fork_server" in " ".join(server.cmdline())
    server.kill()
    while server.status() != psutil.STATUS_ZOMBIE:
        time.sleep(0.01)

    for name in ("lock", "out"):
        (tmp_path / name).unlink()
    second = start(forker, "wait")

    assert said(tmp_path)["pid"] == second.pid
    assert said(tmp_path)["has_tasks"]
    assert first.poll() is None
    first.send_signal(signal.SIGTERM)
    assert first.wait(PATIENCE_SECONDS) == launch.STATUS_UNKNOWN


def test_no_secret_stands_in_the_environment_of_all(
    forker: Launcher, start: Callable[..., Process], tmp_path: Path
) -> None:
    process = start(forker, "wait", MEMORY_REDIS__URL="redis://:secret@127.0.0.1/0")
    said(tmp_path)

    assert "secret" not in psutil.Process(process.pid).environ().get("MEMORY_REDIS__URL", "")
    assert "MEMORY_DATABASE__OWNER_URL" not in psutil.Process(process.pid).environ()
