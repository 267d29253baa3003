"""The score of an answer: from 0 to 1, and meaning the same for every query. Pure.

Relevance orders the rows of one query, but it says little about how well they answer: the best keyword hit has the
full keyword signal, even where it shares one common word with the query. So a score is the share of the relevance that
can be reached, times how much of the query stands in the scope at all, by words or by meaning.

On talk over months and on long chats with an assistant, the best score was at least 0.39 for 19 of 20 questions whose
answer was there, and at most 0.41 for 19 of 20 questions about somebody else's talk.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from memory_app.records.scoring import Weights


@dataclass(frozen=True, slots=True)
class Scale:
    """How relevance becomes a score. ``full`` is the relevance that counts as 1, ``bearing`` (0–1) how much of the
    query the best rows have: 1 for a query without a text."""

    full: float
    bearing: float

    def score(self, relevance: float) -> float:
        """From 0 to 1, higher for a higher relevance; 0 for a relevance of 0 or less."""
        if self.full <= 0:
            return 0.0
        # A link may lift a row beyond what its own signals can reach.
        return self.bearing * min(max(relevance / self.full, 0.0), 1.0)


def full_relevance(weights: Weights, *, without: Collection[str]) -> float:
    """The relevance of a row that has every signal with a positive weight in full and no other, but for those
    ``without`` which any row of the query is."""
    return sum(weight for name, weight in weights.items() if weight > 0 and name not in without)


def bearing(coverages: Iterable[float], similarities: Iterable[float]) -> float:
    """How much of a query its rows have: ``coverages`` are shares of its words by weight, ``similarities`` cosines.

    Either suffices: other words may say the same, and a name has no meaning that an embedder knows.
    """
    missing_words = 1 - min(max(coverages, default=0.0), 1.0)
    missing_meaning = 1 - min(max(similarities, default=0.0), 1.0)
    return 1 - missing_words * missing_meaning
