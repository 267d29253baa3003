"""Bring a field of a model's answer into the form that is wanted, where its meaning is clear. Pure.

"8/10", "high", "80 %" and 0.8 are the same importance; a text may stand inside an object, a number in place of a text.
What is not clear raises `ValueError`, which pydantic turns into a fault of the field.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from memory_app.providers.chat import is_nothing, unwrapped

TEXT_KEYS = ("text", "label", "name", "value", "id")
"""Where the text stands in an object that a model wrote in place of a text."""

AMOUNT_CHARS = 40
"""So much of a text is searched for a number; digits without end would take for ever."""

_NUMBER = r"\d+(?:[.,]\d+)?"
_RATIO = re.compile(rf"({_NUMBER})\s*(?:/|of|out of)\s*({_NUMBER})")
_PLAIN = re.compile(rf"({_NUMBER})\s*(%?)")
_LEVELS = {
    "very high": 0.9,
    "very low": 0.1,
    "critical": 1.0,
    "extreme": 1.0,
    "certain": 1.0,
    "high": 0.8,
    "important": 0.8,
    "major": 0.8,
    "strong": 0.8,
    "medium": 0.5,
    "moderate": 0.5,
    "normal": 0.5,
    "average": 0.5,
    "low": 0.3,
    "minor": 0.3,
    "weak": 0.3,
}
"""Parts of the whole that words for a level mean. A longer name comes before one that it begins with."""

_LEVEL = re.compile(rf"({'|'.join(_LEVELS)})\b")


def words(value: object) -> str | None:
    """Return the text that ``value`` means, or None where it means none."""
    value = unwrapped(value)
    if is_nothing(value):
        return None
    if isinstance(value, Mapping):
        inner = (value[key] for key in TEXT_KEYS if isinstance(value.get(key), str))
        return next(inner, None)
    # In Python True is a number; in place of a text it says nothing.
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    return value if isinstance(value, str) else None


def sentence(value: object) -> str | None:
    """Return the text that ``value`` means, or None for one without a letter, which states nothing."""
    text = words(value)
    return text.strip() if text is not None and any(map(str.isalpha, text)) else None


def name_of(value: object) -> str:
    """Return ``value`` as one of our names is written: "Part of" is ``part_of``; empty for no text."""
    return re.sub(r"[\s-]+", "_", (words(value) or "").strip().lower())


def amount(value: object, full: float) -> float:
    """Return the number that ``value`` means on a scale up to ``full``, which is 1 or 10. Raises `ValueError`."""
    value = unwrapped(value)
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError("no number")
    text = str(value).strip()[:AMOUNT_CHARS].lower()
    level = _LEVEL.match(text)
    if level is not None:
        return _LEVELS[level[1]] * full
    ratio = _RATIO.search(text)
    if ratio is not None:
        whole = _number(ratio[2])
        return _number(ratio[1]) / whole * full if whole else 0.0
    plain = _PLAIN.search(text)
    if plain is None:
        raise ValueError("no number")
    number = _number(plain[1])
    if plain[2]:
        return number / 100 * full
    return 0.0 if text.startswith("-") else _on_scale(number, full)


def _on_scale(number: float, full: float) -> float:
    """``number`` on the scale up to ``full``, where it was given on another one."""
    if full > 1:
        # A part of the whole.
        return number * full if 0 < number < 1 else number
    # Out of ten, or per cent.
    if 2 <= number <= 10:
        return number / 10
    return number / 100 if 10 < number <= 100 else number


def _number(text: str) -> float:
    return float(text.replace(",", "."))
