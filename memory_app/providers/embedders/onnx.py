"""Sentence models in a folder, run on this machine: MiniLM, e5, bge and their kin as ``model.onnx``.

Needs the extra ``memory-app[onnx]``. A long text is cut into pieces of as many tokens as the model was trained on, and
its vector is their mean. Each piece runs alone: in a batch its padding would change the last digits of its row, and
so would the others. One thread, no pools: workers share few cores, and pools do not survive a fork.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from memory_app.errors import DimensionMismatch, Misconfigured
from memory_app.providers.embedders.embedder import (
    Embedder,
    Thresholds,
    Vectors,
    thresholds_of,
    unit_rows,
    verified,
)
from memory_app.providers.embedders.options import Options, Pooling
from memory_app.providers.onnx_model import (
    MODEL_FILE,
    TOKENIZER_FILE,
    model_errors,
    open_session,
    open_tokenizer,
)
from memory_app.providers.texts import spread, well_formed

PIECES_AT_MOST = 16
"""Pieces of one text that are run, evenly spread over it: at 256 tokens each, some 40 ms apiece on one core."""


class OnnxEmbedder:
    """An open model with its tokenizer; ``name`` is stored beside its vectors and names its thresholds.

    Raises `Misconfigured` when the model is not of this kind.
    """

    def __init__(
        self,
        session: Any,
        tokenizer: Tokenizer,
        dimensions: int,
        *,
        name: str,
        pooling: Pooling = Pooling.MEAN,
        tokens_limit: int = 256,
    ) -> None:
        self.dimensions = dimensions
        self.model = f"{name}-{dimensions}"
        self._pooling = pooling
        self._session = session
        self._inputs = {entry.name for entry in session.get_inputs()}
        self._tokenizer = tokenizer
        self._before, self._after = _marks(tokenizer)
        self._piece_tokens = tokens_limit - len(self._before) - len(self._after)

    @property
    def thresholds(self) -> Thresholds:
        return thresholds_of(self.model)

    def embed(self, texts: Sequence[str]) -> Vectors:
        """See `Embedder.embed`."""
        sums = np.zeros((len(texts), self.dimensions))
        for row, text in zip(sums, texts, strict=True):
            for ids in self._pieces(text):
                row += self._run(ids) * len(ids)
        return verified(unit_rows(sums, texts), len(texts), self.dimensions)

    def _pieces(self, text: str) -> list[list[int]]:
        """Token ids without marks; none for a text without tokens."""
        ids = self._tokenizer.encode(well_formed(text), add_special_tokens=False).ids
        size = self._piece_tokens
        return spread([ids[start : start + size] for start in range(0, len(ids), size)], PIECES_AT_MOST)

    def _run(self, ids: Sequence[int]) -> NDArray[np.float64]:
        tokens = np.array([[*self._before, *ids, *self._after]], dtype=np.int64)
        inputs = {
            "input_ids": tokens,
            "attention_mask": np.ones_like(tokens),
            "token_type_ids": np.zeros_like(tokens),
        }
        try:
            # Only the inputs that this model has: some know no types of tokens.
            outputs = self._session.run(None, {name: inputs[name] for name in self._inputs})
        except model_errors() as error:
            raise Misconfigured("the model in the folder fails on a text", field="folder") from error
        row = _pooled(np.asarray(outputs[0][0], dtype=np.float64), self._pooling)
        if row.shape != (self.dimensions,):
            raise DimensionMismatch(
                f"the model in the folder gives {row.shape[-1]} dimensions, the settings say {self.dimensions}",
                field="dimensions",
            )
        length = np.linalg.norm(row)
        return row / length if length else row


def onnx_embedder(dimensions: int, options: Options) -> Embedder:
    """As the settings say; needs a folder. Raises `Misconfigured` when the extra or a file is missing."""
    if options.folder is None:
        raise Misconfigured(
            "embedding.folder: name the folder with model.onnx and tokenizer.json", field="folder"
        )
    return OnnxEmbedder(
        open_session(options.folder / MODEL_FILE),
        open_tokenizer(options.folder / TOKENIZER_FILE),
        dimensions,
        name=options.model or options.folder.name,
        pooling=options.pooling,
        tokens_limit=options.tokens_limit,
    )


def _pooled(output: NDArray[np.float64], pooling: Pooling) -> NDArray[np.float64]:
    """The vector of a text from those of its tokens, shape (tokens, d); an output already pooled is taken as it is."""
    if output.ndim != 2:
        return output
    first: NDArray[np.float64] = output[0]
    return first if pooling is Pooling.CLS else np.asarray(output.mean(axis=0))


def _marks(tokenizer: Tokenizer) -> tuple[list[int], list[int]]:
    """Ids the tokenizer puts before and after a text, such as [CLS] and [SEP]."""
    # Measured, since the file names them in no one way.
    bare = tokenizer.encode("a", add_special_tokens=False).ids
    marked = tokenizer.encode("a").ids
    places = (place for place in range(len(marked)) if marked[place : place + len(bare)] == bare)
    start = next(places, 0)
    return marked[:start], marked[start + len(bare) :]
