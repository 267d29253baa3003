"""What Celery itself may write: which task and which error, never a message's body nor the words of an exception.

The words of an exception quote what it stumbled over: a database error its value, a failed validation its input.
"""

from __future__ import annotations

import logging

REFUSALS = "celery.worker.consumer.consumer"
OUTCOMES = "celery.app.trace"
PLACES = 3
"""Innermost places of a traceback that are named."""


def install() -> None:
    """Make Celery's loggers discreet; harmless when done before."""
    logging.getLogger(REFUSALS).addFilter(first_line_only)
    logging.getLogger(OUTCOMES).addFilter(without_words)


def first_line_only(record: logging.LogRecord) -> bool:
    """A refused message is reported with its whole body below the first line."""
    record.msg, record.args = record.getMessage().partition("\n")[0], ()
    record.exc_info = record.exc_text = None
    return True


def without_words(record: logging.LogRecord) -> bool:
    """A failed task is reported with the words of its exception: its type and place stay."""
    task = record.args if isinstance(record.args, dict) else {}
    if isinstance(record.exc_info, tuple) and record.exc_info[0] is not None:
        kind, places = record.exc_info[0].__name__, _places(record.exc_info[2])
        record.msg = f"Task {task.get('name')}[{task.get('id')}] raised {kind} at {' < '.join(places)}"
        record.args, record.exc_info = (), None
    elif "exc" in task:
        record.args = {**task, "exc": str(task["exc"]).partition("(")[0]}
    return True


def _places(traceback: object) -> list[str]:
    """The innermost places first. Celery hands over a copy of a traceback, so nothing of it is taken for granted."""
    places: list[str] = []
    while traceback is not None:
        code = getattr(getattr(traceback, "tb_frame", None), "f_code", None)
        file = str(getattr(code, "co_filename", "?")).rpartition("/")[2]
        places.append(f"{file}:{getattr(traceback, 'tb_lineno', '?')}")
        traceback = getattr(traceback, "tb_next", None)
    return places[: -PLACES - 1 : -1]
