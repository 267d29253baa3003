"""The package as it is published: a wheel and an sdist, and environments into which the wheel is installed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from documentation import ROOT


def run(
    *command: str | Path, cwd: Path | None = None, status: int = 0, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a command with nothing of this process's environment but what is given, and expect its exit status."""
    done = subprocess.run(
        list(map(str, command)),
        cwd=cwd,
        env={"PATH": "/usr/bin:/bin", "PIP_DISABLE_PIP_VERSION_CHECK": "1", **environment},
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode == status, f"{command}: {done.stdout[-2000:]}{done.stderr[-2000:]}"
    return done


def build(folder: Path) -> tuple[Path, Path]:
    """A wheel and an sdist of what is under version control."""
    source = folder / "source"
    source.mkdir()
    archive = subprocess.run(["git", "-C", ROOT, "ls-files", "-z"], capture_output=True, check=True).stdout
    for name in filter(None, archive.decode().split("\0")):
        if (ROOT / name).is_file():
            target = source / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes((ROOT / name).read_bytes())
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, source)
    tools = folder / "tools"
    run(sys.executable, "-m", "venv", tools)
    run(tools / "bin/pip", "install", "--quiet", "setuptools>=77")
    sdist = "import sys; from setuptools import build_meta; build_meta.build_sdist(sys.argv[1])"
    run(tools / "bin/python", "-c", sdist, folder, cwd=source)
    (wheel,), (tarball,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return wheel, tarball


def environment_of(folder: Path, *requirements: str | Path) -> Path:
    """A virtual environment with these requirements, and no pip of its own."""
    run(sys.executable, "-m", "venv", "--without-pip", folder)
    python = folder / "bin/python"
    run(sys.executable, "-m", "pip", "--python", python, "install", "--quiet", *requirements)
    return folder
