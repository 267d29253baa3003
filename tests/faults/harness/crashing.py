"""A worker whose tasks fail in ways that quote their arguments. Start it with ``celery -A harness.crashing``."""

from __future__ import annotations

import os
from threading import Lock
from typing import Any

from celery import bootsteps
from celery.exceptions import Ignore, Reject, Retry
from sqlalchemy import create_engine, text

from harness.canary import CANARY, MAIN_FALLS
from memory_app.errors import NotFound
from workers.app import app as app
from workers.app import settings
from workers.task import MemoryTask


class Unpicklable(Exception):
    """Cannot be sent from the child to the main process."""

    def __init__(self, words: str, other: str) -> None:
        super().__init__(words)
        self.other = other
        self.lock = Lock()


def crash(kind: str, words: str) -> str:
    """Fail as ``kind`` says, with the words in a local variable, an argument and the message."""
    quoted = f"a task that says {words}"
    if kind == "database":
        with create_engine(settings.database.url.get_secret_value()).begin() as connection:
            connection.execute(text("SELECT CAST(:words AS uuid)"), {"words": words})
    errors: dict[str, BaseException] = {
        "unexpected": ZeroDivisionError(quoted),
        "expected": NotFound(quoted),
        "unpicklable": Unpicklable(quoted, words),
        "group": ExceptionGroup(quoted, [FloatingPointError(quoted)]),
        "memory": MemoryError(quoted),
        "exit": SystemExit(quoted),
        "reject": Reject(quoted),
        "ignore": Ignore(quoted),
        "retry": Retry(quoted, when=60),
    }
    if kind in errors:
        raise errors[kind] from LookupError(quoted)
    return quoted


# Kombu's own transport: ours would drop what Celery and kombu are to stumble over.
app.conf.broker_transport = "redis"
app.task(crash, name="crash.ours", base=MemoryTask)
app.task(crash, name="crash.plain", ignore_result=True)


class FallingStep(bootsteps.StartStopStep):
    """A part of the worker's main process that falls over."""

    def start(self, _: Any) -> None:
        words = f"the main process says {CANARY}"
        raise ArithmeticError(words) from KeyError(words)


if MAIN_FALLS in os.environ:
    app.steps["worker"].add(FallingStep)
