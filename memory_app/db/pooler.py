"""Whether a pooler such as PgBouncer stands between us and the server.

A pooler answers for the server at login and names a process id of its own making; the process that does the work has
another. In its transaction mode the next transaction may meet another process, which knows no statement that was
prepared before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psycopg

Driver = psycopg.Connection[Any]


def is_pooled(driver: Driver) -> bool:
    """Whether the process that works is not the one that took the login. One round trip, outside of a transaction."""
    return _process(driver) != driver.info.backend_pid


def shares_processes(driver: Driver, open_another: Callable[[], Driver]) -> bool:
    """Whether a pooler gives a connection's process to others between transactions, or another to it.

    A pooler in session mode keeps one for each connection, and is as good as none. ``open_another`` connects as
    ``driver`` did; where that fails or waits in vain, ``driver`` has its process for itself.
    """
    # Twice, since a busy pooler may give another process the second time.
    own = {_process(driver), _process(driver)}
    if len(own) > 1:
        return True
    try:
        with open_another() as other:
            return _process(other) in own or _process(driver) not in own
    except psycopg.OperationalError:
        return False


def _process(driver: Driver) -> int:
    """Id of the server's process that runs the next transaction."""
    # Without a transaction around it: inside of one, no pooler changes the process.
    before, driver.autocommit = driver.autocommit, True
    try:
        row = driver.execute("SELECT pg_backend_pid()", prepare=False).fetchone()
    finally:
        driver.autocommit = before
    assert row is not None
    return int(row[0])
