"""The table of embedders by provider name; a new provider is one line here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import structlog

from memory_app.errors import Misconfigured, Permanent, Transient
from memory_app.providers.embedders.cached import Cached
from memory_app.providers.embedders.embedder import Embedder, checked
from memory_app.providers.embedders.hashing import HashEmbedder
from memory_app.providers.embedders.onnx import onnx_embedder
from memory_app.providers.embedders.options import PLAIN, Options
from memory_app.providers.embedders.prefixed import Prefixed
from memory_app.providers.embedders.remote import (
    RemoteEmbedder,
    compatible_embedder,
    ollama_embedder,
    openai_embedder,
)
from memory_app.providers.embedders.word_llama import WordLlamaEmbedder

log = structlog.get_logger(__name__)

Maker = Callable[[int, Options], Embedder]


@dataclass(frozen=True, slots=True)
class Provider:
    """``make`` takes dimensions and options. ``prefixes`` go before questions and before what is stored, by model."""

    make: Maker
    dimensions: int
    prefixes: tuple[tuple[str, str, str], ...] = ()


NOMIC = ("nomic-embed-text", "search_query: ", "search_document: ")
E5 = ("e5", "query: ", "passage: ")

EMBEDDERS: dict[str, Provider] = {
    "hash": Provider(lambda dimensions, _: HashEmbedder(dimensions), 256),
    "wordllama": Provider(lambda dimensions, _: WordLlamaEmbedder(dimensions), 256),
    "onnx": Provider(onnx_embedder, 384, (E5, NOMIC)),
    "openai": Provider(openai_embedder, 1536),
    "ollama": Provider(ollama_embedder, 768, (E5, NOMIC)),
    "compatible": Provider(compatible_embedder, 1024, (E5, NOMIC)),
}
"""Provider name to what makes its embedder, and the dimensions of its usual model."""


def make_embedder(
    provider: str, dimensions: int | None = None, *, options: Options = PLAIN, cache_size: int = 4096
) -> Embedder:
    """The embedder of ``provider``, tried once and with a cache of ``cache_size`` vectors (0: none).

    Raises `Misconfigured` for an unknown provider, and as `checked` does when the trial fails. A provider that does
    not answer yet is no reason not to start: what needs it waits.
    """
    if provider not in EMBEDDERS:
        raise Misconfigured(f"unknown embedder; one of {', '.join(EMBEDDERS)}", field="provider")
    row = EMBEDDERS[provider]
    embedder = row.make(row.dimensions if dimensions is None else dimensions, options)
    _try(embedder)
    kept = Cached(embedder, size=cache_size) if cache_size else embedder
    return _prefixed(kept, row, options)


def _try(embedder: Embedder) -> None:
    try:
        checked(embedder)
    except Transient as error:
        log.warning("embedder_not_ready", model=embedder.model, error=error.kind)
    except Permanent:
        if isinstance(embedder, RemoteEmbedder):
            embedder.close()
        raise


def _prefixed(embedder: Embedder, row: Provider, options: Options) -> Embedder:
    """Outside the cache, so that a text as a question and as itself are two."""
    known = next((rest for name, *rest in row.prefixes if name in embedder.model), ["", ""])
    query = known[0] if options.query_prefix is None else options.query_prefix
    passage = known[1] if options.passage_prefix is None else options.passage_prefix
    return Prefixed(embedder, query=query, passage=passage) if query or passage else embedder
