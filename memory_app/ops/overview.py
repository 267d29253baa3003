"""What goes on for one tenant, for the page: what waits and failed now, and what the last days brought. No content."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Engine

from memory_app.db.db import transaction
from memory_app.db.inspection import Amounts
from memory_app.db.shards import HOME
from memory_app.errors import MemoryAppError
from memory_app.jobs import life
from memory_app.jobs.life import Heard
from memory_app.jobs.rows.health import DueWork
from memory_app.ops import health, status
from memory_app.ops.rows import status as rows
from memory_app.ops.rows.status import RunLine, WaitingSession
from memory_app.ops.status import Activity
from memory_app.runtime import Runtime
from memory_app.tenancy.rows.usage import UsageDay
from memory_app.tenancy.usage import spending
from memory_app.turns.failed import failed
from memory_app.turns.rows.failed_turns import FailedTurn

FAILED_SHOWN = 20
SPENDING_DAYS = 30


@dataclass(frozen=True, slots=True)
class Now:
    """``heard`` are the processes of each kind of part; None while Redis is away. ``due`` is the oldest work of each
    kind over all tenants; the rest is of the tenant."""

    heard: Mapping[str, Heard] | None
    due: tuple[DueWork, ...]
    waiting: tuple[WaitingSession, ...]
    failed: tuple[FailedTurn, ...]
    open_runs: tuple[RunLine, ...]


@dataclass(frozen=True, slots=True)
class LastDays:
    """What there is, what the jobs of the last day brought, and what models cost by day."""

    amounts: Amounts
    activity: Activity
    failed_runs: tuple[RunLine, ...]
    spending: tuple[UsageDay, ...]


def now(runtime: Runtime, tenant_id: int) -> Now:
    """What waits and what failed. Reads little, so that it may be asked again every few seconds."""
    waiting: list[WaitingSession] = []
    open_runs: list[RunLine] = []
    for place in _places(runtime):
        with transaction(place, tenant_id) as connection:
            waiting += rows.waiting_sessions(connection)
            open_runs += rows.open_runs(connection)
    return Now(
        heard=_heard(runtime),
        due=health.due_now(runtime),
        waiting=tuple(sorted(waiting, key=lambda row: -row.waited_seconds)[: rows.SHOWN]),
        failed=failed(runtime, tenant_id, limit=FAILED_SHOWN),
        open_runs=tuple(sorted(open_runs, key=lambda row: row.created_at)[: rows.SHOWN]),
    )


def last_days(runtime: Runtime, tenant_id: int) -> LastDays:
    """What there is and what was done. Counts all turns of the tenant, so it takes longer the more there are."""
    places = _places(runtime)
    failed_runs: list[RunLine] = []
    for place in places:
        with transaction(place, tenant_id) as connection:
            failed_runs += rows.failed_runs(connection)
    return LastDays(
        amounts=status.amounts_of(places, tenant_id),
        activity=status.activity_of(runtime.settings, runtime.at(HOME).engine, places, tenant_id),
        failed_runs=tuple(sorted(failed_runs, key=lambda row: row.created_at, reverse=True)[: rows.SHOWN]),
        spending=spending(runtime, tenant_id, days=SPENDING_DAYS),
    )


def _places(runtime: Runtime) -> Sequence[Engine]:
    return [runtime.at(shard.id).engine for shard in runtime.directory.usable()]


def _heard(runtime: Runtime) -> Mapping[str, Heard] | None:
    try:
        return life.listen(runtime.hot)
    except MemoryAppError:
        return None
