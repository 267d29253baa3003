"""A database connection that gives up when nothing comes back, and that says more than BEGIN in one round trip.

The server ends a statement that takes too long, but only while it can be reached. Behind a connection that is open and
dead (a proxy that hangs, a network that drops what it has acknowledged) a client would wait for ever: keepalives do not
see it, and every connection of a pool may be like that. So each wait has an end of its own, above the server's.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from typing import Any

import psycopg
from psycopg import generators
from psycopg.abc import PQGen
from psycopg.pq import ExecStatus, TransactionStatus
from psycopg.waiting import Ready

MARGIN_SECONDS = 5.0
"""How much longer than the server's own limit the client waits for the server to say so."""


# Not public, and there is no other way to let a statement go with the BEGIN that psycopg sends before the first one of
# a transaction. A release without it fails here: a transaction without its tenant would find nothing.
_START_QUERY = psycopg.Connection._start_query


class BoundedConnection(psycopg.Connection[Any]):
    """A connection whose transactions may begin with more than BEGIN."""

    begins_with: bytes | None = None
    """The statements that begin the next transaction, BEGIN first; None: BEGIN alone."""

    def _start_query(self) -> PQGen[None]:
        begins_with = self.begins_with
        if begins_with is None or self.autocommit or self.pgconn.transaction_status != TransactionStatus.IDLE:
            yield from _START_QUERY(self)
            return
        self.pgconn.send_query(begins_with)
        for result in (yield from generators.execute(self.pgconn)):
            if result.status == ExecStatus.FATAL_ERROR:
                raise psycopg.errors.error_from_result(result, encoding=self.info.encoding)


def bounded_connect(most_seconds: float | None) -> Callable[..., BoundedConnection]:
    """What opens connections on which no answer is waited for longer than ``most_seconds``; None: as long as it takes.

    A connection that gave up is closed, and `psycopg.OperationalError` is raised: the outcome is unknown.
    """

    if most_seconds is None:
        return BoundedConnection.connect
    limit_seconds = most_seconds

    class TimedConnection(BoundedConnection):
        def wait(self, gen: PQGen[Any], *args: Any, **kwargs: Any) -> Any:
            return super().wait(_until(gen, self, time.monotonic() + limit_seconds), *args, **kwargs)

    return TimedConnection.connect


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
