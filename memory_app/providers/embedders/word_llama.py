"""Token vectors of a large language model, averaged: the offline default.

The weights and the tokenizer are read straight from the wordllama package, without importing it. Later releases of it
have the same ones, beside compiled parts for few processors and versions of Python. Not imported, since the import
configures the root logger, its loader looks elsewhere and may download, and its ``embed`` pads a batch to the
longest text, which takes gigabytes for one long text among 64. Averaged here text by text, none is cut.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import util
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors import safe_open
from tokenizers import Tokenizer

from memory_app.errors import Misconfigured
from memory_app.providers.embedders.embedder import Thresholds, Vectors, thresholds_of, unit_rows, verified
from memory_app.providers.texts import well_formed

DIMENSIONS = (64, 128, 256)
"""Lengths the model was trained to be cut to (Matryoshka): the first ones of a vector are a vector."""

_WEIGHTS = "weights/l2_supercat_256.safetensors"
_TOKENIZER = "tokenizers/l2_supercat_tokenizer_config.json"


@dataclass(frozen=True, slots=True)
class _Weights:
    tokenizer: Tokenizer
    tokens: NDArray[np.float16]


class WordLlamaEmbedder:
    """Averaged token vectors; 17 MB of weights, no network. ``dimensions`` is one of `DIMENSIONS`.

    Raises `Misconfigured` when the package or its files are missing.
    """

    def __init__(self, dimensions: int = 256) -> None:
        if dimensions not in DIMENSIONS:
            raise Misconfigured(
                f"wordllama has {DIMENSIONS} dimensions, not {dimensions}", field="dimensions"
            )
        self.dimensions = dimensions
        self.model = f"wordllama-{dimensions}"
        self._weights = _weights()

    @property
    def thresholds(self) -> Thresholds:
        return thresholds_of(self.model)

    def embed(self, texts: Sequence[str]) -> Vectors:
        """See `Embedder.embed`."""
        sums = np.zeros((len(texts), self.dimensions))
        for row, text in zip(sums, texts, strict=True):
            row += self._sum(text)
        return verified(unit_rows(sums, texts), len(texts), self.dimensions)

    def _sum(self, text: str) -> NDArray[np.float64]:
        """Sum over tokens; its direction is that of the mean. A repeated token is fetched once."""
        # One text at a time: the batch call starts threads in the tokenizer, which a later fork would break.
        encoding = self._weights.tokenizer.encode(well_formed(text), add_special_tokens=False)
        ids, counts = np.unique(np.asarray(encoding.ids, dtype=np.intp), return_counts=True)
        # In half precision sums over a long text would lose their last digits.
        rows = self._weights.tokens[ids, : self.dimensions].astype(np.float32)
        return np.asarray(np.sum(rows * counts[:, None], axis=0, dtype=np.float64))


def load() -> None:
    """Read the weights now, if they are not read yet. Raises `Misconfigured` as the embedder does."""
    _weights()


@cache
def _weights() -> _Weights:
    """Read once per process."""
    package = util.find_spec("wordllama")
    if package is None or not package.submodule_search_locations:
        raise Misconfigured("wordllama is not installed; install it or set embedding.provider to hash")
    folder = Path(package.submodule_search_locations[0])
    missing = [name for name in (_WEIGHTS, _TOKENIZER) if not (folder / name).is_file()]
    if missing:
        raise Misconfigured(f"the wordllama package lacks {', '.join(missing)}; install version 0.2.2")
    with safe_open(folder / _WEIGHTS, framework="np") as file:
        # As the file holds it, which takes half of what the numbers would take that are computed with.
        tokens = file.get_tensor("embedding.weight").astype(np.float16, copy=False)
    return _Weights(Tokenizer.from_file(str(folder / _TOKENIZER)), tokens)
