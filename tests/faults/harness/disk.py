"""A disk of a few hundred megabytes that a test may fill."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

BLOCK_BYTES = 1 << 20


@contextmanager
def small_disk(megabytes: int) -> Iterator[Path]:
    """A folder on a disk of its own, kept in memory, that any user may pass. Skips where nobody may mount one."""
    folder = Path(tempfile.mkdtemp(prefix="memory-disk-"))
    mount = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m,mode=755", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        folder.rmdir()
        pytest.skip("a small disk needs the right to mount one")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], capture_output=True, check=False)
        folder.rmdir()


@contextmanager
def filled(folder: Path) -> Iterator[None]:
    """No room is left on the disk of ``folder`` during the block."""
    filler = folder / "filler"
    with filler.open("wb", buffering=0) as file, suppress(OSError):
        while file.write(bytes(BLOCK_BYTES)) == BLOCK_BYTES:
            pass
    try:
        yield
    finally:
        filler.unlink()
