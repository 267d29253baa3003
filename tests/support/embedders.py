"""The embedder of tests that decide where texts stand, watch its calls or let them fail."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from memory_app.providers.embedders import HashEmbedder, verified
from memory_app.providers.embedders.embedder import Vectors


def _nowhere(_: str) -> None:
    return None


def _nothing(_: Sequence[str]) -> None:
    return None


class ScriptedEmbedder(HashEmbedder):
    """The hash embedder with a script.

    ``before`` runs with the texts of each call and may raise. A text that has an ``angle``, in degrees, stands in
    one plane at that angle; the others stand where hashing puts them.
    """

    def __init__(
        self,
        *,
        before: Callable[[Sequence[str]], object] = _nothing,
        angle: Callable[[str], float | None] = _nowhere,
        dimensions: int = 256,
    ) -> None:
        super().__init__(dimensions)
        self._before = before
        self._angle = angle

    def embed(self, texts: Sequence[str]) -> Vectors:
        self._before(texts)
        vectors = super().embed(texts)
        for row, words in zip(vectors, texts, strict=True):
            degrees = self._angle(words)
            if degrees is not None:
                row[:] = 0
                row[0], row[1] = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
        return verified(vectors, len(texts), self.dimensions)


def at_angles(
    angles: Mapping[str, float], *, before: Callable[[Sequence[str]], object] = _nothing
) -> ScriptedEmbedder:
    """Exactly these texts stand at their angles."""
    return ScriptedEmbedder(before=before, angle=angles.get)


def failing(error: BaseException, *, at: str = "", dimensions: int = 256) -> ScriptedEmbedder:
    """Raises ``error`` at each call with a text that contains ``at``."""

    def before(texts: Sequence[str]) -> None:
        if any(at in words for words in texts):
            raise error

    return ScriptedEmbedder(before=before, dimensions=dimensions)
