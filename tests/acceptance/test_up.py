"""``memory up``: everything runs, says where, comes back when it dies, and leaves nothing behind when it is stopped."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from base64 import b64encode
from collections.abc import Callable, Iterator
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import pytest

from memory_app import embedded
from memory_app.embedded import lifetime
from memory_app.stack.api import Api, calling, user_path
from memory_app.stack.folder import Addresses, Folder, read_addresses

PATIENCE_SECONDS = 60.0
USER = user_path("ada", "mira")


def memory(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "memory_app.cli", *arguments]


def environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("MEMORY_")}


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        memory(*arguments), env=environment(), capture_output=True, text=True, check=False, timeout=90
    )


def wait_until(holds: Callable[[], object], description: str) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        assert time.monotonic() < deadline, description
        time.sleep(0.05)


@contextlib.contextmanager
def started(folder: Path) -> Iterator[tuple[subprocess.Popen[bytes], Addresses]]:
    """``memory up`` in a folder, ready; ended at the end, whatever became of it."""
    output = folder.parent / "up.log"
    with output.open("ab") as log:
        supervisor = subprocess.Popen(
            memory("up", "--data", str(folder), "--port", "0"),
            env=environment(),
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        wait_until(lambda: read_addresses(folder) or supervisor.poll() is not None, "up becomes ready")
        addresses = read_addresses(folder)
        assert addresses is not None, output.read_text()
        yield supervisor, addresses
    finally:
        if supervisor.poll() is None:
            supervisor.terminate()
            supervisor.wait(60)


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    """A folder for all data of a stack, gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="up-", ignore_cleanup_errors=True) as parent:
        Path(parent).chmod(0o711)  # so that root's Postgres, which is another user's, may pass
        yield Path(parent) / "data"
        run("stop", "--data", str(Path(parent) / "data"))
        embedded.remove(Path(parent) / "data")


@pytest.fixture(scope="module")
def stack(place: Path) -> Iterator[Addresses]:
    """A stack that runs as long as the tests of this file, except for those that stop it."""
    with started(place) as (_, addresses):
        yield addresses


@pytest.fixture
def api(place: Path, stack: Addresses) -> Iterator[Api]:
    with calling(stack.api, Folder(place).key.read_text()) as api:
        yield api


def status_of(address: str, path: str, *, method: str = "GET", login: str | None = None) -> int:
    where = urlsplit(address)
    headers = {} if login is None else {"Authorization": f"Basic {b64encode(login.encode()).decode()}"}
    with contextlib.closing(HTTPConnection(where.hostname or "", where.port, timeout=10)) as connection:
        connection.request(method, path, headers=headers)
        return connection.getresponse().status


def extracted(api: Api, content: str) -> dict[str, object]:
    """The ticket of a turn that went all the way."""
    answer = api.call("POST", f"{USER}/sessions/chat/turns", {"role": "user", "content": content})
    ticket: dict[str, object] = api.call("GET", f"/v1/turns/{answer['tickets'][0]['id']}?wait_seconds=30")
    return ticket


def test_a_turn_becomes_memory_through_real_processes(api: Api) -> None:
    ticket = extracted(api, "I moved to Lisbon last month and I have a dog called Bruno.")

    assert ticket["stage"] == "extracted"
    window = api.call("POST", f"{USER}/context", {"query": "Where does Mira live?"})
    assert "Lisbon" in window["text"]


def test_the_api_asks_for_its_key_and_shows_its_docs(stack: Addresses) -> None:
    assert status_of(stack.api, f"{USER}/sessions") == 401
    assert status_of(stack.api, "/docs") == 200


def test_flower_asks_for_its_login_and_changes_nothing(stack: Addresses) -> None:
    assert status_of(stack.flower, "/workers") == 401
    assert status_of(stack.flower, "/workers", login=stack.flower_login) == 200
    shutdown = "/api/worker/shutdown/memory"
    assert status_of(stack.flower, shutdown, method="POST", login=stack.flower_login) == 403


def test_secrets_are_for_the_owner_alone(place: Path, stack: Addresses) -> None:
    folder = Folder(place)
    secret = [folder.key, folder.flower_password, folder.addresses, folder.logs, folder.locks]

    assert [path.stat().st_mode & 0o077 for path in secret] == [0] * 5


def test_a_second_start_tells_where_the_first_answers(place: Path, stack: Addresses) -> None:
    done = run("up", "--data", str(place))

    assert done.returncode == 0
    assert "already running" in done.stdout
    assert stack.api in done.stdout


def test_a_part_that_is_killed_comes_back(place: Path, stack: Addresses, api: Api) -> None:
    pid_file = Folder(place).locks / "worker.pid"
    before = pid_file.read_text()

    os.killpg(int(before), signal.SIGKILL)

    wait_until(lambda: pid_file.read_text() != before, "the worker is started again")
    assert extracted(api, "I work as a nurse in Porto.")["stage"] == "extracted"


@pytest.mark.slow
def test_a_stopped_stack_leaves_nothing_and_keeps_the_data() -> None:
    with tempfile.TemporaryDirectory(prefix="up-", ignore_cleanup_errors=True) as parent:
        Path(parent).chmod(0o711)
        folder = Path(parent) / "data"
        try:
            _stop_and_start(folder)
        finally:
            run("stop", "--data", str(folder))
            embedded.remove(folder)


def _stop_and_start(folder: Path) -> None:
    # given a stack with one turn in it
    with started(folder) as (supervisor, addresses):
        with calling(addresses.api, Folder(folder).key.read_text()) as api:
            extracted(api, "I moved to Lisbon last month.")
        # when it is told to stop
        supervisor.terminate()
        assert supervisor.wait(60) == 0
    # then nothing runs
    assert_nothing_runs(folder)

    # and when it is started again, the turn is there under the same key
    with started(folder) as (supervisor, addresses):
        with calling(addresses.api, Folder(folder).key.read_text()) as api:
            assert len(api.call("GET", f"{USER}/sessions/chat/turns")["turns"]) == 1
        # and when the supervisor is killed, its parts are ended by `memory stop`
        os.kill(supervisor.pid, signal.SIGKILL)
        supervisor.wait(60)
    assert run("stop", "--data", str(folder)).returncode == 0
    assert_nothing_runs(folder)


def assert_nothing_runs(folder: Path) -> None:
    assert embedded.find(folder) is None
    assert all(lifetime.is_free(lock) for lock in Folder(folder).locks.glob("*.lock"))
    assert [
        p.pid for p in psutil.process_iter(["cmdline"]) if str(folder) in " ".join(p.info["cmdline"] or [])
    ] == []
