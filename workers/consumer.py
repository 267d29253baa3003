"""What receives messages: whatever somebody put into a queue, it stops nothing.

A message is only a hint, so one that cannot be read is dropped; Celery's own consumer would end the worker, put the
message back on its way out, and meet it again after the restart.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import structlog
from celery.worker.consumer import Consumer
from kombu.message import Message
from vine import promise

log = structlog.get_logger(__name__)

_UNREADABLE = (ValueError, TypeError, LookupError, AttributeError)
"""What reading a malformed message ends in; errors of the connection are none of these and go on as ever."""


class TolerantConsumer(Consumer):  # type: ignore[misc]
    """Celery's consumer, except that an unreadable message is dropped."""

    def create_task_handler(self, promise: type[promise] = promise) -> Callable[[Message], Any]:
        receive = super().create_task_handler(promise)

        def receive_or_drop(message: Message) -> Any:
            try:
                return receive(message)
            except _UNREADABLE as error:
                log.error("message_dropped", error=type(error).__name__)
                return message.reject_log_error(log, self.connection_errors)  # type: ignore[no-untyped-call]

        return receive_or_drop
