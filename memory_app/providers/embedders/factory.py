"""Make the embedder of a provider, by a table; a new provider is one line here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import structlog

from memory_app.errors import Misconfigured, Permanent, Transient
from memory_app.providers.embedders.cached import Cached
from memory_app.providers.embedders.embedder import Embedder, checked
from memory_app.providers.embedders.hashing import HashEmbedder
from memory_app.providers.embedders.minilm import MODEL as MINILM
from memory_app.providers.embedders.minilm import minilm_embedder
from memory_app.providers.embedders.multilingual import MODEL as MULTILINGUAL
from memory_app.providers.embedders.multilingual import multilingual_embedder
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
class Prefixes:
    """What models whose name holds ``model`` want before questions and before what is stored."""

    model: str
    query: str = ""
    passage: str = ""


@dataclass(frozen=True, slots=True)
class Provider:
    """``make`` takes dimensions and options; ``dimensions`` are those of its usual model.

    ``packaged`` names the model, without its dimensions, of a provider that needs packages alone: no address, key or
    folder.
    """

    make: Maker
    dimensions: int
    packaged: str | None = None
    prefixes: tuple[Prefixes, ...] = ()


NOMIC = Prefixes("nomic-embed-text", query="search_query: ", passage="search_document: ")
E5 = Prefixes("e5", query="query: ", passage="passage: ")
NO_PREFIXES = Prefixes("")

EMBEDDERS: dict[str, Provider] = {
    "hash": Provider(lambda dimensions, _: HashEmbedder(dimensions), 256, "hash"),
    "wordllama": Provider(lambda dimensions, _: WordLlamaEmbedder(dimensions), 256, "wordllama"),
    "minilm": Provider(lambda dimensions, _: minilm_embedder(dimensions), 384, MINILM),
    "multilingual": Provider(lambda dimensions, _: multilingual_embedder(dimensions), 512, MULTILINGUAL),
    "onnx": Provider(onnx_embedder, 384, prefixes=(E5, NOMIC)),
    "openai": Provider(openai_embedder, 1536),
    "ollama": Provider(ollama_embedder, 768, prefixes=(E5, NOMIC)),
    "compatible": Provider(compatible_embedder, 1024, prefixes=(E5, NOMIC)),
}
"""Provider name to what makes its embedder, and the dimensions of its usual model."""


def make_embedder(
    provider: str, dimensions: int | None = None, *, options: Options = PLAIN, cache_size: int = 4096
) -> Embedder:
    """Return the embedder of ``provider``, tried once and with a cache of ``cache_size`` vectors (0: none).

    Raises `Misconfigured` for an unknown provider, and as `checked` does when the trial fails. A provider that does
    not answer yet is no reason not to start: what needs it waits.
    """
    if provider not in EMBEDDERS:
        raise Misconfigured(f"unknown embedder; one of {', '.join(EMBEDDERS)}", field="provider")
    row = EMBEDDERS[provider]
    embedder = row.make(row.dimensions if dimensions is None else dimensions, options)
    _try(embedder)
    if cache_size:
        embedder = Cached(embedder, size=cache_size)
    # Outside the cache, so that a text as a question and as itself are two.
    return _prefixed(embedder, row, options)


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
    fitting = (prefixes for prefixes in row.prefixes if prefixes.model in embedder.model)
    usual = next(fitting, NO_PREFIXES)
    # An empty prefix in the options is a wish for none, so it is not the same as None.
    query = usual.query if options.query_prefix is None else options.query_prefix
    passage = usual.passage if options.passage_prefix is None else options.passage_prefix
    return Prefixed(embedder, query=query, passage=passage) if query or passage else embedder
