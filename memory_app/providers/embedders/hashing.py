"""Character n-grams hashed into a fixed number of places. No weights, no network, any language.

Words are lower-cased and set apart by spaces; every run of three to five characters adds to or takes from
the place its hash names (the sign keeps collisions from adding up). The hash is our own arithmetic on code
points, so that vectors are the same in every process and on every machine.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from memory_app.providers.embedders.embedder import Thresholds, Vectors, thresholds_of, unit_rows, verified

GRAM_SIZES = (3, 4, 5)

# The constants of splitmix64; the step is 2⁶⁴ divided by the golden ratio.
_STEP = np.uint64(0x9E3779B97F4A7C15)
_MIX = ((np.uint64(30), np.uint64(0xBF58476D1CE4E5B9)), (np.uint64(27), np.uint64(0x94D049BB133111EB)))
_LAST_SHIFT = np.uint64(31)


class HashEmbedder:
    """Deterministic n-gram hashing; ``dimensions`` is the number of places."""

    def __init__(self, dimensions: int = 256) -> None:
        self.dimensions = dimensions
        self.model = f"hash-{dimensions}"

    @property
    def thresholds(self) -> Thresholds:
        return thresholds_of(self.model)

    def embed(self, texts: Sequence[str]) -> Vectors:
        """See `Embedder.embed`."""
        sums = np.zeros((len(texts), self.dimensions))
        for row, text in zip(sums, texts, strict=True):
            row += _places(text, self.dimensions)
        return verified(unit_rows(sums, texts), len(texts), self.dimensions)


def _places(text: str, dimensions: int) -> NDArray[np.float64]:
    # NFKC makes full-width letters, ligatures and the like equal to their plain forms.
    words = unicodedata.normalize("NFKC", text).casefold().split()
    spaced = f" {' '.join(words)} " if words else ""
    points = np.frombuffer(spaced.encode("utf-32-le", "surrogatepass"), dtype="<u4").astype(np.uint64)
    grams, counts = np.unique(_grams(points), return_counts=True)
    # The highest bit, which the place, a remainder, hardly depends on.
    signs = np.where(grams >> np.uint64(63), 1.0, -1.0)
    # Logarithm, as in keyword scoring: the tenth "the" of a long text says less than the first.
    weights = signs * (1 + np.log(counts))
    places = (grams % np.uint64(dimensions)).astype(np.intp)
    return np.bincount(places, weights=weights, minlength=dimensions).astype(np.float64)


def _grams(points: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """One 64-bit hash for each n-gram of each size; arithmetic modulo 2⁶⁴."""
    hashes = []
    for size in GRAM_SIZES:
        n = max(len(points) - size + 1, 0)
        sums = np.full(n, size, dtype=np.uint64)
        for offset in range(size):
            sums = _mixed(sums * _STEP + points[offset : offset + n])
        hashes.append(sums)
    return np.concatenate(hashes)


def _mixed(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finaliser of splitmix64: every bit of the input moves every bit of the output."""
    for shift, factor in _MIX:
        x = (x ^ (x >> shift)) * factor
    return x ^ (x >> _LAST_SHIFT)
