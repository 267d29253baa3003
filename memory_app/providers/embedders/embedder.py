"""What an embedder is, the thresholds that belong to each model, and the checks its output must pass.

A cosine means something only beside the model that made it, so the cuts live in one table by model name. A
vector of the wrong length, of zeros or with a NaN must never reach the database, where its distances are NaN.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from memory_app.errors import BadModelOutput, DimensionMismatch

Vectors = NDArray[np.float32]
"""Shape (n, dimensions), rows of length 1."""

UNIT_TOLERANCE = 1e-3
"""How far the length of a row may be from 1; half precision in the database is coarser than that."""


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Cosines at which two texts count as something.

    ``same``: reinforce, when numbers, dates and negations agree too. ``merge``, ``link``: what the names say.
    ``fact_floor``: least similarity of a fact found by meaning where a hard floor is asked for.
    ``same_words``: the best single cut for "the same fact in other words", measured per model; far too low to
    merge on, it only supports a decision made by entity and relation.
    """

    same_words: float
    same: float = 0.96
    merge: float = 0.85
    link: float = 0.75
    fact_floor: float = 0.7


THRESHOLDS = {
    "hash": Thresholds(same_words=0.20),
    "wordllama": Thresholds(same_words=0.32),
    "all-MiniLM-L6-v2": Thresholds(same_words=0.42),
}
"""By model name without its dimensions. ``same_words`` was measured on restated facts; the rest is policy."""

UNMEASURED = THRESHOLDS["all-MiniLM-L6-v2"]
"""For a model without a row: the most careful cut that was measured."""


def thresholds_of(model: str) -> Thresholds:
    """The row of ``model`` ("hash-256" has the row "hash"), or `UNMEASURED`."""
    family, _, dimensions = model.rpartition("-")
    return THRESHOLDS.get(family if dimensions.isdecimal() else model, UNMEASURED)


class Embedder(Protocol):
    """Turns texts into unit vectors. Safe to share between threads."""

    @property
    def model(self) -> str:
        """Name stored beside each vector; two embedders of one name give comparable vectors."""

    @property
    def dimensions(self) -> int: ...

    @property
    def thresholds(self) -> Thresholds: ...

    def embed(self, texts: Sequence[str]) -> Vectors:
        """One row of length 1 per text: shape ``(len(texts), dimensions)``, ``(0, dimensions)`` for none.

        Takes any string, without an upper length. The row of a text does not depend on the others. Raises
        `BadModelOutput`, `DimensionMismatch` and, for providers behind a network, `ProviderUnavailable` and
        `RateLimited`.
        """


@runtime_checkable
class QueryEmbedder(Protocol):
    """An embedder that takes questions apart from what is stored, as e5 and nomic do."""

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """As `Embedder.embed`, for texts that are asked about."""


def embed_queries(embedder: Embedder, texts: Sequence[str]) -> Vectors:
    """The rows of questions; with most models those of any text."""
    return embedder.embed_queries(texts) if isinstance(embedder, QueryEmbedder) else embedder.embed(texts)


def verified(vectors: Vectors, n: int, dimensions: int) -> Vectors:
    """The same ``vectors`` if they are ``n`` unit rows of that length.

    Raises `DimensionMismatch` for another length, `BadModelOutput` for a missing row, NaN, infinity or zero.
    """
    if vectors.ndim != 2 or vectors.shape[0] != n:
        raise BadModelOutput(f"the embedder answered shape {vectors.shape} for {n} texts")
    if vectors.shape[1] != dimensions:
        raise DimensionMismatch(
            f"the embedder answered {vectors.shape[1]} dimensions, the settings say {dimensions}",
            field="dimensions",
        )
    lengths = np.linalg.norm(vectors, axis=1)
    # Counted as what is right: a comparison with NaN is false.
    right = int(np.sum(np.abs(lengths - 1) < UNIT_TOLERANCE))
    if right < n:
        raise BadModelOutput(f"{n - right} vectors have not length 1")
    return vectors


def checked(embedder: Embedder) -> Embedder:
    """The same ``embedder`` after one trial call, for the start of a process. Raises as `verified` does."""
    texts = ["a trial sentence", ""]
    verified(embedder.embed(texts), len(texts), embedder.dimensions)
    return embedder


def unit_rows(sums: NDArray[np.float64], texts: Sequence[str]) -> Vectors:
    """Each row divided by its length; a row of zeros becomes `fallback_row` of its text."""
    rows = np.array(sums, dtype=np.float64)
    for i in np.flatnonzero(~rows.any(axis=1)):
        rows[i] = fallback_row(texts[int(i)], rows.shape[1])
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows.astype(np.float32)


def fallback_row(text: str, dimensions: int) -> NDArray[np.float64]:
    """A row for a text the model finds nothing in: signs from a digest of the text.

    Equal texts get equal rows; different ones, and real texts, are nearly at right angles (cosine about
    ±1/√dimensions), so that an empty text resembles nothing. One fixed vector would make them all twins.
    """
    length = -(-dimensions // 8)
    # A digest has 64 bytes at most; the salt makes that of each block another one.
    digests = (
        blake2b(
            text.encode("utf-8", "surrogatepass"), digest_size=64, salt=block.to_bytes(16, "big")
        ).digest()
        for block in range(-(-length // 64))
    )
    bits = np.unpackbits(np.frombuffer(b"".join(digests), dtype=np.uint8))[:dimensions]
    return np.where(bits, 1.0, -1.0)
