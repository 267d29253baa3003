"""Programs for Node: those of `examples/` in folders of their own, with the packages of their locks."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from documentation import ROOT

EXAMPLES = ROOT / "examples"
PROGRAM_SECONDS = 500.0


def require_node() -> None:
    assert shutil.which("node") and shutil.which("npm"), (
        "these tests need Node and npm: install nodejs and npm"
    )


def copied(name: str, folder: Path) -> Path:
    """A copy of an example, so that nothing is installed or built in the source tree."""
    copy = folder / "examples" / name
    shutil.copytree(
        EXAMPLES / name, copy, ignore=shutil.ignore_patterns("node_modules", "dist", "schema.d.ts")
    )
    return copy


def with_packages(name: str, folder: Path) -> Path:
    """A copy of an example with the packages that its lock names, from the npm registry."""
    copy = copied(name, folder)
    run(("npm", "ci", "--no-audit", "--no-fund"), copy)
    return copy


def run(
    command: Sequence[str | Path],
    folder: Path,
    environment: Mapping[str, str] | None = None,
    *,
    status: int = 0,
    text: str | None = None,
) -> str:
    """What the program prints when it is given ``text`` to read; it must end with ``status``."""
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        input=text,
        capture_output=True,
        text=True,
        timeout=PROGRAM_SECONDS,
        check=False,
    )
    assert done.returncode == status, f"{command}: {done.stdout[-3000:]}{done.stderr[-3000:]}"
    return done.stdout
