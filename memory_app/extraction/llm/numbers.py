"""Numbers of texts: a rewording may move them, never change them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

_NUMBER = re.compile(r"\d+(?:[.,:/-]\d+)*")


def numbers_of(text: str) -> frozenset[str]:
    """The numbers in ``text`` in figures; "1,200" and "1200" are one. Spelled-out ones are words."""
    found = (unicodedata.normalize("NFKC", match[0]) for match in _NUMBER.finditer(text))
    return frozenset(re.sub(r"(?<=\d),(?=\d{3}(?!\d))", "", number) for number in found)


def invents_numbers(text: str, sources: Iterable[str]) -> bool:
    """Whether ``text`` has a number that no source has."""
    return not numbers_of(text) <= frozenset().union(*(numbers_of(source) for source in sources))


def changes_numbers(text: str, sources: Iterable[str]) -> bool:
    """Whether ``text`` has not exactly the numbers of its sources together."""
    return numbers_of(text) != frozenset().union(*(numbers_of(source) for source in sources))
