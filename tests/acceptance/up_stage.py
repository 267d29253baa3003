"""``memory up`` as a person runs it: a process of its own, with a data folder of its own."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from memory_app.errors import MemoryAppError
from memory_app.local import embedded
from memory_app.local.embedded import lifetime, place
from memory_app.local.stack.api import Api, user_path
from memory_app.local.stack.child import end_orphans
from memory_app.local.stack.folder import Addresses, Folder, read_addresses

PATIENCE_SECONDS = 300.0
"""Nothing is measured here: a busy machine may take its time."""

USER = user_path("ada", "mira")


def memory(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "memory_app", *arguments]


def environment(**settings: str) -> dict[str, str]:
    """Ours, without settings of the product other than ``settings``."""
    return {name: value for name, value in os.environ.items() if not name.startswith("MEMORY_")} | settings


def run(*arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        memory(*arguments),
        env=environment(**settings),
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_SECONDS,
    )


def wait_until(holds: Callable[[], object], description: str) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        assert time.monotonic() < deadline, description
        time.sleep(0.05)


@dataclass(slots=True)
class Up:
    """A ``memory up`` at work."""

    folder: Path
    process: subprocess.Popen[bytes]
    output: Path
    settings: dict[str, str] = field(default_factory=dict)

    @property
    def addresses(self) -> Addresses:
        """Where the parts answer, once all of them do."""
        wait_until(lambda: read_addresses(self.folder) or self.process.poll() is not None, "up becomes ready")
        addresses = read_addresses(self.folder)
        assert addresses is not None, self.output.read_text()
        return addresses

    @property
    def key(self) -> str:
        return Folder(self.folder).key.read_text()

    def has_written(self, text: str) -> bool:
        return text in self.output.read_text()

    def interrupt(self) -> int:
        """Press Ctrl-C, which a terminal sends to the whole group; the exit status."""
        os.killpg(self.process.pid, signal.SIGINT)
        return self.process.wait(PATIENCE_SECONDS)


@contextlib.contextmanager
def up(folder: Path, *options: str, **settings: str) -> Iterator[Up]:
    """``memory up`` in a folder; ended at the end, whatever became of it."""
    output = folder.parent / "up.log"
    with output.open("ab") as log:
        process = subprocess.Popen(
            memory("up", "--data", str(folder), *options),
            env=environment(**settings),
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        yield Up(folder, process, output)
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait(PATIENCE_SECONDS)


@contextlib.contextmanager
def data_folder() -> Iterator[Path]:
    """A folder for all data of a stack, gone afterwards with whatever runs in it."""
    with tempfile.TemporaryDirectory(prefix="up-", ignore_cleanup_errors=True) as parent:
        Path(parent).chmod(0o711)  # so that root's Postgres, which is another user's, may pass
        folder = Path(parent) / "data"
        try:
            yield folder
        finally:
            end_orphans(Folder(folder))
            embedded.remove(folder)


def server_pids(folder: Path) -> dict[str, int]:
    """The process of each embedded server; 0 for one that is being started."""
    files = {"postgres": folder / "postgres/postmaster.pid", "valkey": folder / "valkey/valkey.pid"}
    return {name: int(((place.read(file) or "0").split())[0]) for name, file in files.items()}


def part_pids(folder: Path) -> dict[str, int]:
    """The process of each part."""
    return {path.stem: int(path.read_text()) for path in Folder(folder).locks.glob("*.pid")}


def processes(folder: Path) -> list[str]:
    """Every process that has to do with the folder."""
    return [
        " ".join(process.info["cmdline"])
        for process in psutil.process_iter(["cmdline", "cwd", "environ"])
        if str(folder) in " ".join(process.info["cmdline"] or [])
        or str(folder) in (process.info["cwd"] or "")
        or (process.info["environ"] or {}).get("MEMORY_DATA_FOLDER") == str(folder)
    ]


def assert_nothing_runs(folder: Path) -> None:
    assert embedded.gone(folder) == ("PostgreSQL", "Valkey")
    assert all(lifetime.is_free(lock) for lock in Folder(folder).locks.glob("*.lock"))
    wait_until(lambda: processes(folder) == [], f"all end: {processes(folder)}")


def extracted(api: Api, content: str) -> dict[str, object]:
    """The ticket of a turn that went all the way; sent again as an app would, while a server is away."""
    turn = {"role": "user", "content": content, "idempotency_key": content}
    ticket: dict[str, object] = {}

    def is_extracted() -> bool:
        with contextlib.suppress(MemoryAppError):
            answer = api.call("POST", f"{USER}/sessions/chat/turns", turn)
            ticket.update(api.call("GET", f"/v1/turns/{answer['tickets'][0]['id']}?wait_seconds=30"))
        return ticket.get("stage") == "extracted"

    wait_until(is_extracted, f"the turn is extracted: {ticket}")
    return ticket
