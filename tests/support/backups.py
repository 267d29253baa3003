"""A backup as an operator makes it: ``pg_dump`` into a file, and ``pg_restore`` into another database."""

from __future__ import annotations

import subprocess
from pathlib import Path

import psycopg

from memory_app.local.embedded import postgres


def dump(owner_url: str, path: Path) -> None:
    """Write the database to ``path`` in the custom format."""
    url = _libpq(owner_url)
    _run(url, "pg_dump", "--format=custom", f"--file={path}", f"--dbname={url}")


def restore(path: Path, owner_url: str) -> None:
    """Fill the empty database at ``owner_url`` from the dump."""
    url = _libpq(owner_url)
    _run(url, "pg_restore", "--exit-on-error", f"--dbname={url}", str(path))


def _libpq(url: str) -> str:
    return url.replace("postgresql+psycopg://", "postgresql://", 1)


def _run(url: str, program: str, *arguments: str) -> None:
    """With the programs of the server's own version: those of a newer one write what an older server refuses."""
    with psycopg.connect(url) as connection:
        version = str(connection.info.server_version // 10_000)
    command = [str(postgres.installed(version) / program), *arguments]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
