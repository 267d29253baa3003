"""What calls cost: tokens, and money by a table of prices."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
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
"""Told of each call at once, so that a call whose answer was useless is counted too."""


@dataclass(frozen=True, slots=True)
class Price:
    """In US dollars per million tokens."""

    tokens_in: Decimal
    tokens_out: Decimal


def price_of(model: str, prices: Mapping[str, Price]) -> Price | None:
    """The row whose name is the longest beginning of ``model``: "gpt-x-mini" also prices "gpt-x-mini-2026"."""
    fitting = [name for name in prices if model.startswith(name)]
    return prices[max(fitting, key=len)] if fitting else None


def dollars(usage: Usage, prices: Mapping[str, Price]) -> Decimal:
    """What a call cost; 0 for a model without a price, such as one of your own."""
    price = price_of(usage.model, prices)
    if price is None:
        return Decimal(0)
    return (usage.tokens_in * price.tokens_in + usage.tokens_out * price.tokens_out) / MILLION
