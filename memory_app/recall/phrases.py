"""The phrases of a query: words that stand beside each other in it, looked for in the texts that a search returned.

The database keeps the words of a row without their order. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise

from memory_app.language.text import term_id

EXAMINED_CHARS = 4_000
"""Characters of a text that are looked through."""

PHRASES_LIMIT = 20
"""Phrases of one query; a message of many pages names what it is about early."""

# A stem and the rest of its word, at most two short words ("of the"), and the next stem. Bounded everywhere: no text
# makes the search slow.
_BETWEEN = r"\w{0,12}\W{1,3}(?:\w{1,4}\W{1,3}){0,2}"


@dataclass(frozen=True, slots=True)
class Phrases:
    """Patterns in lower case, each with the weight of its words."""

    patterns: tuple[tuple[re.Pattern[str], float], ...] = ()

    def share(self, text: str) -> float:
        """The share of the phrases, by weight, that stand in ``text``; 0 for a query without any."""
        if not self.patterns:
            return 0.0
        lowered = text[:EXAMINED_CHARS].lower()
        hits = sum(weight for pattern, weight in self.patterns if pattern.search(lowered))
        return hits / sum(weight for _, weight in self.patterns)


def phrases_of(words: Iterable[str], weights: Mapping[int, float], *, without: Collection[str]) -> Phrases:
    """The phrases of a query's terms in their order.

    ``weights`` are those of `query_weights`: a word that no row has is in no phrase. Nor is any of ``without``: names
    of speakers and words such as "my", which stand beside other words in a question, and not in its answer.
    """
    weighed = [(word, 0.0 if word in without else weights.get(term_id(word), 0.0)) for word in words]
    pairs = [
        (
            re.compile(re.escape(beginning(word)) + _BETWEEN + re.escape(beginning(other))),
            weight + other_weight,
        )
        for (word, weight), (other, other_weight) in pairwise(weighed)
        if weight > 0 and other_weight > 0
    ]
    return Phrases(tuple(pairs[:PHRASES_LIMIT]))


def beginning(term: str) -> str:
    """What all forms of a stem begin with: "happi" stands for happy and happiness."""
    return term[:-1] if term.endswith("i") else term
