"""What receives messages: whatever somebody put into a queue, it stops nothing.

The transport lets through only what looks like a message of ours. Should Celery still stumble over one, it is dropped:
its own consumer would end the worker, put the message back on its way out, and meet it again after the restart.
What Redis refuses is said in a sentence of ours, and tried again.
"""

from __future__ import annotations

import contextlib
import time
import warnings
from collections.abc import Callable
from typing import Any

import structlog
from celery.exceptions import CPendingDeprecationWarning
from celery.worker.consumer import Consumer
from kombu.message import Message
from vine import promise

from memory_app.broker.message import UNREADABLE, DropReason
from memory_app.hot.faults import translate

log = structlog.get_logger(__name__)


OFTEN_SECONDS = 10.0
PAUSE_SECONDS = 2.0
"""A connection that is refused again so soon is not tried again at once."""


class TolerantConsumer(Consumer):  # type: ignore[misc]
    """Celery's consumer, except that an unreadable message is dropped, and that nothing Redis says ends it."""

    _lost_at = float("-inf")

    def create_task_handler(self, promise: type[promise] = promise) -> Callable[[Message], Any]:
        receive = super().create_task_handler(promise)

        def receive_or_drop(message: Message) -> Any:
            try:
                return receive(message)
            except UNREADABLE as error:
                log.error("message_dropped", error=type(error).__name__)
                message.channel.drop(DropReason.UNREADABLE)
                return message.reject_log_error(log, self.connection_errors)  # type: ignore[no-untyped-call]

        return receive_or_drop

    def on_connection_error_after_connected(self, exc: Exception) -> None:
        """Say what Redis refuses, and begin anew: it may be mended while this process lives."""
        reason = translate(exc, self.app.conf.broker_transport_options["address"])
        log.error("broker_lost", reason=reason.message)
        with warnings.catch_warnings():
            # About a setting that we have chosen.
            warnings.simplefilter("ignore", CPendingDeprecationWarning)
            super().on_connection_error_after_connected(exc)
        # Something else stands under the name of a queue, and would be met again by every connection.
        if "WRONGTYPE" in str(exc):
            self._remove_misplaced()
        now = time.monotonic()
        if now - self._lost_at < OFTEN_SECONDS:
            time.sleep(PAUSE_SECONDS)
        self._lost_at = now

    def _remove_misplaced(self) -> None:
        """A failure here comes back with the next connection."""
        with (
            contextlib.suppress(*self.connection_errors, *self.channel_errors),
            self.app.connection_for_read() as connection,
        ):
            connection.default_channel.remove_misplaced()
