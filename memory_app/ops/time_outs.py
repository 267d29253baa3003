"""Whether a worker that waits for the database gives up before its lease is over.

One that waits longer is overtaken by another, which waits for the same. Each begins anew and none of them ends, so that
after a few starts the work looks as if it killed its workers, and is set aside.
"""

from __future__ import annotations

from memory_app.jobs import jobs
from memory_app.ops.check import Check, ok, warn
from memory_app.settings import Settings

NAME = "time-outs"

TO_DO = (
    "lower the time-out and run `memory migrate`, or raise the lease; otherwise work behind a long lock is lent again "
    "and again, and set aside as if it killed its workers"
)


def check(settings: Settings) -> Check:
    """Compares settings only; whether the time-outs are in force is the check of the session."""
    leases = _leases(settings)
    collisions = []
    for name, milliseconds in _time_outs(settings).items():
        seconds = milliseconds / 1000
        # A time-out of 0 is no limit, and so longer than any lease.
        longer = [
            f"{lease} ({lease_seconds:g} s)"
            for lease, lease_seconds in leases.items()
            if not 0 < seconds < lease_seconds
        ]
        if longer:
            wait = f"{seconds:g} s" if seconds else "0, which is no limit"
            collisions.append(f"{name} ({wait}) is not below {', '.join(longer)}")
    if collisions:
        return warn(NAME, "; ".join(collisions), to_do=TO_DO)
    return ok(NAME, "each wait for the database ends before the lease of any work")


def _time_outs(settings: Settings) -> dict[str, int]:
    """Milliseconds by setting; 0 is no limit."""
    database = settings.database
    return {
        "MEMORY_DATABASE__STATEMENT_TIMEOUT_MS": database.statement_timeout_ms,
        "MEMORY_DATABASE__LOCK_TIMEOUT_MS": database.lock_timeout_ms,
        "MEMORY_DATABASE__IDLE_TRANSACTION_TIMEOUT_MS": database.idle_transaction_timeout_ms,
    }


def _leases(settings: Settings) -> dict[str, float]:
    """Seconds for which each kind of work is borrowed."""
    return {
        "MEMORY_INDEX__LEASE_SECONDS": settings.index.lease_seconds,
        "MEMORY_EXTRACT__LEASE_SECONDS": settings.extract.lease_seconds,
        "MEMORY_EXTRACT__MODEL_LEASE_SECONDS": settings.extract.model_lease_seconds,
        "the lease of runs": jobs.LEASE.total_seconds(),
    }
