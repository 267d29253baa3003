"""Tests that never end, for `test_aborted_run`. What they start is written down, to see whether it ends."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from memory_app.local.embedded import Servers

ENDLESS = "ENDLESS_FOLDER"
"""Names the folder in which each test writes the processes that it started."""


@pytest.mark.timeout(0)
@pytest.mark.parametrize("number", [1, 2])
def test_without_an_end(servers: Servers, number: int) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", "import time; time.sleep(86_400)"], start_new_session=True, cwd="/"
    )
    pids = {
        "pytest": os.getpid(),
        "child": child.pid,
        "postgres": int((servers.folder / "postgres/postmaster.pid").read_text().split()[0]),
        "valkey": int((servers.folder / "valkey/valkey.pid").read_text()),
    }
    lines = [f"{name} {pid}\n" for name, pid in pids.items()]
    (Path(os.environ[ENDLESS]) / f"{number}.new").write_text("".join(lines))
    (Path(os.environ[ENDLESS]) / f"{number}.new").rename(Path(os.environ[ENDLESS]) / f"{number}.pids")
    threading.Event().wait()
