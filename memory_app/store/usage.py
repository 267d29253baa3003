"""Tokens and money by tenant, day (UTC, by the database's clock) and model."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal

from sqlalchemy import Connection, text

_ADD = text(
    """
    INSERT INTO usage (tenant_id, day, model, calls, tokens_in, tokens_out, cost_usd)
    VALUES (:tenant, (now() AT TIME ZONE 'UTC')::date, :model, 1, :tokens_in, :tokens_out, :cost)
    ON CONFLICT (tenant_id, day, model) DO UPDATE SET
        calls = usage.calls + 1, tokens_in = usage.tokens_in + excluded.tokens_in,
        tokens_out = usage.tokens_out + excluded.tokens_out, cost_usd = usage.cost_usd + excluded.cost_usd
    """
)
_TODAY = text(
    """
    SELECT coalesce(sum(tokens_in + tokens_out), 0) AS tokens, coalesce(sum(cost_usd), 0) AS cost, now() AS now
    FROM usage WHERE tenant_id = :tenant AND day = (now() AT TIME ZONE 'UTC')::date
    """
)
_DAYS = text(
    """
    SELECT day, model, calls, tokens_in, tokens_out, cost_usd FROM usage
    WHERE tenant_id = :tenant AND day >= (now() AT TIME ZONE 'UTC')::date - CAST(:days AS integer)
    ORDER BY day DESC, model
    """
)


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


def add(
    connection: Connection, tenant_id: int, *, model: str, tokens_in: int, tokens_out: int, cost_usd: Decimal
) -> None:
    """Count one call."""
    values = {"model": model, "tokens_in": tokens_in, "tokens_out": tokens_out, "cost": cost_usd}
    connection.execute(_ADD, {"tenant": tenant_id, **values})


def today(connection: Connection, tenant_id: int) -> Spent:
    row = connection.execute(_TODAY, {"tenant": tenant_id}).one()
    return Spent(int(row.tokens), Decimal(row.cost), row.now)


def by_day(connection: Connection, tenant_id: int, *, days: int) -> tuple[UsageDay, ...]:
    """The latest ``days`` days, newest first."""
    rows = connection.execute(_DAYS, {"tenant": tenant_id, "days": days})
    return tuple(UsageDay(**row._mapping) for row in rows)
