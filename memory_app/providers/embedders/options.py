"""What embedders need besides their dimensions, in one record; each takes what concerns it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from pydantic import SecretStr

from memory_app.providers.provider import USUAL, Passage, Timeouts, open_gate


class Pooling(StrEnum):
    """How the vectors of tokens become that of a text: their mean (MiniLM, e5) or the first one (bge)."""

    MEAN = "mean"
    CLS = "cls"


@dataclass(frozen=True, slots=True)
class Options:
    """None takes the provider's own.

    ``batch`` is the most texts in one call. ``ask_dimensions`` sends the length wanted, for models that can be
    cut. The prefixes are put before questions and before what is stored. ``folder``, ``pooling`` and
    ``tokens_limit`` are of onnx.
    """

    model: str | None = None
    base_url: str | None = None
    key: SecretStr | None = None
    timeouts: Timeouts = USUAL
    gate: Passage = open_gate
    batch: int = 64
    ask_dimensions: bool = False
    query_prefix: str | None = None
    passage_prefix: str | None = None
    folder: Path | None = None
    pooling: Pooling = Pooling.MEAN
    tokens_limit: int = 256


PLAIN = Options()
