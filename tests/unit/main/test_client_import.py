"""The client side is imported everywhere: also where a system has no `fcntl` and no `pwd`, and without loading much."""

from __future__ import annotations

import subprocess
import sys

import memory_app

WITHOUT_POSIX = """
import builtins

MISSING = {"fcntl", "pwd", "grp", "termios", "resource"}
load = builtins.__import__

def load_as_on_windows(name, globals=None, locals=None, fromlist=(), level=0):
    # Libraries ask for the system's name and take another way there; only our own modules are held to this.
    importer = (globals or {}).get("__name__", "").partition(".")[0]
    if name in MISSING and importer in ("memory_app", "workers"):
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    return load(name, globals, locals, fromlist, level)

builtins.__import__ = load_as_on_windows
"""

USE = """
from pathlib import Path

import memory_app
from memory_app import MemoryApp, NewTurn, Role, Scope, Statement, errors
from memory_app.local import embedded

assert all(getattr(memory_app, name) for name in memory_app.__all__)
assert "macOS" in embedded.is_available()
try:
    MemoryApp.beside("nowhere")
except errors.Misconfigured as error:
    assert "nowhere" in error.message
try:
    embedded.start(Path("nowhere"))
except errors.Misconfigured as error:
    print(error.message)
"""

IMPORT = "import sys, memory_app, memory_app.errors; print(*sorted({name.partition('.')[0] for name in sys.modules}))"

HEAVY = {
    "alembic",
    "celery",
    "fastapi",
    "kombu",
    "numpy",
    "openai",
    "psycopg",
    "pydantic",
    "redis",
    "sqlalchemy",
}


def run(program: str) -> str:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_facade_can_be_imported_without_fcntl_and_pwd() -> None:
    assert "name servers of your own" in run(WITHOUT_POSIX + USE)


def test_importing_the_package_loads_nothing_heavy() -> None:
    loaded = set(run(IMPORT).split())

    assert "memory_app" in loaded
    assert loaded & HEAVY == set()


def test_every_public_name_can_be_imported() -> None:
    assert all(getattr(memory_app, name) is not None for name in memory_app.__all__)
