"""Upkeep: delete runs that are of no use any more, a few hundred at a time.

A run is kept for some days after it ended; longer while what it did can be undone, or while a memory names it as the
question to a language model that it came from.
"""

from __future__ import annotations

import time
from collections import defaultdict
from datetime import timedelta
from uuid import UUID

import structlog

from memory_app.db.db import transaction
from memory_app.jobs.rows import runs
from memory_app.records.run import RunName
from memory_app.runtime import Runtime
from memory_app.tenancy import shards
from memory_app.turns.extractor import RULES

log = structlog.get_logger(__name__)

BATCH = 500
MOST_SECONDS = 60.0
"""The next look goes on where this one ended."""

UNDONE_ANY_TIME = (RunName.MERGE_ENTITIES,)
"""Names of runs whose undo rests on their report alone."""


def tidy(runtime: Runtime) -> int:
    """Delete runs that ended longer ago than the setting says and are of no use any more; how many went.

    Two calls at once take different runs.
    """
    return sum(shards.in_usable(runtime, _tidy))


def _tidy(runtime: Runtime) -> int:
    age = timedelta(days=runtime.settings.schedule.keep_runs_days)
    until = time.monotonic() + MOST_SECONDS
    dropped = 0
    while time.monotonic() < until:
        # Batch by batch, so that no lock is held for long and what is done stays done.
        with transaction(runtime.engine, None) as connection:
            old = runs.old(connection, age=age, most=BATCH)
        by_tenant: dict[int, list[UUID]] = defaultdict(list)
        for run in old:
            by_tenant[run.tenant_id].append(run.run_id)
        for tenant_id, ids in by_tenant.items():
            with transaction(runtime.engine, tenant_id) as connection:
                dropped += runs.drop(
                    connection,
                    ids,
                    undone_any_time=UNDONE_ANY_TIME,
                    no_model=RULES,
                )
        # The number looked at counts, not the number dropped, because all of a batch may be kept.
        if len(old) < BATCH:
            break
    if dropped:
        log.info("runs_dropped", runs=dropped)
    return dropped
