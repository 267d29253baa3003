"""What a reranker promises, and what its makers need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from pydantic import SecretStr

from memory_app.providers.provider import USUAL, Passage, Timeouts, open_gate


class Reranker(Protocol):
    """A model that compares texts with a query. Safe between threads."""

    model: str

    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        """Return one finite score for each text, in their order; a higher one answers better.

        Only scores of one call can be compared. Raises what `Wire.post` raises, `CircuitOpen`, and `BadModelOutput` for
        an answer that is not one score for each text.
        """

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Options:
    """None takes the provider's own. ``folder`` and ``tokens_limit`` are of onnx; ``timeouts.total`` is the time for
    all texts of a call together."""

    model: str | None = None
    base_url: str | None = None
    key: SecretStr | None = None
    timeouts: Timeouts = USUAL
    gate: Passage = open_gate
    folder: Path | None = None
    tokens_limit: int = 512
