"""The README's example, as a new user would run it: `memory up`, then the Python block to the letter."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from memory_app.local import embedded, stack

README = Path(__file__).parents[2] / "README.md"


def example() -> str:
    """The Python block that the README marks as run by this test."""
    found = re.search(
        r"<!-- run by tests/acceptance/test_readme.py -->\n```python\n(.*?)```", README.read_text(), re.S
    )
    assert found is not None
    return found[1]


@pytest.fixture
def folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="memory-readme-"))
    yield folder
    embedded.remove(folder / ".memory")
    shutil.rmtree(folder)


def test_the_readmes_python_prints_what_it_promises(folder: Path) -> None:
    data = folder / ".memory"
    with stack.running(stack.Options(data, port=0), say=lambda _: None):
        done = subprocess.run(
            [sys.executable, "-c", example()],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("extracted\n")
    assert "mira has a dog called Bruno." in done.stdout
    assert "[EXPRESSION]" in done.stdout
    assert "Mira prefers short answers." in done.stdout


def promised() -> list[str]:
    """The lines of the story that the README shows; "…" stands for any number of others."""
    found = re.search(
        r"<!-- printed by memory demo --story; .*? -->\n```\n(.*?)```", README.read_text(), re.S
    )
    assert found is not None
    return [line for line in found[1].splitlines() if line not in ("", "…")]


@pytest.mark.slow
def test_the_readmes_story_is_printed_line_by_line_in_its_order() -> None:
    with tempfile.TemporaryDirectory(prefix="story-") as folder:
        Path(folder).chmod(0o711)  # so that root's Postgres, which is another user's, may pass
        own = {name: value for name, value in os.environ.items() if not name.startswith("MEMORY_")}
        done = subprocess.run(
            [sys.executable, "-m", "memory_app", "demo", "--story"],
            env=own | {"TMPDIR": folder, "COLUMNS": "160"},
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=110,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert list(Path(folder).iterdir()) == []
    printed = iter(done.stdout.splitlines())
    assert [line for line in promised() if line not in printed] == []


def test_the_readme_names_only_commands_that_exist() -> None:
    offered = subprocess.run(
        [sys.executable, "-m", "memory_app", "--help"], capture_output=True, text=True, check=True
    ).stdout
    doors = re.search(r"`memory (up · .*?)`", README.read_text())
    assert doors is not None
    assert [command for command in doors[1].split(" · ") if command not in offered] == []
