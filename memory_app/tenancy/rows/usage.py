"""Tokens and money by tenant, day (UTC, by the database's clock) and model."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal

from sqlalchemy import Connection, Integer, bindparam, func, literal_column, select
from sqlalchemy.dialects.postgresql import insert

from memory_app.db.expressions import columns_of
from memory_app.db.tables.tenancy import usage


@dataclass(frozen=True, slots=True)
class Spent:
    """What a tenant has used today, and the database's clock."""

    tokens: int
    cost_usd: Decimal
    now: datetime


@dataclass(frozen=True, slots=True)
class UsageDay:
    """One model on one day."""

    day: date
    model: str
    calls: int
    tokens_in: int
    tokens_out: int
    cost_usd: Decimal


# Of the database's clock and in UTC: the clocks and zones of several workers would split a day differently.
_TODAY = literal_column("(now() AT TIME ZONE 'UTC')::date", usage.c.day.type)

_INSERT = insert(usage).values(day=_TODAY, calls=1)
_ADD = _INSERT.on_conflict_do_update(
    index_elements=usage.primary_key.columns,
    set_={
        name: usage.c[name] + _INSERT.excluded[name]
        for name in ("calls", "tokens_in", "tokens_out", "cost_usd")
    },
).inline()
_SPENT_TODAY = select(
    func.coalesce(func.sum(usage.c.tokens_in + usage.c.tokens_out), 0).label("tokens"),
    func.coalesce(func.sum(usage.c.cost_usd), 0).label("cost"),
    func.now().label("now"),
).where(usage.c.tenant_id == bindparam("tenant"), usage.c.day == _TODAY)
_DAYS = (
    select(*columns_of(usage, UsageDay))
    .where(usage.c.tenant_id == bindparam("tenant"), usage.c.day >= _TODAY - bindparam("days", type_=Integer))
    .order_by(usage.c.day.desc(), usage.c.model)
)


def add(
    connection: Connection, tenant_id: int, *, model: str, tokens_in: int, tokens_out: int, cost_usd: Decimal
) -> None:
    """Count one call."""
    values = {"model": model, "tokens_in": tokens_in, "tokens_out": tokens_out, "cost_usd": cost_usd}
    connection.execute(_ADD, {"tenant_id": tenant_id, **values})


def today(connection: Connection, tenant_id: int) -> Spent:
    row = connection.execute(_SPENT_TODAY, {"tenant": tenant_id}).one()
    return Spent(tokens=int(row.tokens), cost_usd=Decimal(row.cost), now=row.now)


def by_day(connection: Connection, tenant_id: int, *, days: int) -> tuple[UsageDay, ...]:
    """The latest ``days`` days, newest first."""
    rows = connection.execute(_DAYS, {"tenant": tenant_id, "days": days})
    return tuple(UsageDay(**row._mapping) for row in rows)
