"""Read the ticket of a turn, or wait until its stage is terminal."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from threading import Lock
from uuid import UUID

from memory_app.db.db import transaction
from memory_app.errors import NotFound, RateLimited
from memory_app.records.records import Stage
from memory_app.runtime import Runtime
from memory_app.tenancy.shards import where_stored
from memory_app.turns.rows import stages
from memory_app.turns.rows.stages import TicketRow
from memory_app.turns.waiting_for import waiting_for

TERMINAL = frozenset({Stage.EXTRACTED, Stage.FAILED})

# Below what proxies usually allow.
WAIT_LIMIT_SECONDS = 30.0
"""Longest wait in one call."""

# Each looks at its turn twice a second.
WAITERS_LIMIT = 16
"""Calls of a tenant that may wait at once in a process."""

FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.02, 0.5

_waiters: Counter[int] = Counter()
_lock = Lock()


@where_stored
def ticket(runtime: Runtime, tenant_id: int, turn_id: UUID, *, wait_seconds: float = 0.0) -> TicketRow:
    """The ticket of a turn; with ``wait_seconds`` (at most `WAIT_LIMIT_SECONDS`) as soon as its stage is terminal.

    Time that runs out is no error: the answer has the stage that was reached. Raises `NotFound`, or `RateLimited` when
    too many calls are waiting.
    """
    row = look(runtime, tenant_id, turn_id)
    if wait_seconds <= 0 or row.stage in TERMINAL:
        return explained(runtime, tenant_id, row)
    with waiting(tenant_id):
        for pause in pauses(wait_seconds):
            # No connection is held meanwhile.
            time.sleep(pause)
            row = look(runtime, tenant_id, turn_id)
            if row.stage in TERMINAL:
                break
    return explained(runtime, tenant_id, row)


def explained(runtime: Runtime, tenant_id: int, row: TicketRow) -> TicketRow:
    """The ticket, with what it waits for unless its stage is terminal."""
    if row.stage in TERMINAL:
        return row
    try:
        return replace(row, waiting_for=waiting_for(runtime, tenant_id, row.id))
    except NotFound:
        # It was forgotten a moment ago.
        return row


@contextmanager
def waiting(tenant_id: int) -> Iterator[None]:
    """A place among the tenant's calls that wait. Raises `RateLimited` when all are taken."""
    with _lock:
        if _waiters[tenant_id] >= WAITERS_LIMIT:
            raise RateLimited("too many calls are waiting; ask again, or without wait_seconds", retry_after=1)
        _waiters[tenant_id] += 1
    try:
        yield
    finally:
        with _lock:
            _waiters[tenant_id] -= 1
            # A process may meet any number of tenants.
            if not _waiters[tenant_id]:
                del _waiters[tenant_id]


def pauses(seconds: float) -> Iterator[float]:
    """Seconds to sleep between two looks, until ``seconds``, at most `WAIT_LIMIT_SECONDS`, are over."""
    end = time.monotonic() + min(seconds, WAIT_LIMIT_SECONDS)
    pause = FIRST_PAUSE_SECONDS
    while (remaining := end - time.monotonic()) > 0:
        yield min(pause, remaining)
        # Short at first: by rules a turn is extracted within a fraction of a second.
        pause = min(pause * 1.5, LONGEST_PAUSE_SECONDS)


@where_stored
def look(runtime: Runtime, tenant_id: int, turn_id: UUID) -> TicketRow:
    """The ticket as it is now. Raises `NotFound`."""
    with transaction(runtime.engine, tenant_id) as connection:
        ticket = stages.ticket(connection, turn_id)
    if ticket is None:
        raise NotFound(f"no turn {turn_id}", field="id")
    return ticket
