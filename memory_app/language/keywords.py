"""Weigh the terms of texts and of queries after BM25, as keyword vectors. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import combinations

from memory_app.language.text import term_id

SATURATION = 1.2
"""BM25's k1: how fast a repeated word stops counting."""


LENGTH_PENALTY = 1.0
"""BM25's b: how much of the length is held against a long text. The usual 0.75 wins half a point of recall at
ten on short turns between people, and loses 4 on chats with long answers of an assistant."""


REFERENCE_LENGTH = 64
"""Terms of a text that gets neither bonus nor penalty. BM25 uses the collection's mean; a fixed number lets a
row keep its weights for ever, whatever is recorded after it. 48 to 96 score alike; the mean itself scores lower."""


MAX_KEYWORD_TERMS = 8_000
"""Most terms one row is found by; a `sparsevec` holds at most 16,000."""


def keyword_weights(counts: Mapping[str, int]) -> dict[int, float]:
    """Return the document side of BM25: weight by term id, 0 to k1 + 1, of at most `MAX_KEYWORD_TERMS` terms.

    The inner product with `query_weights` is the BM25 score.
    """
    length = sum(counts.values()) / REFERENCE_LENGTH
    damping = SATURATION * (1 - LENGTH_PENALTY + LENGTH_PENALTY * length)
    weights: dict[int, float] = {}
    # By name among equals, so that the same text always gets the same terms.
    strongest = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    for term, count in strongest[:MAX_KEYWORD_TERMS]:
        weight = count * (SATURATION + 1) / (count + damping)
        # Two terms may share an id, in which the stronger counts.
        weights[term_id(term)] = max(weight, weights.get(term_id(term), 0.0))
    return weights


def query_weights(
    counts: Mapping[str, int], document_counts: Mapping[int, int], total: int
) -> dict[int, float]:
    """Return the query side of BM25: inverse document frequency by term id.

    ``document_counts`` says in how many of the scope's ``total`` rows each term id occurs; terms of no row
    are left out, since no row can match them.
    """
    weights = {}
    for term in counts:
        occurrences = document_counts.get(term_id(term), 0)
        if occurrences > 0:
            weights[term_id(term)] = _idf(occurrences, total)
    return weights


def full_match(counts: Mapping[str, int], document_counts: Mapping[int, int], total: int) -> float:
    """Return the BM25 score of a row of usual length that has every term of ``counts`` once; terms of no row count.

    The arguments are those of `query_weights`.
    """
    return sum(_idf(document_counts.get(term_id(term), 0), total) for term in counts)


def _idf(occurrences: int, total: int) -> float:
    # The form of Lucene, which is never below 0 as BM25's own is for a term of most rows.
    return math.log1p((max(total - occurrences, 0) + 0.5) / (occurrences + 0.5))


ANCHOR_ROWS = 2_000
"""Rows the keyword index of a big scope may hand over: scoring them takes some 3 ms."""


ANCHOR_TERMS = 12
"""Terms of a query that are looked at for pairs; the commonest of a long query say the least."""


def anchor_terms(
    document_counts: Mapping[int, int], total: int, *, rows_limit: int = ANCHOR_ROWS
) -> tuple[tuple[int, ...], ...]:
    """Return what is asked of the keyword index of a big scope: rows that hold all terms of any of these sets.

    First the rarest terms, each by itself, while their rows are few enough; then pairs of the commoner ones, counted as
    if they occurred independently of each other. One set at least, if the query has a term that any row holds.
    """
    pairs = ((count, term) for term, count in document_counts.items() if count > 0)
    by_count = sorted(pairs, key=lambda pair: pair[0])[:ANCHOR_TERMS]
    chosen: list[tuple[int, ...]] = []
    rows = 0.0
    # A rare term by itself gives all rows that hold it: none of them can be missed.
    while by_count and rows + by_count[0][0] <= rows_limit:
        count, term = by_count.pop(0)
        chosen.append((term,))
        rows += count
    for (count, term), (other_count, other_term) in combinations(by_count, 2):
        # Neighbours in talk occur together more often than that; the estimate only has to be of the right size.
        together = count * other_count / max(total, 1)
        if chosen and rows + together > rows_limit:
            break
        chosen.append((term, other_term))
        rows += together
    return tuple(chosen) or tuple((term,) for _, term in by_count[:1])
