"""Every statement of a module that takes a lock and waits for it is timed under the name of what it locks."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from typing import Any

from sqlalchemy import Select, TextClause
from sqlalchemy.dialects import postgresql

ROOT = Path(__file__).parents[3]
TAKES_A_LOCK = re.compile(
    r"^\s*SELECT\b.*(\bFOR (NO KEY |KEY )?(UPDATE|SHARE)\b|pg_advisory_xact_lock)", re.S
)
"""Statements that change rows do more than wait, so their time would say nothing of locks."""


def statements() -> dict[str, Select[Any] | TextClause]:
    modules = sorted((ROOT / "memory_app").glob("**/rows/*.py"))
    names = [".".join(path.relative_to(ROOT).with_suffix("").parts) for path in modules]
    return {
        f"{name}.{attribute}": value
        for name in names
        for attribute, value in vars(import_module(name)).items()
        if isinstance(value, Select | TextClause)
    }


def test_statements_that_wait_for_a_lock_are_timed() -> None:
    texts = {
        name: str(statement.compile(dialect=postgresql.dialect())) for name, statement in statements().items()
    }
    locking = {
        name for name, sql in texts.items() if TAKES_A_LOCK.search(sql) and "SKIP LOCKED" not in sql.upper()
    }

    assert len(locking) > 15
    assert {name for name in locking if "lock" not in statements()[name].get_execution_options()} == set()
