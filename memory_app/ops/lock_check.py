"""What `memory doctor` says of transactions that wait for others, and behind whom."""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import Engine

from memory_app.db import db, lock_waits
from memory_app.db.lock_waits import Blocker
from memory_app.errors import MemoryAppError
from memory_app.ops.check import Check, ok, warn

LONG_SECONDS = 1.0
"""Work that shares a scope waits for each other for some ms."""

SHOWN = 3


def look(engine: Engine) -> Iterator[Check]:
    """One check; none while the database is away, which has a check of its own."""
    try:
        with db.transaction(engine, None) as connection:
            waits = lock_waits.waits(connection)
            is_long = waits.longest_seconds >= LONG_SECONDS
            blockers = lock_waits.blockers(connection, limit=SHOWN) if is_long else ()
    except MemoryAppError:
        return
    if not is_long:
        yield ok("locks", "nobody waits long for another")
        return
    finding = f"sessions that wait: {waits.count}, the first for {waits.longest_seconds:.0f} s"
    if not blockers:
        yield warn("locks", finding, to_do="look again: those who were waited for have just ended")
        return
    behind = "; ".join(map(describe, blockers))
    to_do = (
        "let the session that holds the lock commit or roll back, or end it, as a superuser or as its role: "
        f"SELECT pg_terminate_backend({blockers[0].pid})"
    )
    yield warn("locks", f"{finding}, behind {behind}", to_do=to_do)


def describe(blocker: Blocker) -> str:
    """In words: ``pid 4711 (role postgres, psql, idle in transaction for 312 s)``."""
    facts = [f"role {blocker.role}"]
    if blocker.application:
        facts.append(blocker.application)
    if blocker.state is not None:
        since = "" if blocker.open_seconds is None else f" for {blocker.open_seconds:.0f} s"
        facts.append(f"{blocker.state}{since}")
    return f"pid {blocker.pid} ({', '.join(facts)})"
