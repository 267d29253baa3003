"""A pause between two logins that fail, so that a server that is away holds up nobody for a time-out each time."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

import psycopg

from memory_app.db.bounded_connection import BoundedConnection

FIRST_SECONDS, LONGEST_SECONDS = 0.5, 15.0


@dataclass(slots=True)
class LoginPause:
    """Doubles with each login that fails. Safe between threads."""

    _failure: psycopg.Error | None = None
    _seconds: float = 0.0
    _until: float = 0.0
    _lock: Lock = field(default_factory=Lock)

    def between(self, connect: Callable[..., BoundedConnection]) -> Callable[..., BoundedConnection]:
        """The same, which fails at once with the last failure while the pause lasts."""

        def try_to_connect(*args: Any, **options: Any) -> BoundedConnection:
            with self._lock:
                failure = self._failure
                is_pausing = time.monotonic() < self._until
            if failure is not None and is_pausing:
                raise type(failure)(*failure.args)
            try:
                connection = connect(*args, **options)
            except psycopg.Error as error:
                with self._lock:
                    self._failure = error
                    self._seconds = min(max(self._seconds * 2, FIRST_SECONDS), LONGEST_SECONDS)
                    self._until = time.monotonic() + self._seconds
                raise
            with self._lock:
                self._failure, self._seconds, self._until = None, 0.0, 0.0
            return connection

        return try_to_connect
