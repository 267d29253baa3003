"""What `memory doctor` says of transactions that wait for others, behind whom, and of those that somebody left open."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlalchemy import Engine

from memory_app.db import db, lock_waits
from memory_app.db.lock_waits import Blocker, IdleTransaction, LockWaits
from memory_app.errors import MemoryAppError
from memory_app.ops.check import Check, ok, warn

LONG_SECONDS = 1.0
"""Work that shares a scope waits for each other for some ms."""

IDLE_SECONDS = 30.0
"""No part of the product leaves a transaction open for as long, but for a reader who is slow."""

SHOWN = 3


def look(engine: Engine, owner: Engine | None) -> Iterator[Check]:
    """Two checks; none while the database is away, which has a check of its own.

    ``owner`` is asked where there is one, as it mostly sees more of the sessions of other roles.
    """
    try:
        with db.transaction(owner or engine, None) as connection:
            waits = lock_waits.waits(connection)
            blockers: Sequence[Blocker] = ()
            if waits.longest_seconds >= LONG_SECONDS:
                blockers = lock_waits.blockers(connection, limit=SHOWN)
            idle = lock_waits.idle_transactions(connection, seconds=IDLE_SECONDS, limit=SHOWN)
    except MemoryAppError:
        return
    yield _waits(waits, blockers)
    yield _idle(idle)


def _waits(waits: LockWaits, blockers: Sequence[Blocker]) -> Check:
    if waits.longest_seconds < LONG_SECONDS:
        return ok("locks", "nobody waits long for another")
    finding = f"sessions that wait: {waits.count}, the first for {waits.longest_seconds:.0f} s"
    if not blockers:
        return warn("locks", finding, to_do="look again: those who were waited for have just ended")
    behind = "; ".join(map(describe, blockers))
    return warn("locks", f"{finding}, behind {behind}", to_do=_to_do(blockers[0].pid))


def _idle(idle: Sequence[IdleTransaction]) -> Check:
    if not idle:
        return ok("open transactions", f"none is idle for more than {IDLE_SECONDS:.0f} s")
    sessions = (
        f"pid {row.pid} ({_facts(row.role, row.application)}, idle for {row.open_seconds:.0f} s)"
        for row in idle
    )
    return warn("open transactions", "; ".join(sessions), to_do=_to_do(idle[0].pid))


def _to_do(pid: int) -> str:
    return (
        "let that session commit or roll back, or end it, as a superuser or as its role: "
        f"SELECT pg_terminate_backend({pid})"
    )


def describe(blocker: Blocker) -> str:
    """In words: ``pid 4711 (role postgres, psql, idle in transaction for 312 s)``."""
    facts = _facts(blocker.role, blocker.application)
    if blocker.state is not None:
        since = "" if blocker.open_seconds is None else f" for {blocker.open_seconds:.0f} s"
        facts += f", {blocker.state}{since}"
    return f"pid {blocker.pid} ({facts})"


def _facts(role: str, application: str) -> str:
    return f"role {role}, {application}" if application else f"role {role}"
