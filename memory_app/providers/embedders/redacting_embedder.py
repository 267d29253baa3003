"""Take what a provider must not see out of texts before they are embedded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from memory_app.providers.embedders.embedder import Embedder, Thresholds, Vectors, embed_queries


@dataclass(frozen=True, slots=True)
class Redacting:
    """``embedder``, which is given what ``redact`` makes of each text."""

    embedder: Embedder
    redact: Callable[[str], str]

    @property
    def model(self) -> str:
        return self.embedder.model

    @property
    def dimensions(self) -> int:
        return self.embedder.dimensions

    @property
    def thresholds(self) -> Thresholds:
        return self.embedder.thresholds

    def embed(self, texts: Sequence[str]) -> Vectors:
        """See `Embedder.embed`."""
        return self.embedder.embed([self.redact(text) for text in texts])

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """See `QueryEmbedder.embed_queries`."""
        return embed_queries(self.embedder, [self.redact(text) for text in texts])
