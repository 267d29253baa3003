"""The demo, as somebody runs it who has just installed the product."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from documentation import ROOT, block_run_by, is_printed, output_after

LAST_LINE = re.compile(
    r"demo: (\d+) turns accepted, (\d+) indexed, (\d+) extracted, (\d+) memories, context (\d+) tokens in \d+ ms"
)


@pytest.mark.slow
def test_a_conversation_is_remembered_shown_and_cleared_away() -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MEMORY_")}
    with tempfile.TemporaryDirectory(prefix="demo-") as folder:
        Path(folder).chmod(0o711)  # so that root's Postgres, which is another user's, may pass

        done = subprocess.run(
            [sys.executable, "-m", "memory_app", "demo"],
            env=environment | {"TMPDIR": folder, "COLUMNS": "160"},
            capture_output=True,
            text=True,
            check=False,
            timeout=500,
        )

        assert done.returncode == 0, done.stderr
        assert list(Path(folder).iterdir()) == []
    shown = output_after(block_run_by("README.md", __file__))
    assert shown is not None
    assert is_printed(shown.code, done.stdout)
    last = LAST_LINE.fullmatch(done.stdout.splitlines()[-1])
    assert last is not None
    accepted, indexed, extracted, memories, tokens = (int(number) for number in last.groups())
    assert accepted == indexed == extracted > 20
    assert memories >= 10
    assert 0 < tokens <= 2000
    # What changed is kept as history, and what was said of yesterday has the day it happened.
    assert re.search(r"lives in Porto\..*\d{4}-\d{2}-\d{2}.*\d{4}-\d{2}-\d{2}", done.stdout)
    assert re.search(r"dog school for the first time on \d{4}-\d{2}-\d{2}", done.stdout)
    assert "[RELEVANT MEMORIES]" in done.stdout


def test_the_block_of_the_readme_runs_the_demo() -> None:
    lines = block_run_by("README.md", __file__).code.splitlines()

    assert lines[-1] == "make demo"
    target = re.search(r"^demo:.*\n\t(.*)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M)
    assert target is not None
    assert target[1] == "$(BIN)/memory demo"
