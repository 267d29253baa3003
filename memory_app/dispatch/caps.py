"""Let the work go on that waited for a tenant's cap, as soon as the cap is raised or a new day begins."""

from __future__ import annotations

import structlog

from memory_app.db.db import transaction
from memory_app.extraction import model_calls
from memory_app.jobs.rows import runs
from memory_app.runtime import Runtime
from memory_app.tenancy import shards
from memory_app.turns.rows import extract_work, sessions

log = structlog.get_logger(__name__)

TENANTS = 100
"""Looked at in one call and shard; another call begins with others."""


def free_below_cap(runtime: Runtime) -> int:
    """Make sessions and runs due whose tenant is below its cap again; how many.

    They are told from those that wait for another reason by a mark of their own. What failed before it met the cap
    goes on, too.
    """
    return sum(shards.in_usable(runtime, _free_below_cap))


def _free_below_cap(runtime: Runtime) -> int:
    with transaction(runtime.engine, None) as connection:
        tenants = extract_work.capped_tenants(connection, most=TENANTS)
    freed = 0
    # One by one: row-level security shows what a tenant spent to that tenant alone.
    for tenant_id in tenants:
        if model_calls.cap_wait(runtime, tenant_id) > 0:
            continue
        with transaction(runtime.engine, tenant_id) as connection:
            freed += sessions.free_capped(connection, tenant_id) + runs.free_capped(connection, tenant_id)
    if freed:
        log.info("cap_lifted", freed=freed)
    return freed
