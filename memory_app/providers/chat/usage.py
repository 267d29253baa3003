"""Compute what calls cost: tokens, and money by a table of prices."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from decimal import Decimal

MILLION = Decimal(1_000_000)


@dataclass(frozen=True, slots=True)
class Usage:
    """One call of a provider, paid for whether or not its answer could be used."""

    model: str
    tokens_in: int
    tokens_out: int
    seconds: float


OnUsage = Callable[[Usage], None]
"""Called after each call at once, so that a call whose answer was useless is counted too."""


@dataclass(frozen=True, slots=True)
class Price:
    """In US dollars per million tokens."""

    tokens_in: Decimal
    tokens_out: Decimal


def price_of(model: str, prices: Mapping[str, Price]) -> Price | None:
    """Return the row whose name is the longest beginning of ``model``: "gpt-x-mini" also prices "gpt-x-mini-2026"."""
    fitting = [name for name in prices if model.startswith(name)]
    return prices[max(fitting, key=len)] if fitting else None


def dollars(usage: Usage, prices: Mapping[str, Price]) -> Decimal:
    """Return what a call cost in US dollars; 0 for a model without a price, such as one of your own."""
    price = price_of(usage.model, prices)
    if price is None:
        return Decimal(0)
    return (usage.tokens_in * price.tokens_in + usage.tokens_out * price.tokens_out) / MILLION


@dataclass(frozen=True, slots=True)
class Cap:
    """What a tenant may spend in one day (UTC); None for no limit."""

    tokens_per_day: int | None = None
    dollars_per_day: Decimal | None = None

    def is_reached(self, tokens: int, spent: Decimal) -> bool:
        over_tokens = self.tokens_per_day is not None and tokens >= self.tokens_per_day
        over_dollars = self.dollars_per_day is not None and spent >= self.dollars_per_day
        return over_tokens or over_dollars


def wait_for_cap(tokens: int, spent: Decimal, cap: Cap, *, now: datetime) -> float:
    """Return the seconds until a tenant that used ``tokens`` and ``spent`` dollars today may ask again; 0 for at once.

    Work that waits for its cap is postponed, never given up: it does not fail, and its waiting is no error's age.
    """
    if not cap.is_reached(tokens, spent):
        return 0.0
    # The table of usage counts by days in UTC, wherever the tenant is.
    today = now.astimezone(UTC)
    tomorrow = datetime.combine(today.date() + timedelta(days=1), time(0), tzinfo=UTC)
    return (tomorrow - today).total_seconds()
