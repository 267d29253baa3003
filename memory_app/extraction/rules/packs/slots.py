"""The slots of patterns: what may stand in each, and which of them hold the object of a fact.

The shapes know no language; `slot_values` judges by the words of a pack what stands in a slot.
"""

from __future__ import annotations

from collections.abc import Mapping

_WORD = r"[\w&][\w'&+/-]{0,40}"
_DECIMAL = r"\d{1,3}(?:[.,]\d{1,2})?"


def _run(least: int, most: int) -> str:
    """Words set apart by single blanks; as few as the rest of the pattern allows."""
    return rf"{_WORD}(?: {_WORD}){{{least - 1},{most - 1}}}?"


_LIST = rf"{_WORD}(?:,? {_WORD}){{0,15}}?"

SHAPES: Mapping[str, str] = {
    "name": _run(1, 3),
    "called": rf"{_WORD}(?: {_WORD})?",
    "names": _LIST,
    "place": _run(1, 4),
    "org": _run(1, 5),
    "job": _run(1, 4),
    "word": _WORD,
    "thing": _run(1, 5),
    "items": _LIST,
    "phrase": rf"{_WORD}(?:,? {_WORD}){{1,17}}",
    "wish": rf"{_WORD}(?:,? {_WORD}){{2,24}}",
    "right": rf"(?:{_DECIMAL}|{_run(1, 4)})",
    "wrong": _run(1, 4),
    "year": r"(?:19|20)\d\d",
    "count": r"\d{1,3}",
    "date_day": r"\d{1,2}",
    "size": _DECIMAL,
    "size_m": r"[12] ?(?:[.,]\d\d|m ?\d\d) ?m?",
}
"""Slot to its regular expression. Bounded, and a blank is between two words and never in one."""

OBJECT_SLOTS = (
    "name",
    "names",
    "place",
    "org",
    "job",
    "word",
    "thing",
    "items",
    "phrase",
    "number",
    "day",
    "year",
    "size",
)
"""Slots that may be the object of a fact, in the order in which they are looked for."""

DATE_SLOTS = frozenset({"day", "day2", "year", "year2", "year3", "unit", "count", "wish", "wish2"})
"""Slots in which a date may stand; elsewhere a date that was not taken out belongs to no object."""

OPEN_SLOTS = frozenset({"items", "names", "thing", "thing2", "phrase", "phrase8", "wish", "wish2"})
"""Slots whose text may go on behind "and"."""


def day_shape(month: str) -> str:
    """A day of a month, with or without its year. ``month`` is the alternatives of the names of months."""
    return (
        rf"(?:\d{{1,2}}(?:st|nd|rd|th|er|\u00ba|\u00aa)? (?:de |di |of )?{month}(?:,? (?:de |del )?(?:19|20)\d\d)?"
        rf"|{month} (?:the )?\d{{1,2}}(?:st|nd|rd|th)?(?:,? (?:19|20)\d\d)?"
        r"|\d{1,2}/\d{1,2}(?:/(?:19|20)\d\d)?)"
    )
