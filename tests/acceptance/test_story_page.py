"""What the pages show of `memory demo --story`, line by line. `test_examples.py` runs the other examples."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from documentation import ANYTHING, block_run_by, output_after


def shown_lines() -> list[str]:
    """The lines of the story in docs/models.md; "…" stands for any number of others."""
    output = output_after(block_run_by("docs/models.md", __file__))
    assert output is not None
    return [line for line in output.code.splitlines() if line not in ("", ANYTHING)]


@pytest.mark.slow
def test_the_story_is_printed_line_by_line_in_its_order() -> None:
    with tempfile.TemporaryDirectory(prefix="story-") as folder:
        Path(folder).chmod(0o711)  # so that root's Postgres, which is another user's, may pass
        own = {name: value for name, value in os.environ.items() if not name.startswith("MEMORY_")}
        done = subprocess.run(
            [sys.executable, "-m", "memory_app", "demo", "--story"],
            env=own | {"TMPDIR": folder, "COLUMNS": "160"},
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=500,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert list(Path(folder).iterdir()) == []
    printed = iter(done.stdout.splitlines())
    assert [line for line in shown_lines() if line not in printed] == []
