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
    """Return the text that ``value`` means, or None where it means none.

    ``{"id": "t1", "said": true}`` and ``["t1"]`` mean "t1"; a number means its digits.
    """
    value = unwrapped(value)
    if is_nothing(value):
        return None
    if isinstance(value, Mapping):
        return _text_inside(value)
    if isinstance(value, str):
        return value
    return str(value) if _is_number(value) else None


def _text_inside(value: Mapping[str, object]) -> str | None:
    """The first text under one of `TEXT_KEYS`."""
    for key in TEXT_KEYS:
        text = value.get(key)
        if isinstance(text, str):
            return text
    return None


def _is_number(value: object) -> bool:
    # In Python True is a number; in an answer it is neither a text nor an amount.
    if isinstance(value, bool):
        return False
    return isinstance(value, int | float)


def sentence(value: object) -> str | None:
    """Return the text that ``value`` means, or None for one without a letter, which states nothing."""
    text = words(value)
    if text is None:
        return None
    has_letter = any(map(str.isalpha, text))
    if not has_letter:
        return None
    return text.strip()


def name_of(value: object) -> str:
    """Return ``value`` as one of our names is written: "Part of" is ``part_of``; empty for no text."""
    name = words(value) or ""
    return re.sub(r"[\s-]+", "_", name.strip().lower())


def amount(value: object, full: float) -> float:
    """Return the number that ``value`` means on a scale up to ``full``, which is 1 or 10.

    "8/10", "high", "80 %" and, out of one, 0.8 are the same. Raises `ValueError` where there is no number.
    """
    value = unwrapped(value)
    if not _is_number(value) and not isinstance(value, str):
        raise ValueError("no number")
    text = str(value).strip()[:AMOUNT_CHARS].lower()
    # In this order: "8/10" holds a number alone, too.
    for read in (_read_level, _read_ratio, _read_number):
        number = read(text, full)
        if number is not None:
            return number
    raise ValueError("no number")


def _read_level(text: str, full: float) -> float | None:
    """A word for a level: "high"."""
    match = _LEVEL.match(text)
    if match is None:
        return None
    return _LEVELS[match[1]] * full


def _read_ratio(text: str, full: float) -> float | None:
    """A part of a whole that is named: "8/10", "8 out of 10"."""
    match = _RATIO.search(text)
    if match is None:
        return None
    part, whole = _number(match[1]), _number(match[2])
    # A part of nothing is none, and dividing by it an error.
    if whole == 0:
        return 0.0
    return part / whole * full


def _read_number(text: str, full: float) -> float | None:
    """A number alone, or per cent: "8", "80 %"."""
    match = _PLAIN.search(text)
    if match is None:
        return None
    number = _number(match[1])
    is_percent = match[2] == "%"
    if is_percent:
        return number / 100 * full
    # Below the scale; the pattern leaves the sign out.
    if text.startswith("-"):
        return 0.0
    return _out_of_ten(number) if full > 1 else _out_of_one(number)


def _out_of_ten(number: float) -> float:
    """``number`` on the scale up to 10, where it may be a part of the whole."""
    is_part = 0 < number < 1
    if is_part:
        return number * 10
    return number


def _out_of_one(number: float) -> float:
    """``number`` on the scale up to 1, where it may be out of ten or per cent."""
    is_out_of_ten = 2 <= number <= 10
    if is_out_of_ten:
        return number / 10
    is_percent = 10 < number <= 100
    if is_percent:
        return number / 100
    return number


def _number(text: str) -> float:
    # Half of Europe writes 0,8.
    return float(text.replace(",", "."))
