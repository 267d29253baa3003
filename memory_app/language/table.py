"""List the languages whose words are known, and join their tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain

from memory_app.language.english import ENGLISH
from memory_app.language.language import Language
from memory_app.language.others import OTHERS

LANGUAGES: tuple[Language, ...] = (
    ENGLISH,
    OTHERS,
)
"""One line per language. The first names the meanings to which the rows of the others refer."""


def rows_of_all(part: Callable[[Language], Iterable[str]]) -> Iterator[str]:
    """Yield one field of all languages, in the order of `LANGUAGES`."""
    return chain.from_iterable(map(part, LANGUAGES))


def words_of_all(part: Callable[[Language], Iterable[str]]) -> frozenset[str]:
    """Return one field of all languages as one set."""
    return frozenset(rows_of_all(part))


def alternatives(part: Callable[[Language], Iterable[str]]) -> str:
    """Return one field of all languages as alternatives of a regular expression.

    Where there are none, an expression that never matches.
    """
    # An empty alternative would match everywhere.
    return "|".join(rows_of_all(part)) or "(?!)"
