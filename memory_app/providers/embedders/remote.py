"""Embed over a network: with OpenAI, Ollama, and any server with the API of one of them.

Texts go out in batches; a long text goes in pieces that no model refuses, and its vector is their mean, so that its
end counts too. An empty text is never sent, because servers refuse it. What comes back is brought to length 1 and
checked before anybody sees it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from memory_app.errors import BadModelOutput, Misconfigured, ProviderUnavailable
from memory_app.providers.embedders.embedder import (
    Embedder,
    Thresholds,
    Vectors,
    fallback_row,
    thresholds_of,
    verified,
)
from memory_app.providers.embedders.options import Options
from memory_app.providers.provider import Passage, Wire, connect, open_gate
from memory_app.providers.texts import pieces

PIECE_BYTES = 6_000
"""A token has at least one byte and in English four, so that a piece stays under the 8,191 tokens of OpenAI."""

REQUEST_BYTES = 250_000
"""All texts of one call; OpenAI takes 300,000 tokens."""

BYTES_PER_TOKEN = 4

PROVIDER = "the embedder"


class Ask(Protocol):
    """One call: the rows for ``texts`` as the server gives them."""

    def __call__(self, connection: Wire, model: str, texts: Sequence[str]) -> object: ...


@dataclass(frozen=True, slots=True)
class _Piece:
    """Part of the text at ``place`` in the batch; ``weight`` is its length."""

    place: int
    text: str
    weight: int


class RemoteEmbedder:
    """``model`` on the server behind ``connection``, with vectors of that many ``dimensions``.

    Safe between threads. Raises, beside what `Embedder` names, `CircuitOpen` from its ``gate``.
    """

    def __init__(
        self,
        connection: Wire,
        model: str,
        dimensions: int,
        *,
        ask: Ask,
        gate: Passage = open_gate,
        batch: int = 64,
    ) -> None:
        self.dimensions = dimensions
        self.model = f"{model}-{dimensions}"
        self._server_model = model
        self._connection = connection
        self._ask = ask
        self._gate = gate
        self._batch = batch

    def __repr__(self) -> str:
        return f"RemoteEmbedder({self.model!r}, {self._connection!r})"

    @property
    def thresholds(self) -> Thresholds:
        return thresholds_of(self.model)

    def close(self) -> None:
        self._connection.close()

    def embed(self, texts: Sequence[str]) -> Vectors:
        """See `Embedder.embed`."""
        sums = np.zeros((len(texts), self.dimensions))
        parts = [
            _Piece(place, piece, weight=len(piece))
            for place, text in enumerate(texts)
            for piece in pieces(text, limit_bytes=PIECE_BYTES)
        ]
        for batch in _batches(parts, self._batch):
            rows = self._rows([piece.text for piece in batch])
            # By length, as a mean over all tokens would weigh the pieces.
            for piece, row in zip(batch, rows, strict=True):
                sums[piece.place] += row * piece.weight
        # A text of blanks has no pieces; a row of zeros would be refused as no vector.
        sent = {piece.place for piece in parts}
        for place in set(range(len(texts))) - sent:
            sums[place] = fallback_row(texts[place], self.dimensions)
        return verified(_of_length_one(sums), len(texts), self.dimensions)

    def _rows(self, texts: Sequence[str]) -> Vectors:
        with self._gate(sum(len(text.encode()) for text in texts) // BYTES_PER_TOKEN + 1):
            rows = self._ask(self._connection, self._server_model, texts)
        return verified(_of_length_one(_array(rows)), len(texts), self.dimensions)


def ask_openai(
    connection: Wire, model: str, texts: Sequence[str], *, dimensions: int | None = None
) -> object:
    """``/embeddings`` of the OpenAI API; ``dimensions`` only for models that can be cut."""
    request: dict[str, object] = {"model": model, "input": list(texts)}
    if dimensions is not None:
        request["dimensions"] = dimensions
    items = connection.post("/embeddings", request).get("data")
    if not isinstance(items, list) or not all(isinstance(item, Mapping) for item in items):
        raise ProviderUnavailable(f"{PROVIDER}'s server answered something that is no embedding")
    # Servers that compute in parallel may answer in another order.
    if all(isinstance(item.get("index"), int) for item in items):
        items = sorted(items, key=lambda item: item["index"])
    return [item.get("embedding") for item in items]


def ask_ollama(connection: Wire, model: str, texts: Sequence[str]) -> object:
    """``/api/embed`` of Ollama."""
    rows = connection.post("/api/embed", {"model": model, "input": list(texts)}).get("embeddings")
    if not isinstance(rows, list):
        raise ProviderUnavailable(f"{PROVIDER}'s server answered something that is no embedding")
    return rows


def openai_embedder(dimensions: int, options: Options) -> Embedder:
    """OpenAI itself; needs a key."""
    return _openai_like(
        dimensions,
        options,
        base_url="https://api.openai.com/v1",
        model="text-embedding-3-small",
        natural=1536,
    )


def ollama_embedder(dimensions: int, options: Options) -> Embedder:
    """An Ollama, by its root address."""
    return RemoteEmbedder(
        _connection(options.base_url or "http://localhost:11434", options),
        options.model or "nomic-embed-text",
        dimensions,
        ask=ask_ollama,
        gate=options.gate,
        batch=options.batch,
    )


def compatible_embedder(dimensions: int, options: Options) -> Embedder:
    """Any server that speaks the OpenAI API; needs a base URL and a model."""
    return _openai_like(dimensions, options, base_url=None, model=None, natural=None)


def _openai_like(
    dimensions: int, options: Options, *, base_url: str | None, model: str | None, natural: int | None
) -> Embedder:
    base_url, model = options.base_url or base_url, options.model or model
    if not base_url or not model:
        missing = "base_url" if not base_url else "model"
        raise Misconfigured(f"embedding.{missing}: required for this provider", field=missing)
    cut = options.ask_dimensions or (natural is not None and dimensions != natural)
    return RemoteEmbedder(
        _connection(base_url, options),
        model,
        dimensions,
        ask=partial(ask_openai, dimensions=dimensions) if cut else ask_openai,
        gate=options.gate,
        batch=options.batch,
    )


def _connection(base_url: str, options: Options) -> Wire:
    return connect(
        base_url, options.key, provider=PROVIDER, timeouts=options.timeouts, response_limit_bytes=64_000_000
    )


def _batches(parts: Sequence[_Piece], limit: int) -> Iterator[list[_Piece]]:
    batch: list[_Piece] = []
    size = 0
    for piece in parts:
        length = len(piece.text.encode())
        if batch and (len(batch) >= limit or size + length > REQUEST_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(piece)
        size += length
    if batch:
        yield batch


def _array(rows: object) -> NDArray[np.float64]:
    try:
        return np.array(rows, dtype=np.float64)
    except (ValueError, TypeError, OverflowError):
        raise BadModelOutput(f"{PROVIDER} answered rows that are no vectors of one length") from None


def _of_length_one(rows: NDArray[np.float64]) -> Vectors:
    """Servers differ in whether they do this; a row of zeros stays, to be refused."""
    with np.errstate(invalid="ignore", over="ignore"):
        lengths = np.linalg.norm(rows, axis=-1, keepdims=True)
        rows = np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > 0)
    return np.asarray(rows, dtype=np.float32)
