"""Spending: the tokens and the money that a tenant's questions to language models cost, by day."""

from __future__ import annotations

from memory_app.db.db import transaction
from memory_app.errors import InvalidInput
from memory_app.runtime import Runtime
from memory_app.tenancy.rows import usage
from memory_app.tenancy.rows.usage import UsageDay

DAYS_LIMIT = 366


def spending(runtime: Runtime, tenant_id: int, *, days: int = 30) -> tuple[UsageDay, ...]:
    """Calls, tokens and dollars per day (UTC) and model of the last ``days`` days, newest first."""
    if not 1 <= days <= DAYS_LIMIT:
        raise InvalidInput(f"days: 1 to {DAYS_LIMIT}", field="days")
    with transaction(runtime.directory.engine, tenant_id) as connection:
        return usage.by_day(connection, tenant_id, days=days)
