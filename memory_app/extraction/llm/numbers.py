"""Compare the numbers of texts: a rewording may move them, never change them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

_NUMBER = re.compile(r"\d+(?:[.,:/-]\d+)*")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")


def numbers_of(text: str) -> frozenset[str]:
    """Return the numbers in ``text`` in figures; "1,200" and "1200" are one. Spelled-out ones are words."""
    # Digits of full width are the same numbers.
    numbers = (unicodedata.normalize("NFKC", match[0]) for match in _NUMBER.finditer(text))
    return frozenset(_THOUSANDS.sub("", number) for number in numbers)


def invents_numbers(text: str, sources: Iterable[str]) -> bool:
    """Whether ``text`` has a number that no source has."""
    return not numbers_of(text) <= _numbers_of_all(sources)


def changes_numbers(text: str, sources: Iterable[str]) -> bool:
    """Whether ``text`` has not exactly the numbers of its sources together."""
    return numbers_of(text) != _numbers_of_all(sources)


def _numbers_of_all(texts: Iterable[str]) -> frozenset[str]:
    return frozenset().union(*map(numbers_of, texts))
