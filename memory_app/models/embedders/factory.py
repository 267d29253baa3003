"""The table of embedders by provider name; a new provider is one line here."""

from __future__ import annotations

from collections.abc import Callable

from memory_app.errors import Misconfigured
from memory_app.models.embedders.cached import Cached
from memory_app.models.embedders.embedder import Embedder, checked
from memory_app.models.embedders.hashing import HashEmbedder
from memory_app.models.embedders.word_llama import WordLlamaEmbedder

EMBEDDERS: dict[str, Callable[[int], Embedder]] = {
    "hash": HashEmbedder,
    "wordllama": WordLlamaEmbedder,
}
"""Provider name to what makes an embedder of that many dimensions."""


def make_embedder(provider: str, dimensions: int, *, cache_size: int = 4096) -> Embedder:
    """The embedder of ``provider``, tried once and with a cache of ``cache_size`` vectors (0: none).

    Raises `Misconfigured` for an unknown provider, and as `checked` does when the trial fails.
    """
    if provider not in EMBEDDERS:
        raise Misconfigured(f"unknown embedder; one of {', '.join(EMBEDDERS)}", field="provider")
    embedder = checked(EMBEDDERS[provider](dimensions))
    return Cached(embedder, size=cache_size) if cache_size else embedder
