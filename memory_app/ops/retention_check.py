"""What age takes: by the settings, by the limits of agents, and what of that is overdue; for doctor and status."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from sqlalchemy import Engine

from memory_app.db import db
from memory_app.db.directory import Directory
from memory_app.errors import MemoryAppError
from memory_app.jobs.rows.health import shown
from memory_app.ops.check import Check, fail, ok, warn
from memory_app.ops.rows import retention
from memory_app.ops.rows.retention import Limited
from memory_app.records.kinds import KINDS
from memory_app.settings import Settings

PERIODS = 2
"""So many periods of decay may pass before something counts as overdue: one until it is due, one to be done in."""


def look(settings: Settings, directory: Directory, tenants: Sequence[tuple[int, str]] | None) -> Check:
    """``tenants`` None: they are not known."""
    name, finding = "retention", _by_settings(settings)
    limits: list[str] = []
    late: list[str] = []
    try:
        places = directory.engines()
        for tenant_id, tenant in tenants or ():
            for agent in of_tenant(settings, directory.servers.home, places, tenant_id):
                limits.append(f"{tenant}/{agent.agent} keeps {limits_text(agent)}")
                if agent.overdue_turns or agent.late_people:
                    late.append(f"{tenant}/{agent.agent}: {overdue_text(agent)}")
    except MemoryAppError as error:
        return fail(name, error.message, to_do="mend Postgres first")
    if late:
        to_do = "see that Beat or a finder runs and workers of maintenance keep up; replay or discard failed turns"
        return warn(name, "; ".join(late), to_do=to_do)
    return ok(name, "; ".join([finding, *limits]))


def of_tenant(
    settings: Settings, home: Engine, places: Sequence[Engine], tenant_id: int
) -> tuple[Limited, ...]:
    """The agents of a tenant that have limits, with what is overdue in all of these shards together."""
    with db.transaction(home, tenant_id) as connection:
        agents = retention.limited(connection, tenant_id)
    if not agents:
        return ()
    grace = timedelta(hours=settings.schedule.decay_hours) * PERIODS
    total = agents
    for place in places:
        with db.transaction(place, tenant_id) as connection:
            counted = retention.overdue(connection, tenant_id, agents, grace=grace)
        total = tuple(one + other for one, other in zip(total, counted, strict=True))
    return total


def limits_text(agent: Limited) -> str:
    """``turns 30 days, episode 365 days``."""
    return ", ".join(f"{name} {days} days" for name, days in agent.days.items())


def overdue_text(agent: Limited) -> str:
    """What is overdue, in words; empty where nothing is."""
    parts = []
    if agent.overdue_turns:
        parts.append(f"{shown(agent.overdue_turns)} turns are past their limit")
    if agent.late_people:
        parts.append(f"decay of {shown(agent.late_people)} people is late")
    return ", ".join(parts)


def _by_settings(settings: Settings) -> str:
    expiring = ", ".join(name for name, kind in KINDS.items() if kind.expires)
    days = settings.index.daily_log_days
    lapse = f"turns leave the search after {days} days once a model has curated their session"
    return f"only {expiring} expire by age; {lapse}"
