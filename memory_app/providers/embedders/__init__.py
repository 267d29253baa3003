"""Texts to vectors. An embedder is anything with the shape of `Embedder`; `make_embedder` knows them by name.

Every embedder keeps the promises of one contract suite: unit vectors, the same in every run and in every
batch, and a finite unit vector even for a text without content.
"""

from memory_app.providers.embedders.cached import Cached
from memory_app.providers.embedders.embedder import (
    THRESHOLDS,
    Embedder,
    Thresholds,
    checked,
    embed_queries,
    thresholds_of,
    verified,
)
from memory_app.providers.embedders.factory import EMBEDDERS, make_embedder
from memory_app.providers.embedders.hashing import HashEmbedder
from memory_app.providers.embedders.options import Options, Pooling
from memory_app.providers.embedders.prefixed import Prefixed
from memory_app.providers.embedders.previous import Formers
from memory_app.providers.embedders.redacting_embedder import Redacting
from memory_app.providers.embedders.word_llama import WordLlamaEmbedder

__all__ = [
    "EMBEDDERS",
    "THRESHOLDS",
    "Cached",
    "Embedder",
    "Formers",
    "HashEmbedder",
    "Options",
    "Pooling",
    "Prefixed",
    "Redacting",
    "Thresholds",
    "WordLlamaEmbedder",
    "checked",
    "embed_queries",
    "make_embedder",
    "thresholds_of",
    "verified",
]
