"""How the page writes times, counts and durations. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Final

from markupsafe import Markup

from memory_app.ops.retention_check import limits_text, overdue_text

_UNITS = ((86_400.0, "d"), (3_600.0, "h"), (60.0, "min"))


def duration(seconds: float) -> str:
    """``0.4 s``, ``12 s``, ``3 min``, ``2 h 5 min``, ``4 d``."""
    if seconds < 10:
        return f"{max(seconds, 0):.1f} s"
    if seconds < 60:
        return f"{seconds:.0f} s"
    for size, unit in _UNITS:
        if seconds >= size:
            whole, rest = divmod(seconds, size)
            minutes = f" {rest // 60:.0f} min" if unit == "h" and rest >= 60 else ""
            return f"{whole:.0f} {unit}{minutes}"
    raise AssertionError("a minute or more has a unit")


def instant(value: datetime | None) -> str:
    """``2026-11-30 09:12`` in UTC, as an element that machines can read; a dash for none."""
    if value is None:
        return "–"
    at = value.astimezone(UTC)
    return Markup('<time datetime="{}">{}</time>').format(
        at.isoformat(timespec="seconds"), at.strftime("%Y-%m-%d %H:%M")
    )


def day(value: datetime | None) -> str:
    """``2026-11-30``; a dash for none."""
    return "–" if value is None else value.astimezone(UTC).strftime("%Y-%m-%d")


def number(value: float) -> str:
    """With thin spaces between thousands."""
    return f"{value:,}".replace(",", "\N{NARROW NO-BREAK SPACE}")


def plural(count: float, one: str, several: str | None = None) -> str:
    """``1 turn``, ``2 turns``."""
    return f"{number(count)} {one if count == 1 else several or one + 's'}"


def dollars(amount: Decimal) -> str:
    """``$0.0123``."""
    return f"${amount:.4f}"


def excerpt(text: str, limit: int = 280) -> str:
    """The beginning of a text that is too long for a list."""
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


def capitalize_first(sentence: str) -> str:
    """With a capital letter at its beginning, and all else as it is."""
    return sentence[:1].upper() + sentence[1:]


FILTERS: Final[Mapping[str, Callable[..., Any]]] = {
    "duration": duration,
    "instant": instant,
    "day": day,
    "number": number,
    "plural": plural,
    "excerpt": excerpt,
    "capitalize_first": capitalize_first,
    "limits": limits_text,
    "overdue": overdue_text,
}
