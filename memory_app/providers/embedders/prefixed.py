"""Models that want to know whether a text is asked about or asked for, by words put before it (e5, nomic)."""

from __future__ import annotations

from collections.abc import Sequence

from memory_app.providers.embedders.embedder import Embedder, Thresholds, Vectors


class Prefixed:
    """``embedder`` with words before each text. The vectors belong to these words as much as to the model."""

    def __init__(self, embedder: Embedder, *, query: str, passage: str) -> None:
        self._embedder = embedder
        self._query = query
        self._passage = passage

    @property
    def model(self) -> str:
        return self._embedder.model

    @property
    def dimensions(self) -> int:
        return self._embedder.dimensions

    @property
    def thresholds(self) -> Thresholds:
        return self._embedder.thresholds

    def embed(self, texts: Sequence[str]) -> Vectors:
        """See `Embedder.embed`."""
        return self._embedder.embed(_marked(self._passage, texts))

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """The rows of questions, to be compared with those of `embed`."""
        return self._embedder.embed(_marked(self._query, texts))


def _marked(prefix: str, texts: Sequence[str]) -> list[str]:
    """A text without content stays so: the prefix alone would make all of them one."""
    return [prefix + text if text.strip("\0 \n\t\r") else text for text in texts]
