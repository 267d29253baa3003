"""Cross-encoders in a folder, run on this machine: ms-marco MiniLM, bge-reranker and their kin as ``model.onnx``.

Needs the extra ``memory-app[onnx]``. Each pair of query and text runs alone, on one thread: in a batch its padding
would change the last digits of its score.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

import numpy as np
from tokenizers import Tokenizer

from memory_app.errors import BadModelOutput, Misconfigured, ProviderUnavailable
from memory_app.providers.onnx_model import (
    MODEL_FILE,
    TOKENIZER_FILE,
    model_errors,
    open_session,
    open_tokenizer,
)
from memory_app.providers.rerankers.reranker import Options, Reranker
from memory_app.providers.texts import well_formed

QUERY_SHARE = 2
"""A query takes at most this part of the tokens, so that something of every text is read."""


class OnnxReranker:
    """The cross-encoder in a folder. Raises `Misconfigured` when the extra or a file is missing."""

    def __init__(self, options: Options) -> None:
        if options.folder is None:
            raise Misconfigured(
                "rerank.folder: name the folder with model.onnx and tokenizer.json", field="folder"
            )
        self.model = options.model or options.folder.name
        self._session = open_session(options.folder / MODEL_FILE)
        self._inputs = {entry.name for entry in self._session.get_inputs()}
        self._tokenizer = open_tokenizer(options.folder / TOKENIZER_FILE)
        self._tokens_limit = options.tokens_limit
        self._seconds = options.timeouts.total

    def close(self) -> None:
        """Nothing is open."""

    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        """See `Reranker.score`; 0–1. Raises `ProviderUnavailable` when the time for all texts is over."""
        ends_at = time.monotonic() + self._seconds
        beginning = _first_tokens(self._tokenizer, well_formed(query), self._tokens_limit // QUERY_SHARE)
        scores = []
        for text in texts:
            if time.monotonic() > ends_at:
                raise ProviderUnavailable("the reranker did not finish in time")
            scores.append(self._score(beginning, well_formed(text)))
        return scores

    def _score(self, query: str, text: str) -> float:
        pair = self._tokenizer.encode(query, text)
        # Only the text is longer than the limit, and only its end is lost: the last mark stays.
        cut = min(len(pair.ids), self._tokens_limit)
        ids, types = [*pair.ids[: cut - 1], pair.ids[-1]], [*pair.type_ids[: cut - 1], pair.type_ids[-1]]
        tokens = np.array([ids], dtype=np.int64)
        inputs = {
            "input_ids": tokens,
            "attention_mask": np.ones_like(tokens),
            "token_type_ids": np.array([types], dtype=np.int64),
        }
        try:
            # Only the inputs that this model has: some know no types of tokens.
            outputs = self._session.run(None, {name: inputs[name] for name in self._inputs})
        except model_errors() as error:
            raise Misconfigured("the model in the folder fails on a text", field="folder") from error
        return _probability(np.asarray(outputs[0], dtype=np.float64).ravel())


def onnx_reranker(options: Options) -> Reranker:
    """As the settings say; needs a folder."""
    return OnnxReranker(options)


def _probability(logits: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> float:
    """Of one logit, or of two of which the second stands for "answers"."""
    if logits.size not in (1, 2) or not np.isfinite(logits).all():
        raise BadModelOutput(f"the model in the folder gives {logits.size} values for a pair, not one score")
    logit = float(logits[-1] - (logits[0] if logits.size == 2 else 0.0))
    return 0.5 * (1 + math.tanh(logit / 2))


def _first_tokens(tokenizer: Tokenizer, text: str, limit: int) -> str:
    encoded = tokenizer.encode(text, add_special_tokens=False)
    return text if len(encoded.ids) <= limit else text[: encoded.offsets[limit - 1][1]]
