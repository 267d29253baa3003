"""The words of a query by which the passage of a long text is chosen."""

from __future__ import annotations

from memory_app.language.text import term_id
from memory_app.recall.phrases import beginning
from memory_app.recall.query import ScopedQuery

WORD_CHARS = 3
"""Shorter beginnings of words stand in too many others to say where the passage of a text is."""


def passage_words(scoped: ScopedQuery) -> dict[str, float]:
    """Beginnings of the query's words, each with the weight that its rarity in the scope gives it."""
    words = {}
    for term in scoped.words:
        start = beginning(term)
        weight = scoped.keywords.get(term_id(term), 0.0)
        if weight > 0 and len(start) >= WORD_CHARS:
            words[start] = weight
    return words
