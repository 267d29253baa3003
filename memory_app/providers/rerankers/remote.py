"""Rerankers behind a server: the call ``/rerank`` of Cohere, Jina, vLLM and llama.cpp, and that of text-embeddings-
inference (TEI), which names things differently.

    Cohere and its kin   {"model", "query", "documents", "top_n"}   {"results": [{"index", "relevance_score"}]}
    TEI                  {"query", "texts", "truncate"}             [{"index", "score"}]

Answers come best first, so each names the text it is about.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from typing import Protocol

from memory_app.errors import BadModelOutput, Misconfigured, ProviderUnavailable
from memory_app.providers.provider import Wire, connect
from memory_app.providers.rerankers.reranker import Options, Reranker
from memory_app.providers.texts import sendable

PROVIDER = "the reranker"

BYTES_PER_TOKEN = 4

EMPTY = "-"
"""Sent for a text of which nothing is left: servers refuse empty ones."""

TEI_BATCH = 32
"""Texts that a TEI takes in one call unless it was started with more."""

COHERE_BATCH = 1_000


class Ask(Protocol):
    """One call: the server's rows for ``texts``."""

    def __call__(self, wire: Wire, model: str | None, query: str, texts: Sequence[str]) -> list[object]: ...


class RemoteReranker:
    """``model`` on the server behind ``wire``; ``ask`` speaks its dialect and takes at most ``batch`` texts a call."""

    def __init__(
        self,
        wire: Wire,
        model: str | None,
        *,
        ask: Ask,
        batch: int,
        options: Options,
    ) -> None:
        self.model = model or "rerank"
        self._server_model = model
        self._wire = wire
        self._ask = ask
        self._batch = batch
        self._gate = options.gate
        self._seconds = options.timeouts.total

    def __repr__(self) -> str:
        return f"RemoteReranker({self.model!r}, {self._wire!r})"

    def close(self) -> None:
        self._wire.close()

    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        """See `Reranker.score`."""
        # A call has a limit of its own, several of them have none.
        ends_at = time.monotonic() + self._seconds
        query = sendable(query) or EMPTY
        scores: list[float] = []
        for start in range(0, len(texts), self._batch):
            if time.monotonic() > ends_at:
                raise ProviderUnavailable(f"{PROVIDER} did not finish in time")
            scores += self._scores(query, texts[start : start + self._batch])
        return scores

    def _scores(self, query: str, texts: Sequence[str]) -> list[float]:
        sent = [sendable(text) or EMPTY for text in texts]
        tokens = sum(len(text.encode()) for text in (query, *sent)) // BYTES_PER_TOKEN + 1
        with self._gate(tokens):
            rows = self._ask(self._wire, self._server_model, query, sent)
        return _in_order(rows, len(texts))


def ask_cohere(wire: Wire, model: str | None, query: str, texts: Sequence[str]) -> list[object]:
    """``/rerank`` of Cohere, Jina, vLLM and llama.cpp."""
    request: dict[str, object] = {"query": query, "documents": list(texts), "top_n": len(texts)}
    if model is not None:
        request["model"] = model
    rows = wire.post("/rerank", request).get("results")
    if not isinstance(rows, list):
        raise ProviderUnavailable(f"{PROVIDER}'s server answered something that is no ranking")
    return rows


def ask_tei(wire: Wire, model: str | None, query: str, texts: Sequence[str]) -> list[object]:
    """``/rerank`` of text-embeddings-inference, which serves one model."""
    rows = wire.post_any("/rerank", {"query": query, "texts": list(texts), "truncate": True})
    if not isinstance(rows, list):
        raise ProviderUnavailable(f"{PROVIDER}'s server answered something that is no ranking")
    return rows


def cohere_like(options: Options, *, base_url: str | None, model: str | None) -> Reranker:
    """A server of the Cohere family. ``base_url`` and ``model`` are the usual ones; None: a setting must name it."""
    model = options.model or model
    wire = _wire(options.base_url or base_url, options)
    return RemoteReranker(wire, model, ask=ask_cohere, batch=COHERE_BATCH, options=options)


def tei(options: Options) -> Reranker:
    """A text-embeddings-inference server."""
    return RemoteReranker(
        _wire(options.base_url, options), options.model, ask=ask_tei, batch=TEI_BATCH, options=options
    )


def _wire(base_url: str | None, options: Options) -> Wire:
    if base_url is None:
        raise Misconfigured("rerank.base_url: required for this provider", field="base_url")
    return connect(base_url, options.key, provider=PROVIDER, timeouts=options.timeouts)


def _in_order(rows: Sequence[object], count: int) -> list[float]:
    """The score of each text, by the ``index`` that its row names."""
    scores: dict[int, float] = {}
    for row in rows:
        if not isinstance(row, Mapping):
            raise BadModelOutput(f"{PROVIDER} answered a row that is no object")
        place, score = row.get("index"), row.get("relevance_score", row.get("score"))
        if not isinstance(place, int) or not isinstance(score, int | float) or not math.isfinite(score):
            raise BadModelOutput(f"{PROVIDER} answered a row without an index or a score")
        scores[place] = float(score)
    if scores.keys() != set(range(count)):
        raise BadModelOutput(f"{PROVIDER} answered scores for {len(scores)} of {count} texts")
    return [scores[place] for place in range(count)]
