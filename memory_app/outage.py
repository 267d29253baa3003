"""Log lines of an outage: one when it begins or changes, then one now and again."""

from __future__ import annotations

import time
from threading import Lock

import structlog

from memory_app.errors import StoreUnavailable

log = structlog.get_logger(__name__)

AGAIN_SECONDS = 60.0


class OutageLog:
    """For a part that meets the same failure with every call. Safe between threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._reason = ""
        self._logged_at = 0.0

    def note(self, error: StoreUnavailable) -> None:
        """Log why the database is not there, unless that was logged a moment before."""
        now = time.monotonic()
        with self._lock:
            # Another reason is news, however soon it comes.
            if error.message == self._reason and now - self._logged_at < AGAIN_SECONDS:
                return
            self._reason, self._logged_at = error.message, now
        log.warning("database_unavailable", error=error.kind, reason=error.message)
