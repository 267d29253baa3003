"""Logging: one event name, ids, counts and durations per line. What a person said never enters a log.

All that a process writes when something goes wrong passes `log_redaction`: loggers of other libraries, exceptions that
nobody caught, in whatever thread, and warnings.
"""

from __future__ import annotations

import logging
import sys
import threading
import warnings
from collections.abc import Collection
from types import TracebackType
from typing import Any, Literal

import structlog

from memory_app.log_redaction import redactor

log = structlog.get_logger(__name__)

QUIET = (
    "kombu",
    "amqp",
    "celery.redirected",
    "alembic",
    "huggingface_hub",
    "httpcore",
    "httpcore2",
    "httpx2",
)
"""Loggers that say much and little of use. They get a word in when something is wrong."""

BUSY = ("celery.app.trace", "celery.worker.strategy")
"""Loggers with a line or two for each task, of which ours say one; they are heard at the level DEBUG."""


def configure(*, level: str, form: Literal["json", "console"], names: Collection[str] = ()) -> None:
    """Send all loggers, warnings and uncaught exceptions of this process to standard error, in one form.

    ``names`` are words of ours that a message of another library may show: those of tasks and queues.
    """
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    renderer: structlog.typing.Processor = (
        structlog.processors.JSONRenderer() if form == "json" else structlog.dev.ConsoleRenderer(colors=False)
    )
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[
                redactor(names),
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                renderer,
            ],
            # The text of a message and its arguments apart, as the redactor wants them.
            use_get_message=False,
            pass_foreign_args=True,
        )
    )
    root = logging.getLogger()
    # In the place of whatever a library has put there already: that would write words.
    root.handlers[:] = [handler]
    root.setLevel(level)
    for name in QUIET if level == "DEBUG" else QUIET + BUSY:
        logging.getLogger(name).setLevel("WARNING")
    _catch_the_rest(handler)


def _catch_the_rest(handler: logging.Handler) -> None:
    """Whatever Python would print by itself goes through the loggers: it would print words."""
    logging.lastResort = (
        handler  # For loggers that have no handler and pass nothing on, such as multiprocessing.
    )
    # Else a message that cannot be formatted is printed with its arguments.
    logging.raiseExceptions = False
    # Celery does so later, and must find it done.
    logging.captureWarnings(True)
    warnings.showwarning = _log_warning
    sys.excepthook = _log_uncaught
    sys.unraisablehook = _log_unraisable
    threading.excepthook = _log_uncaught_in_thread


def _log_warning(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, *_: Any, **__: Any
) -> None:
    log.warning("warning", category=category.__name__, at=[f"{filename}:{lineno}"])


def _log_uncaught(_: type[BaseException], error: BaseException, __: TracebackType | None) -> None:
    log.critical("uncaught_exception", exc_info=error)


def _log_unraisable(unraisable: sys.UnraisableHookArgs) -> None:
    log.error("exception_ignored", exc_info=unraisable.exc_value)


def _log_uncaught_in_thread(hook: threading.ExceptHookArgs) -> None:
    # As threading's own hook has it: a thread may end so.
    if hook.exc_type is not SystemExit:
        log.error("uncaught_exception", thread=hook.thread and hook.thread.name, exc_info=hook.exc_value)
