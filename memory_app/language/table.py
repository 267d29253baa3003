"""List the languages whose words are known, and join their tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from memory_app.language.english import ENGLISH
from memory_app.language.language import Language
from memory_app.language.others import OTHERS

LANGUAGES: tuple[Language, ...] = (
    ENGLISH,
    OTHERS,
)
"""One line per language. The first names the meanings to which the rows of the others refer."""


def words_of_all(part: Callable[[Language], Iterable[str]]) -> frozenset[str]:
    """Return one field of all languages as one set."""
    return frozenset(word for language in LANGUAGES for word in part(language))


def alternatives(part: Callable[[Language], Iterable[str]]) -> str:
    """Return one field of all languages as alternatives of a regular expression.

    Where there are none, an expression that never matches.
    """
    return "|".join(pattern for language in LANGUAGES for pattern in part(language)) or "(?!)"
