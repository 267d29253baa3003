"""The base of every task: one call to a service, errors turned into a log line, nothing retried by Celery.

What is to be done stands in rows; a failed task leaves its row due, and a finder sends the next hint.
"""

from __future__ import annotations

import time
from typing import Any

import structlog
from celery import Task
from celery.exceptions import SoftTimeLimitExceeded
from celery.worker.request import Request

from memory_app import correlation, metrics, tracing
from memory_app.errors import MemoryAppError, StoreUnavailable
from memory_app.outage import OutageLog

log = structlog.get_logger(__name__)

_outage = OutageLog()
"""Of this process."""


class DiscreetRequest(Request):  # type: ignore[misc]
    """A message as logs, events, inspection and Flower show it: ids, and nothing else of what it carries.

    Any producer may send a task, and Celery's own way of sending writes all arguments into the headers.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._argsrepr, self._kwargsrepr = "()", correlation.shown(self._kwargs)
        self._request_dict |= {"argsrepr": "()", "kwargsrepr": self._kwargsrepr}

    def send_event(self, type: str, **fields: Any) -> None:
        """The words and the traceback of an exception quote what it stumbled over; an event names its class."""
        if "exception" in fields:
            fields |= {"exception": str(fields["exception"]).partition("(")[0], "traceback": ""}
        super().send_event(type, **fields)

    def info(self, safe: bool = False) -> Any:
        # Safe: with the representations of the arguments as above, and not the arguments.
        return super().info(safe=True)


class OutOfMemory(Exception):
    """What a task raises instead of MemoryError. Its row stays due and is tried alone; three times set it aside."""


class MemoryTask(Task):  # type: ignore[misc]
    """Ids in, nothing out. Of the arguments only ids are shown, in logs, events and Flower alike."""

    abstract = True
    Request = "workers.task:DiscreetRequest"
    acks_late = False
    max_retries = 0
    ignore_result = True
    typing = False
    # Celery logs these in a line, without the traceback.
    throws = (MemoryAppError, SoftTimeLimitExceeded)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run, and log one line. Celery ends the whole worker when one task had too little memory; that task failing is
        enough."""
        started = time.monotonic()
        with correlation.task(correlation.parse_id(self.request.id), self.name) as work:
            try:
                answer = super().__call__(*args, **kwargs)
            except MemoryError as error:
                raise OutOfMemory("the task had too little memory") from error
            seconds = time.monotonic() - started
            metrics.tasks.labels(self.name, "done").inc()
            metrics.task_seconds.labels(self.name).observe(seconds)
            tracing.describe(task_id=str(work.task_id), **work.summary())
            # Most tasks only look whether there is something to do.
            say = log.info if work.has_effect else log.debug
            say("task_done", ms=round(seconds * 1000, 1), **work.summary(), **tracing.fields())
        return answer

    def apply_async(self, *args: Any, task_id: str | None = None, **options: Any) -> Any:
        """Send, with an id that begins with the time, and with the trace under way."""
        headers = tracing.carrier() | (options.pop("headers", None) or {})
        number = task_id or str(correlation.new_id())
        return super().apply_async(*args, task_id=number, headers=headers, **options)

    def on_failure(self, exc: Exception, task_id: str, args: Any, kwargs: Any, einfo: Any) -> None:
        """Say which task failed and how, never with what; the row stays due."""
        kind = exc.kind if isinstance(exc, MemoryAppError) else type(exc).__name__
        if isinstance(exc, StoreUnavailable):
            _outage.note(exc)
        metrics.tasks.labels(self.name, "failed").inc()
        log.error("task_failed", task=self.name, task_id=task_id, error=kind)
