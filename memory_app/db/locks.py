"""How long transactions wait for each other: statements that take a lock are timed, and waits that end badly counted.

A statement is timed from here, so a lock that is free counts with the way to the server and back. Waits that no
statement of ours asked for by name, such as that of an UPDATE for a row, are counted where they fail, under `ROWS`.
"""

from __future__ import annotations

import time
from typing import Any, Final, Literal, TypeVar, get_args

from sqlalchemy import Engine, Executable, event

from memory_app import metrics

Lock = Literal["agent", "name", "run", "scope", "session", "user", "webhooks"]
"""What a lock is on. ``name`` is that of a name which is being erased, or must not be meanwhile."""

ROWS: Final = "rows"
"""Locks that a statement takes by the way, on the rows that it writes."""

BRIEF_SECONDS: Final = 0.1
"""Longest wait of work that gives way and is tried again later."""

_OPTION = "lock"
_BEGAN = "lock_wait_began"
_REASONS = {"55P03": "timeout", "40P01": "deadlock"}
_GAVE_WAY = "gave_way"

# From the start, so that the first failure is a rise and not the beginning of a series.
for _lock in (*get_args(Lock), ROWS):
    for _reason in (*_REASONS.values(), _GAVE_WAY):
        metrics.lock_failures.labels(_lock, _reason)

Statement = TypeVar("Statement", bound=Executable)


def locking(lock: Lock, statement: Statement) -> Statement:
    """The statement, timed under this name: it does nothing but take the lock, or little else."""
    return statement.execution_options(**{_OPTION: lock})


def watch(engine: Engine) -> None:
    """Time and count the locks of what this engine executes."""
    event.listen(engine, "before_cursor_execute", _begin)
    event.listen(engine, "after_cursor_execute", _end)
    event.listen(engine, "handle_error", _fail)


def _begin(
    _connection: Any, _cursor: Any, _statement: str, _parameters: Any, context: Any, _many: bool
) -> None:
    setattr(context, _BEGAN, time.perf_counter())


def _end(
    _connection: Any, _cursor: Any, _statement: str, _parameters: Any, context: Any, _many: bool
) -> None:
    lock = context.execution_options.get(_OPTION)
    if lock is not None:
        metrics.lock_seconds.labels(lock).observe(_waited(context))


def _fail(error: Any) -> None:
    context = error.execution_context
    reason = _REASONS.get(getattr(error.original_exception, "sqlstate", None) or "")
    if context is None or reason is None:
        return
    waited = _waited(context)
    lock = context.execution_options.get(_OPTION)
    if lock is not None:
        metrics.lock_seconds.labels(lock).observe(waited)
    # Work that gives way does so by the same error, and is no sign of trouble.
    if reason == "timeout" and waited < 2 * BRIEF_SECONDS:
        reason = _GAVE_WAY
    metrics.lock_failures.labels(lock or ROWS, reason).inc()


def _waited(context: Any) -> float:
    return time.perf_counter() - getattr(context, _BEGAN, time.perf_counter())
