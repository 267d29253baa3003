"""Near twins: rows of a ranking that say again what a better one says. Pure.

A cosine hardly sees a number, a date or a negation, so the texts themselves have the last word.
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
    """Of which better candidate; ``cosine`` None: word for word."""

    of: Hashable
    cosine: float | None = None


def twins(ranked: Sequence[Ranked], *, same: float) -> Mapping[Hashable, Repeat]:
    """What each candidate that repeats a better one repeats; the rest is worth keeping.

    A repeat has the same canonical key, or a cosine of at least ``same`` and no conflict: see `guards.conflicting`.
    """
    near = _near(ranked, same)
    repeats: dict[Hashable, Repeat] = {}
    keys: dict[str, Hashable] = {}
    for place, candidate in enumerate(ranked):
        repeat = Repeat(keys[candidate.key]) if candidate.key in keys else None
        for better, cosine in near.get(place, ()) if repeat is None else ():
            kept = ranked[better]
            if kept.id not in repeats and conflicting(kept.text, candidate.text) is None:
                repeat = Repeat(kept.id, cosine)
                break
        if repeat is None:
            keys[candidate.key] = candidate.id
        else:
            repeats[candidate.id] = repeat
    return repeats


def _near(ranked: Sequence[Ranked], same: float) -> dict[int, list[tuple[int, float]]]:
    """For each place the better places with such a cosine, best first."""
    having = [(place, one.vector) for place, one in enumerate(ranked) if one.vector is not None]
    if len(having) < 2:
        return {}
    places = [place for place, _ in having]
    vectors = np.stack([vector for _, vector in having])
    # Not a matrix product: so small a one starts threads that keep all cores busy for milliseconds.
    cosines = np.einsum("id,jd->ij", vectors, vectors)
    near: dict[int, list[tuple[int, float]]] = {}
    for worse, better in np.argwhere(np.tril(cosines >= same, k=-1)).tolist():
        near.setdefault(places[worse], []).append((places[better], float(cosines[worse, better])))
    return near
