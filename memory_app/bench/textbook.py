"""BM25 as in the textbook, over the bare texts: what any search engine would find without knowing of conversations.

Robertson and Zaragoza, The Probabilistic Relevance Framework: BM25 and Beyond (2009), with their usual k1 and b; words
in lower case, no stemming, no stop words.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

K1 = 1.2
B = 0.75


@dataclass(frozen=True, slots=True)
class Collection:
    """Texts by id, counted."""

    ids: tuple[str, ...]
    counts: tuple[Counter[str], ...]
    frequencies: Counter[str]
    mean_length: float


def collected(texts: Sequence[tuple[str, str]]) -> Collection:
    """The collection of ``texts``, pairs of an id and what it says; at least one."""
    counts = tuple(Counter(_words(text)) for _, text in texts)
    lengths = [count.total() for count in counts]
    return Collection(
        ids=tuple(id for id, _ in texts),
        counts=counts,
        # In how many texts a word stands, not how often it is said.
        frequencies=Counter(word for count in counts for word in count),
        # At least 1, or texts without any word would divide by zero.
        mean_length=max(sum(lengths) / len(lengths), 1.0),
    )


def best(collection: Collection, query: str, *, limit: int) -> list[str]:
    """Ids of the ``limit`` texts that score highest, best first; equal ones in their order."""
    weights = {word: _rarity(collection, word) for word in set(_words(query))}
    scores = [_score(count, weights, collection.mean_length) for count in collection.counts]
    places = sorted(range(len(scores)), key=lambda place: -scores[place])
    return [collection.ids[place] for place in places[:limit]]


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def _rarity(collection: Collection, word: str) -> float:
    holding = collection.frequencies[word]
    # log(1 + …) never gets negative, as the textbook's weight of a word does that stands in most texts.
    return math.log1p((len(collection.ids) - holding + 0.5) / (holding + 0.5))


def _score(count: Counter[str], weights: dict[str, float], mean_length: float) -> float:
    damping = K1 * (1 - B + B * count.total() / mean_length)
    return sum(
        weight * count[word] * (K1 + 1) / (count[word] + damping)
        for word, weight in weights.items()
        if word in count
    )
