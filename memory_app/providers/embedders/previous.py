"""Embedders of models that the settings no longer name, while rows of theirs wait to be embedded again.

A model's stored name says how to make it where nothing but the package is needed; for others search goes on by words.
"""

from __future__ import annotations

import re
from threading import Lock

import structlog

from memory_app.errors import MemoryAppError
from memory_app.providers.embedders.embedder import Embedder
from memory_app.providers.embedders.factory import make_embedder

log = structlog.get_logger(__name__)

# These need neither a network nor a setting; of the others the address and the key may be gone.
_OFFLINE = re.compile(r"(hash|wordllama)-(\d{1,4})")


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
    match = _OFFLINE.fullmatch(model)
    if match is None:
        return None
    try:
        return make_embedder(match[1], int(match[2]))
    except MemoryAppError as error:
        log.warning("former_embedder_not_made", model=model, error=error.kind)
        return None
