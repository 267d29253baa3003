"""The data folder of a stack: its files, the process that runs it, and the addresses of its parts."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from memory_app.errors import Misconfigured
from memory_app.local import embedded
from memory_app.local.embedded import lifetime, place


@dataclass(frozen=True, slots=True)
class Addresses:
    """Where the parts of a running stack are reached. ``pid`` is of the ``memory up`` that runs it."""

    pid: int
    api: str
    flower: str | None


@dataclass(frozen=True, slots=True)
class Folder:
    """Paths inside the data folder. Everything with a secret in it is for the owner's eyes only."""

    path: Path

    @property
    def logs(self) -> Path:
        return self.path / "logs"

    @property
    def locks(self) -> Path:
        """A lock and a process id for each part."""
        return self.path / "parts"

    @property
    def schedule(self) -> Path:
        """What Beat remembers of its last runs."""
        return self.path / "beat-schedule"

    @property
    def key(self) -> Path:
        """The API key that was made with the stack."""
        return self.path / "api-key"

    @property
    def flower_login(self) -> Path:
        """Name and password of Flower, as ``name:password``."""
        return self.path / "flower-login"

    def port(self, part: str) -> Path:
        """The port that a part took the last time."""
        return self.path / f"{part}.port"

    @property
    def addresses(self) -> Path:
        return self.path / "addresses.json"

    @property
    def lock(self) -> Path:
        return self.path / "up.lock"

    @property
    def pid(self) -> Path:
        """The process that holds the lock."""
        return self.path / "up.pid"


def open_folder(path: Path) -> Folder:
    """The folder with its parts made, private to us (root's Postgres may pass). Raises `Misconfigured`."""
    folder = Folder(place.prepare(path.expanduser().resolve()))
    try:
        for inner in (folder.logs, folder.locks):
            inner.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise Misconfigured(f"cannot write into the folder {folder.path}: {error.strerror}") from error
    return folder


def open_schedule(path: Path) -> Path:
    """A file for what a Beat of its own remembers, next to those of others; its lock is this process's until it ends.

    The lock stays with a program that the process goes on as. Raises `Misconfigured`.
    """
    folder = open_folder(path).path / "beat"
    folder.mkdir(mode=0o700, exist_ok=True)
    number = 1
    while (descriptor := lifetime.hold(folder / f"{number}.lock")) is None:
        number += 1
    os.set_inheritable(descriptor, True)
    return folder / f"{number}.schedule"


@contextlib.contextmanager
def temporary_folder(data: Path | None) -> Iterator[Path]:
    """``data`` itself, or a folder that is gone afterwards with all servers in it."""
    if data is not None:
        yield data
        return
    with tempfile.TemporaryDirectory(prefix="memory-", ignore_cleanup_errors=True) as parent:
        # Root's Postgres runs as another user, who must be able to pass.
        Path(parent).chmod(0o711)
        folder = Path(parent) / "memory"
        try:
            yield folder
        finally:
            embedded.remove(folder)


@contextlib.contextmanager
def claimed(folder: Folder) -> Iterator[bool]:
    """Hold the folder for this process; False when a ``memory up`` holds it already."""
    with lifetime.claimed(folder.lock) as descriptor:
        if descriptor is None:
            yield False
            return
        # Of a process that was killed: those addresses answer no more.
        folder.addresses.unlink(missing_ok=True)
        place.write(folder.pid, str(os.getpid()))
        try:
            yield True
        finally:
            folder.addresses.unlink(missing_ok=True)
            folder.pid.unlink(missing_ok=True)


def holder(folder: Folder) -> int | None:
    """The process of the ``memory up`` that runs, starts or stops in the folder."""
    if lifetime.is_free(folder.lock):
        return None
    pid = place.read(folder.pid)
    return int(pid) if pid else None


def write_addresses(folder: Folder, addresses: Addresses) -> None:
    place.write(folder.addresses, json.dumps(asdict(addresses)))


def read_addresses(path: Path) -> Addresses | None:
    """Where the stack of this folder answers, if one runs and has come that far."""
    folder = Folder(path.expanduser().resolve())
    text = place.read(folder.addresses)
    # A file without a lock was left behind by a process that was killed.
    if not text or not folder.lock.exists() or lifetime.is_free(folder.lock):
        return None
    return Addresses(**json.loads(text))


def secret(path: Path, *, make: str) -> str:
    """The secret kept in the file; ``make`` is written when there is none yet."""
    text = place.read(path)
    if text:
        return text
    place.write(path, make)
    return make


def rotate(log: Path, *, most_bytes: int = 10_000_000) -> None:
    """Put a log that has grown aside, in place of the one put aside before."""
    if log.exists() and log.stat().st_size > most_bytes:
        log.replace(log.with_suffix(".log.1"))
