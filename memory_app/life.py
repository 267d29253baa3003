"""Signs of life as files: each process touches one from the loop that does its work, and `memory health` looks at them.

They tell about the processes of this machine or container alone, need neither Redis nor the database, and reading them
costs next to nothing. A process holds the lock of its file for as long as it or a child of it lives, so that what a
killed one left behind is not taken for a frozen one.
"""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from memory_app.errors import Misconfigured

try:
    import fcntl
except ImportError:  # Windows, where no part of the product runs, but this module is imported
    fcntl = None  # type: ignore[assignment]

SILENT_AFTER_SECONDS = 60.0
"""A loop that goes round every few seconds and did not for as long is stuck."""


@dataclass(frozen=True, slots=True)
class FileSign:
    """What a living process said last. ``kind`` is a part such as ``worker-ingest``."""

    kind: str
    pid: int
    age_seconds: float

    @property
    def is_silent(self) -> bool:
        return self.age_seconds > SILENT_AFTER_SECONDS


class LifeFile:
    """The file of one kind of part in this process. Not safe between threads."""

    def __init__(self, kind: str, folder: Path | None = None) -> None:
        """Raises `Misconfigured` where others may write to the folder, and OSError where nobody may."""
        place = _make_folder(folder or usual_folder())
        _sweep(place)
        self._path = place / f"{kind}.{os.getpid()}"
        # Not through a link, which would let somebody else choose what is written to.
        self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self.touch()

    def touch(self) -> None:
        """Say "now". By the clock that nobody sets, which all processes of a machine share."""
        # Always as many characters in one write: a reader meets the old time or the new one, never half of each.
        os.pwrite(self._descriptor, f"{time.monotonic():020.3f}".encode(), 0)

    def remove(self) -> None:
        """This part has ended in order."""
        self._path.unlink(missing_ok=True)
        os.close(self._descriptor)


def usual_folder() -> Path:
    """Of this user, in the folder for temporary files."""
    return Path(tempfile.gettempdir()) / f"memory-life-{os.getuid()}"


def read(folder: Path | None = None) -> tuple[FileSign, ...]:
    """The signs of all processes that live, whether they do anything or not."""
    return tuple(_signs(folder or usual_folder()))


def _signs(folder: Path) -> Iterator[FileSign]:
    for path in sorted(folder.glob("*.*")):
        # The process may end meanwhile, or may have made its file this very moment.
        with contextlib.suppress(OSError, ValueError):
            if _is_held(path):
                age = time.monotonic() - float(path.read_text(encoding="ascii"))
                yield FileSign(path.stem, int(path.suffix[1:]), max(age, 0.0))


def _is_held(path: Path) -> bool:
    with path.open("rb") as file:
        try:
            # Shared, so that two readers do not take each other for the process.
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        return False


def _sweep(folder: Path) -> None:
    """Remove the files of processes that are gone."""
    # By their numbers: a file that was made this moment may not be locked yet.
    for path in folder.glob("*.*"):
        try:
            os.kill(int(path.suffix[1:]), 0)
        except ProcessLookupError:
            path.unlink(missing_ok=True)
        except (OSError, ValueError):
            continue


def _make_folder(folder: Path) -> Path:
    """The folder, for us alone: others must not be able to vouch for a part that hangs."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    # Not through a link, and not one that was there before us with other rights.
    status = folder.lstat()
    is_ours = stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid()
    if not is_ours or status.st_mode & 0o022:
        raise Misconfigured(
            f"{folder} can be written by others; set MEMORY_LIFE_FOLDER to a folder of this user alone",
            field="life_folder",
        )
    return folder
