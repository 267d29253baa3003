"""How tests are named: a rule in its words, short enough to be read in a report of failures."""

from __future__ import annotations

import ast
from pathlib import Path

TESTS = Path(__file__).parents[2]
LIMIT = 70
"""Characters that no name reaches, so that a definition with its fixtures mostly fits into one line."""


def names(path: Path) -> list[str]:
    return [
        part.name
        for part in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef) and part.name.startswith("test_")
    ]


def test_a_name_of_a_test_is_shorter_than_the_limit() -> None:
    tests = [(path, name) for path in sorted(TESTS.rglob("test_*.py")) for name in names(path)]
    assert len(tests) > 1000
    long = [f"{path.relative_to(TESTS)}: {name}" for path, name in tests if len(name) >= LIMIT]
    assert long == []
