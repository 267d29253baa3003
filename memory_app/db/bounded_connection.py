"""A database connection that gives up when nothing comes back.

The server ends a statement that takes too long, but only while it can be reached. Behind a connection that is open and
dead (a proxy that hangs, a network that drops what it has acknowledged) a client would wait for ever: keepalives do not
see it, and every connection of a pool may be like that. So each wait has an end of its own, above the server's.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from typing import Any

import psycopg
from psycopg.abc import PQGen
from psycopg.waiting import Ready

MARGIN_SECONDS = 5.0
"""How much longer than the server's own limit the client waits for the server to say so."""


def bounded_connect(most_seconds: float) -> Callable[..., psycopg.Connection[Any]]:
    """What opens connections on which no answer is waited for longer than ``most_seconds``.

    A connection that gave up is closed, and `psycopg.OperationalError` is raised: the outcome is unknown.
    """

    class BoundedConnection(psycopg.Connection[Any]):
        def wait(self, gen: PQGen[Any], *args: Any, **kwargs: Any) -> Any:
            return super().wait(_until(gen, self, time.monotonic() + most_seconds), *args, **kwargs)

    return BoundedConnection.connect


def _until(gen: PQGen[Any], connection: psycopg.Connection[Any], deadline: float) -> Generator[Any, Any, Any]:
    """Pass ``gen`` through; psycopg wakes it up several times a second even when nothing has come."""
    try:
        state = next(gen)
        while True:
            ready = yield state
            # A long answer that is still arriving makes it ready, and goes on.
            if ready == Ready.NONE and time.monotonic() > deadline:
                # Closed, or the late answer would be read as that of the next statement.
                connection.pgconn.finish()
                raise psycopg.OperationalError("no answer within the time limit; the connection was given up")
            state = gen.send(ready)
    except StopIteration as finished:
        return finished.value
