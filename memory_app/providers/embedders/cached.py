"""Cache recent vectors around any embedder, by digest of the text: no text is kept.

Least recently used goes first. Safe between threads; two threads may embed the same new text at once, which
costs a call and harms nothing, while a lock around a provider would make all wait for the slowest.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from hashlib import blake2b
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from memory_app.providers.embedders.embedder import Embedder, Thresholds, Vectors


class Cached:
    """``embedder`` with the last ``size`` vectors kept in this process; repeats in a call are embedded once."""

    def __init__(self, embedder: Embedder, *, size: int = 4096) -> None:
        self._embedder = embedder
        self._size = size
        self._rows: OrderedDict[bytes, NDArray[np.float32]] = OrderedDict()
        self._lock = Lock()

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
        if not texts:
            return np.zeros((0, self.dimensions), dtype=np.float32)
        keys = [_key(text) for text in texts]
        rows = self._known(keys)
        new = {key: text for key, text in zip(keys, texts, strict=True) if key not in rows}
        if new:
            vectors = self._embedder.embed(list(new.values()))
            # Copies: a row is a view of its batch and would keep all of it in memory.
            fresh = {key: row.copy() for key, row in zip(new, vectors, strict=True)}
            self._keep(fresh)
            rows |= fresh
        return np.stack([rows[key] for key in keys])

    def _known(self, keys: Sequence[bytes]) -> dict[bytes, NDArray[np.float32]]:
        with self._lock:
            hits = {key: self._rows[key] for key in keys if key in self._rows}
            for key in hits:
                self._rows.move_to_end(key)
        return hits

    def _keep(self, fresh: dict[bytes, NDArray[np.float32]]) -> None:
        with self._lock:
            self._rows |= fresh
            while len(self._rows) > self._size:
                self._rows.popitem(last=False)


def _key(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
