"""What is read of a tenant before its turns are accepted, in one statement: how many of them wait, and its limits.

The backlog limit: a tenant whose turns pile up gets 429 before anything is accepted, not an endless queue after.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from threading import Lock

from sqlalchemy import Connection, Engine, text

from memory_app import metrics
from memory_app.db.db import transaction
from memory_app.db.shards import directory_of, unbound
from memory_app.errors import RateLimited
from memory_app.records.limits import NO_LIMITS, Limits, stored_limits

KNOWN_SECONDS = 2.0
"""How long a count is trusted; the limit is a brake, not a promise to the turn."""

RETRY_AFTER_SECONDS = 5.0


@dataclass(slots=True)
class Backlog:
    """The latest counts of this process, by tenant. Safe between threads."""

    limit: int
    _known: dict[int, tuple[float, int, Limits]] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def admit(self, engine: Engine, tenant_id: int) -> Limits:
        """The limits of a tenant that may hand over more; `RateLimited` while too many of its turns wait to be
        indexed."""
        now = time.monotonic()
        with self._lock:
            counted_at, waiting, limits = self._known.get(tenant_id, (-KNOWN_SECONDS, 0, NO_LIMITS))
        # Counted outside of the lock: two threads may count at once, and none waits for the other's query.
        if now - counted_at >= KNOWN_SECONDS:
            with transaction(unbound(engine), tenant_id) as connection:
                waiting, limits = backlog(connection, tenant_id, limit=self.limit)
            with self._lock:
                self._known[tenant_id] = (now, waiting, limits)
        if waiting >= self.limit:
            metrics.limited.labels("backlog").inc()
            raise RateLimited(
                f"{waiting} accepted turns wait to be indexed; slow down", retry_after=RETRY_AFTER_SECONDS
            )
        return limits


# Whoever is over the limit by a million waits no longer for this count than at the limit.
_WAITING = """SELECT count(*) FROM (
        SELECT FROM turns WHERE indexed_at IS NULL AND failed_at IS NULL LIMIT :limit) AS w"""
_LIMITS = "SELECT limits FROM public.tenants WHERE id = :tenant"
_BACKLOG = text(f"SELECT ({_WAITING}) AS waiting, ({_LIMITS}) AS limits")


def backlog(connection: Connection, tenant_id: int, *, limit: int) -> tuple[int, Limits]:
    """Accepted turns of this tenant that are not indexed yet, counted to ``limit`` and no further; and its limits."""
    values = {"tenant": tenant_id, "limit": limit}
    directory = directory_of(connection)
    if directory is connection:
        row = connection.execute(_BACKLOG, values).one()
        return row.waiting, stored_limits(row.limits or {})
    waiting = connection.execute(text(_WAITING), values).scalar_one()
    return waiting, stored_limits(directory.execute(text(_LIMITS), values).scalar_one_or_none() or {})
