"""Count what is stored and how far the work has come, per tenant, for operators. No content."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import chain

from sqlalchemy import Engine

from memory_app.broker import dropped
from memory_app.broker.dropped import Dropped
from memory_app.db import db, inspection, lock_waits
from memory_app.db.directory import Directory
from memory_app.db.inspection import Amounts
from memory_app.db.lock_waits import LockWaits
from memory_app.errors import Transient
from memory_app.events.rows import webhooks
from memory_app.events.webhooks.records import WebhookState
from memory_app.jobs import workers_ping
from memory_app.jobs.life import Heard
from memory_app.jobs.rows import health
from memory_app.jobs.rows.health import DueWork, PipelineState
from memory_app.ops import process_checks, retention_check
from memory_app.ops.rows import status as rows
from memory_app.ops.rows.retention import Limited
from memory_app.ops.rows.status import JobOfDay, WaitingSession
from memory_app.runtime import app_servers
from memory_app.settings import Settings
from memory_app.tenancy.rows import keys, usage


@dataclass(frozen=True, slots=True)
class Activity:
    """What goes on for a tenant: sessions that wait, the jobs of the last day, what models cost it today (UTC), and
    which agents keep something for so many days only."""

    waiting: tuple[WaitingSession, ...]
    jobs: tuple[JobOfDay, ...]
    tokens_today: int
    dollars_today: Decimal
    limited: tuple[Limited, ...]


@dataclass(frozen=True, slots=True)
class Status:
    """``workers`` maps a worker to its queues, ``parts`` a kind of part to its signs of life. They and ``dropped`` are
    None while Redis is away. ``left_out`` says which shards are not counted, and why. ``due`` is the oldest work of
    each kind; ``webhooks`` counts all tenants', ``locks`` all sessions of the database."""

    left_out: tuple[str, ...]
    pipeline: PipelineState
    due: tuple[DueWork, ...]
    webhooks: WebhookState
    locks: LockWaits
    workers: Mapping[str, tuple[str, ...]] | None
    parts: Mapping[str, Heard] | None
    dropped: Dropped | None
    tenants: Mapping[str, Amounts]
    activity: Mapping[str, Activity]


def status(settings: Settings, *, tenant: str | None = None) -> Status:
    """The whole system, or one tenant of it. Without the owner's connection only a named tenant can be counted.

    Raises `StoreUnavailable` when the database is away.
    """
    directory = Directory(app_servers(settings))
    engine = directory.servers.home
    try:
        places = directory.engines()
        first, *others = [_pipeline(place) for place in places]
        pipeline = sum(others, first)
        with db.transaction(engine, None) as connection:
            hooks = webhooks.state(connection)
            waits = lock_waits.waits(connection)
        works = health.united(chain.from_iterable(map(_due, places)))
        amounts, activity = {}, {}
        # A transaction for each tenant: row-level security shows the rows of one at a time.
        for tenant_id, name in _tenants(settings, engine, tenant):
            amounts[name] = amounts_of(places, tenant_id)
            activity[name] = activity_of(settings, engine, places, tenant_id)
    finally:
        directory.servers.dispose()
    return Status(
        left_out=tuple(shard.difference for shard in directory.known() if shard.difference is not None),
        pipeline=pipeline,
        due=works,
        webhooks=hooks,
        locks=waits,
        workers=_workers(settings),
        parts=process_checks.signs(settings),
        dropped=_dropped(settings),
        tenants=amounts,
        activity=activity,
    )


def _pipeline(place: Engine) -> PipelineState:
    with db.transaction(place, None) as connection:
        return health.pipeline_state(connection)


def _due(place: Engine) -> tuple[DueWork, ...]:
    with db.transaction(place, None) as connection:
        return health.due_work(connection)


def amounts_of(places: Sequence[Engine], tenant_id: int) -> Amounts:
    """How much a tenant has in all of these shards together."""
    amounts = []
    for place in places:
        with db.transaction(place, tenant_id) as connection:
            amounts.append(inspection.amounts(connection))
    first, *others = amounts
    return sum(others, first)


def activity_of(settings: Settings, home: Engine, places: Sequence[Engine], tenant_id: int) -> Activity:
    """What goes on for a tenant in all of these shards together."""
    waiting: list[WaitingSession] = []
    jobs: list[JobOfDay] = []
    for place in places:
        with db.transaction(place, tenant_id) as connection:
            waiting += rows.waiting_sessions(connection)
            jobs += rows.jobs_of_day(connection)
    with db.transaction(home, tenant_id) as connection:
        spent = usage.today(connection, tenant_id)
    longest = sorted(waiting, key=lambda session: session.waited_seconds, reverse=True)
    return Activity(
        waiting=tuple(longest[: rows.SHOWN]),
        jobs=rows.united(jobs),
        tokens_today=spent.tokens,
        dollars_today=spent.cost_usd,
        limited=retention_check.of_tenant(settings, home, places, tenant_id),
    )


def _tenants(settings: Settings, engine: Engine, tenant: str | None) -> tuple[tuple[int, str], ...]:
    if tenant is not None:
        with db.transaction(engine, None) as connection:
            tenant_id = keys.find_tenant(connection, tenant)
        return () if tenant_id is None else ((tenant_id, tenant),)
    # Only the owner of the tables sees all tenants.
    if settings.database.owner_url is None:
        return ()
    owner = db.connect_owner(settings.database.owner_url.get_secret_value())
    try:
        with db.transaction(owner, None) as connection:
            return inspection.tenants(connection)
    finally:
        owner.dispose()


def _workers(settings: Settings) -> Mapping[str, tuple[str, ...]] | None:
    try:
        return workers_ping.consumers(settings.broker_address, prefix=settings.redis.prefix)
    except Transient:
        return None


def _dropped(settings: Settings) -> Dropped | None:
    drops = dropped.connect(settings.broker_address, prefix=settings.redis.prefix, timeout_seconds=3)
    try:
        return drops.read()
    except Transient:
        return None
    finally:
        drops.close()
