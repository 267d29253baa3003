"""``memory up``: everything runs, says where, and comes back when it dies."""

from __future__ import annotations

import contextlib
import os
import signal
from base64 import b64encode
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from up_stage import USER, data_folder, extracted, run, up, wait_until

from memory_app.local.stack.api import Api, calling
from memory_app.local.stack.folder import Addresses, Folder


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    """A folder for all data of a stack, gone afterwards."""
    with data_folder() as folder:
        yield folder


@pytest.fixture(scope="module")
def stack(place: Path) -> Iterator[Addresses]:
    """A stack that runs as long as the tests of this file."""
    with up(place, "--port", "0") as running:
        yield running.addresses


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


def test_a_turn_becomes_memory_through_real_processes(api: Api) -> None:
    ticket = extracted(api, "I moved to Lisbon last month and I have a dog called Bruno.")

    assert ticket["stage"] == "extracted"
    window = api.call("POST", f"{USER}/context", {"query": "Where does Mira live?"})
    assert "Lisbon" in window["text"]


def test_the_api_asks_for_its_key_and_shows_its_docs(stack: Addresses) -> None:
    assert status_of(stack.api, f"{USER}/sessions") == 401
    assert status_of(stack.api, "/docs") == 200


def test_flower_asks_for_its_login_and_changes_nothing(place: Path, stack: Addresses) -> None:
    login = Folder(place).flower_login.read_text()
    assert stack.flower is not None
    assert status_of(stack.flower, "/workers") == 401
    assert status_of(stack.flower, "/workers", login=login) == 200
    shutdown = "/api/worker/shutdown/memory"
    assert status_of(stack.flower, shutdown, method="POST", login=login) == 403


def test_secrets_are_for_the_owner_alone(place: Path, stack: Addresses) -> None:
    folder = Folder(place)
    secret = [folder.key, folder.flower_login, folder.addresses, folder.logs, folder.locks]

    assert [path.stat().st_mode & 0o077 for path in secret] == [0] * 5


def test_secrets_are_named_by_file_and_are_in_no_output_and_no_log(
    place: Path, stack: Addresses, api: Api
) -> None:
    folder = Folder(place)
    extracted(api, "I have a cat called Minou.")
    files = [folder.key, folder.flower_login, *place.glob("*.password")]
    output = (place.parent / "up.log").read_text() + run("up", "--data", str(place)).stdout
    texts = [output, *(log.read_text() for log in (*folder.logs.iterdir(), *place.glob("*.log")))]

    assert len(files) == 5
    for file in files:
        secret = file.read_text().rpartition(":")[2]
        assert not any(secret in text for text in texts), file
    assert str(folder.key) in output
    assert str(folder.flower_login) in output


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
