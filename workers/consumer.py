"""What receives messages: whatever somebody put into a queue, it stops nothing.

The transport lets through only what looks like a message of ours. Should Celery still stumble over one, it is dropped:
its own consumer would end the worker, put the message back on its way out, and meet it again after the restart.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import structlog
from celery.worker.consumer import Consumer
from kombu.message import Message
from vine import promise

from memory_app.broker.message import UNREADABLE, Fault

log = structlog.get_logger(__name__)


class TolerantConsumer(Consumer):  # type: ignore[misc]
    """Celery's consumer, except that an unreadable message is dropped."""

    def create_task_handler(self, promise: type[promise] = promise) -> Callable[[Message], Any]:
        receive = super().create_task_handler(promise)

        def receive_or_drop(message: Message) -> Any:
            try:
                return receive(message)
            except UNREADABLE as error:
                log.error("message_dropped", error=type(error).__name__)
                message.channel.drop(Fault.UNREADABLE)
                return message.reject_log_error(log, self.connection_errors)  # type: ignore[no-untyped-call]

        return receive_or_drop
