"""Embedders of models that the settings no longer name, while rows of theirs wait to be embedded again.

A model's stored name says how to make it where nothing but the package is needed; for others search goes on by words.
"""

from __future__ import annotations

from threading import Lock

import structlog

from memory_app.errors import MemoryAppError
from memory_app.providers.embedders.embedder import Embedder
from memory_app.providers.embedders.factory import EMBEDDERS, make_embedder

log = structlog.get_logger(__name__)


class Formers:
    """Embedders by model name, made at the first use. Safe between threads."""

    def __init__(self) -> None:
        self._made: dict[str, Embedder | None] = {}
        self._lock = Lock()

    def get(self, model: str) -> Embedder | None:
        """The embedder whose vectors carry this name; None when it cannot be made here."""
        with self._lock:
            # None is remembered as well: what cannot be made is not tried again with every search.
            if model not in self._made:
                self._made[model] = _make(model)
            return self._made[model]


def _make(model: str) -> Embedder | None:
    family, _, dimensions = model.rpartition("-")
    # Others need a network or a setting; their address and key may be gone.
    provider = next((name for name, row in EMBEDDERS.items() if row.packaged == family), None)
    if provider is None or not dimensions.isdecimal():
        return None
    try:
        return make_embedder(provider, int(dimensions))
    except MemoryAppError as error:
        log.warning("former_embedder_not_made", model=model, error=error.kind)
        return None
