"""Find near duplicates in a ranking: rows that repeat what a better one says. Pure.

A cosine hardly changes with a number, a date or a negation, so the texts themselves are compared too.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memory_app.memories.guards import conflicting

Vector = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Ranked:
    """One candidate in rank order: the canonical key of its text, the text, and its unit-length embedding, if any."""

    id: Hashable
    key: str
    text: str = ""
    vector: Vector | None = None


@dataclass(frozen=True, slots=True)
class Repeat:
    """The better candidate that is repeated. ``cosine`` None: both have the same words."""

    of: Hashable
    cosine: float | None = None


def near_duplicates(ranked: Sequence[Ranked], *, same: float) -> Mapping[Hashable, Repeat]:
    """Return which better candidate each near duplicate repeats, by the duplicate's id.

    A duplicate has the same canonical key, or a cosine of at least ``same`` and no conflict: see `guards.conflicting`.
    """
    near = _near(ranked, same)
    repeats: dict[Hashable, Repeat] = {}
    first_by_key: dict[str, Hashable] = {}
    for place, candidate in enumerate(ranked):
        if candidate.key in first_by_key:
            repeats[candidate.id] = Repeat(first_by_key[candidate.key])
            continue
        better = [(ranked[other], cosine) for other, cosine in near.get(place, ())]
        # What is itself left out hides nothing: otherwise a chain of likenesses would hide what differs from its head.
        remaining = [(row, cosine) for row, cosine in better if row.id not in repeats]
        repeat = _repeat(candidate, remaining)
        if repeat is None:
            first_by_key[candidate.key] = candidate.id
        else:
            repeats[candidate.id] = repeat
    return repeats


def _repeat(candidate: Ranked, better: Sequence[tuple[Ranked, float]]) -> Repeat | None:
    for row, cosine in better:
        if conflicting(row.text, candidate.text) is None:
            return Repeat(row.id, cosine)
    return None


def _near(ranked: Sequence[Ranked], same: float) -> dict[int, list[tuple[int, float]]]:
    """Return for each place the better places with a cosine of at least ``same``, best first."""
    places = [place for place, candidate in enumerate(ranked) if candidate.vector is not None]
    vectors = [candidate.vector for candidate in ranked if candidate.vector is not None]
    if len(vectors) < 2:
        return {}
    # Unit vectors: their inner products are the cosines.
    matrix = np.stack(vectors)
    # Not a matrix product: so small a one starts threads that keep all cores busy for milliseconds.
    cosines = np.einsum("id,jd->ij", matrix, matrix)
    # Below the diagonal: each pair once, the worse of the two first.
    pairs = np.argwhere(np.tril(cosines >= same, k=-1))
    near: dict[int, list[tuple[int, float]]] = {}
    for worse, better in pairs.tolist():
        near.setdefault(places[worse], []).append((places[better], float(cosines[worse, better])))
    return near
