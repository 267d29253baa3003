"""The command line imports what a command needs and no more, and its table of commands tells the truth."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from memory_app import queue
from memory_app.main.commands import COMMANDS, load
from memory_app.ops import health_command

ROOT = Path(__file__).parents[3]
HEAVY = (
    "celery",
    "kombu",
    "numpy",
    "sqlalchemy",
    "psycopg",
    "fastapi",
    "openai",
    "redis",
    "pydantic_settings",
)

PROBE = f"""
import atexit, json, sys
atexit.register(lambda: print(json.dumps([name for name in {HEAVY!r} if name in sys.modules]), file=sys.stderr))
from memory_app.main.cli import main
main()
"""


def heavy_modules(tmp_path: Path, *arguments: str) -> list[str]:
    """The large libraries that a command has loaded when it ends."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MEMORY_")}
    done = subprocess.run(
        [sys.executable, "-c", PROBE, *arguments],
        cwd=tmp_path,
        env={**environment, "PYTHONPATH": str(ROOT), "MEMORY_LIFE_FOLDER": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    modules: list[str] = json.loads(done.stderr.splitlines()[-1])
    return modules


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["health", "worker"],
        ["health", "beat"],
        ["health", "finder"],
        ["health", "api", "--port", "1"],
        ["health", "flower", "--port", "1"],
    ],
    ids=" ".join,
)
def test_help_and_light_checks_load_nothing_large(tmp_path: Path, arguments: list[str]) -> None:
    assert heavy_modules(tmp_path, *arguments) == []


def test_an_unknown_part_or_queue_is_a_wrong_usage() -> None:
    for arguments in ([], ["nonsense"], ["worker", "--queue", "nonsense"], ["api", "--port", "x"]):
        with pytest.raises(SystemExit) as end:
            health_command.check(arguments)
        assert end.value.code == 2, arguments


def test_keys_load_the_database_and_nothing_else(tmp_path: Path) -> None:
    heavy = heavy_modules(tmp_path, "keys", "list")

    assert "sqlalchemy" in heavy
    assert set(heavy) <= {"sqlalchemy", "psycopg", "pydantic", "pydantic_settings"}


def test_the_table_says_what_the_light_check_says() -> None:
    assert COMMANDS["health"].help == health_command.DESCRIPTION
    assert set(health_command.QUEUES) == set(queue.QUEUES)


@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "health"])
def test_the_table_says_what_the_command_says(name: str) -> None:
    command = load(name)

    assert command.help.splitlines()[0].strip() == COMMANDS[name].help
    assert command.name == name


def test_the_table_names_every_command() -> None:
    modules = {entry.module for name, entry in COMMANDS.items() if name != "health"}
    shown = {
        ".".join(path.relative_to(ROOT / "memory_app").with_suffix("").parts)
        for path in (ROOT / "memory_app").rglob("*.py")
        if "@app.command" in path.read_text()
    }

    assert modules == shown
    for module in modules:
        text = (ROOT / "memory_app" / f"{module.replace('.', '/')}.py").read_text()
        names = [name for name, entry in COMMANDS.items() if entry.module == module]
        is_group = COMMANDS[names[0]].is_group
        assert len(names) == (1 if is_group else text.count("@app.command")), module
