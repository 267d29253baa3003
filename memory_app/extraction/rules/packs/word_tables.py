"""Turn the rows of words of a pack into tables in which a word of a text is looked up, in lower case."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

from memory_app.extraction.rules.packs.format import PackFile

_Name = TypeVar("_Name", int, str)


def names_of_rows(rows: Mapping[_Name, Iterable[str]]) -> dict[str, _Name]:
    """Each word of the rows to the name of its row."""
    return {word.lower(): name for name, row in rows.items() for word in row}


def numbers_of_rows(rows: Iterable[str], *, first: int = 0) -> dict[str, int]:
    """Each word of the rows to the number of its row; that of the first row is ``first``."""
    return {word.lower(): number for number, row in enumerate(rows, first) for word in row.split()}


def month_numbers(file: PackFile) -> dict[str, int]:
    """Each spelling of a month to its number, 1 to 12."""
    return numbers_of_rows(file.date.months, first=1)


def unit_names(file: PackFile) -> dict[str, str]:
    """Each word for a unit of time to the name of the unit."""
    return names_of_rows(dict(file.date.units))


def word_set(rows: Iterable[str]) -> frozenset[str]:
    """All words of the rows. A row may hold many, so that a list in a pack reads like a text."""
    return frozenset(word for row in rows for word in row.lower().split())
