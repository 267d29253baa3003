"""The package as people install it: a wheel and an sdist, and the client alone in an environment of its own.

Needs the package index, from which it takes the locked versions.
"""

from __future__ import annotations

import re
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path
from zipfile import ZipFile

import pytest
from api_server import serving
from built_package import build, environment_of, run

from memory_app.runtime import Runtime

ROOT = Path(__file__).parents[2]
SIZE_LIMIT_MB = 20
MODULES_LIMIT = 400
"""Loaded by an import of the client, those of Python included. Seconds would be those of a busy machine."""

SERVER_PACKAGES = (
    "celery",
    "numpy",
    "psycopg",
    "sqlalchemy",
    "fastapi",
    "redis",
    "openai",
    "typer",
    "pgvector",
)

pytestmark = [pytest.mark.system, pytest.mark.slow]

USE = """
import asyncio, sys
from memory_app.client import AsyncMemoryClient, MemoryClient, Scope

url, key = sys.argv[1:]
chat = Scope("ada", "noa", "chat-1")
with MemoryClient(url, key) as memory:
    memory.record(chat, "I keep bees.")
    memory.remember(chat, "Noa keeps bees.")
    print(memory.recall(chat, "bees", tiers=["facts"]).memories[0].text)
    print(len(list(memory.export_lines(user="noa"))) > 3)

async def main():
    async with AsyncMemoryClient(url, key) as memory:
        print(len((await memory.turns(chat)).turns))

asyncio.run(main())
print(*sorted({name.partition(".")[0] for name in sys.modules}))
"""

IMPORT_TIME = """
import sys, time
begun = time.process_time()
from memory_app.client import MemoryClient
print(time.process_time() - begun, len(sys.modules), "asyncio" in sys.modules)
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return build(tmp_path_factory.mktemp("built"))


@pytest.fixture(scope="module")
def installed(built: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel and what it asks for, without an extra and without pip."""
    folder = tmp_path_factory.mktemp("installed")
    return environment_of(folder / "venv", "-c", locked_versions(folder), built[0])


def locked_versions(folder: Path) -> Path:
    """The versions of the lock, as constraints of pip."""
    locked = re.findall(r"^[\w.\[\]-]+==\S+", (ROOT / "requirements.lock").read_text(encoding="utf-8"), re.M)
    constraints = folder / "constraints.txt"
    constraints.write_text("\n".join(re.sub(r"\[.*?\]", "", line) for line in locked), encoding="utf-8")
    return constraints


def site_packages(environment: Path) -> Path:
    (folder,) = environment.glob("lib/python3*/site-packages")
    return folder


def test_the_base_is_small_and_has_nothing_of_the_server(installed: Path) -> None:
    folder = site_packages(installed)
    files = [path for path in folder.rglob("*") if path.is_file()]
    # Python can compile these again, and pip can be told not to.
    megabytes = sum(path.stat().st_size for path in files if path.suffix != ".pyc") / 1e6
    with_compiled = sum(path.stat().st_size for path in files) / 1e6
    print(f"base install: {megabytes:.1f} MB, {with_compiled:.1f} MB with compiled files")
    names = {path.name.partition("-")[0] for path in folder.glob("*.dist-info")}
    print(f"packages: {', '.join(sorted(names))}")
    assert names & {name.replace("-", "_") for name in SERVER_PACKAGES} == set()
    assert megabytes < SIZE_LIMIT_MB


def test_an_import_of_the_client_loads_little(installed: Path) -> None:
    runs = [run(installed / "bin/python", "-c", IMPORT_TIME).stdout.split() for _ in range(7)]
    seconds, modules, has_asyncio = min(runs)
    print(f"import of the client: {float(seconds):.3f} s of CPU, {modules} modules")
    assert int(modules) < MODULES_LIMIT
    assert has_asyncio == "False"


def test_the_clients_work_without_the_server_packages(
    installed: Path, runtime: Runtime, api_key: str
) -> None:
    with serving(runtime) as port:
        done = run(installed / "bin/python", "-c", USE, f"http://127.0.0.1:{port}", api_key)
    *lines, loaded = done.stdout.splitlines()
    assert lines == ["Noa keeps bees.", "True", "1"]
    assert set(loaded.split()) & set(SERVER_PACKAGES) == set()


def test_what_needs_the_server_says_which_extra_brings_it(installed: Path) -> None:
    for arguments in ([], ["--help"], ["up"]):
        done = run(installed / "bin/memory", *arguments, status=1)
        assert "pip install 'memory-app[server]'" in done.stderr
        assert "Traceback" not in done.stderr
    done = run(installed / "bin/python", "-c", "from memory_app import MemoryApp", status=1)
    assert "pip install 'memory-app[server]'" in done.stderr
    assert "MemoryClient" in done.stderr


def packaged(names: Iterator[str] | list[str]) -> set[str]:
    """The files of our packages among those of an archive."""
    found = {re.sub(r"^memory_app-[^/]*/", "", name) for name in names}
    return {name for name in found if re.match(r"(memory_app|workers|migrations)/.*[^/]$", name)}


def test_wheel_and_sdist_have_all_files_of_the_packages(built: tuple[Path, Path]) -> None:
    wheel, tarball = built
    with ZipFile(wheel) as archive:
        in_wheel = packaged(archive.namelist())
    with tarfile.open(tarball) as archive:
        in_sdist = packaged([member.name for member in archive if member.isfile()])
    tracked = subprocess.run(
        ["git", "-C", ROOT, "ls-files"], capture_output=True, text=True, check=True
    ).stdout
    ours = {name for name in packaged(tracked.splitlines()) if (ROOT / name).is_file()}
    assert ours - in_wheel == set()
    assert in_sdist >= in_wheel
