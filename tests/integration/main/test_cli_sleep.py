"""Sleep, undo, export and import on the command line."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from wide_screen import widen

from memory_app.main.cli import main

SAILING = (
    "Bob goes sailing on the lake with his cousin in the summer.",
    "Bob goes sailing on the lake with his cousin in summer.",
)

Memory = Callable[..., tuple[int, str, str]]


@pytest.fixture
def memory(
    environment: dict[str, str],
    tenant: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Iterator[Memory]:
    """Runs a command of the tenant in this process: its status, output and complaint."""
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    widen(monkeypatch)

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["memory", *arguments, "--tenant", "acme"])
        capsys.readouterr()
        try:
            main()
            status = 0
        except SystemExit as end:
            status = int(end.code or 0)
        return status, *capsys.readouterr()

    return run


def test_a_cycle_is_rehearsed_done_and_undone(memory: Memory) -> None:
    for words in SAILING:
        memory("remember", words, "--no-deduplicate")
    rehearsed = json.loads(memory("sleep", "--dry-run", "--json")[1])
    done = json.loads(memory("sleep", "--json")[1])
    assert done["report"] == rehearsed["report"]
    assert len(done["report"]["clusters"]) == 1
    assert memory("undo", done["id"])[0] == 0
    status, _, complaint = memory("undo", done["id"])
    assert (status, "undone already" in complaint) == (1, True)
    status, shown, _ = memory("sleep")
    assert (status, "1 clusters, freed 1" in shown) == (0, True)


def test_an_option_that_makes_no_sense_is_one_line(memory: Memory) -> None:
    memory("remember", SAILING[0])
    status, _, complaint = memory("sleep", "--max-clusters", "0")
    assert (status, "max_clusters" in complaint, complaint.count("\n")) == (1, True, 1)


def test_a_scope_is_written_to_a_file_and_read_only_into_an_empty_one(memory: Memory, tmp_path: Path) -> None:
    file = tmp_path / "me.json"
    memory("remember", SAILING[0])
    assert memory("export", str(file))[0] == 0
    assert json.loads(file.read_text())["counts"]["nodes"] == 1
    status, _, complaint = memory("import", str(file))
    assert (status, "not empty" in complaint) == (1, True)
    file.write_text("{}")
    status, _, complaint = memory("import", str(file), "--user", "new")
    assert (status, "nothing was imported" in complaint) == (1, True)
