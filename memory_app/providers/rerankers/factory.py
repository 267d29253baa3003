"""Make the reranker of a provider, by a table; a new provider is one line here."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from memory_app.errors import Misconfigured
from memory_app.providers.rerankers.onnx import onnx_reranker
from memory_app.providers.rerankers.remote import cohere_like, tei
from memory_app.providers.rerankers.reranker import Options, Reranker

RERANKERS: dict[str, Callable[[Options], Reranker]] = {
    "onnx": onnx_reranker,
    "tei": tei,
    "vllm": partial(cohere_like, base_url=None, model=None),
    "llamacpp": partial(cohere_like, base_url="http://localhost:8080", model=None),
    "cohere": partial(cohere_like, base_url="https://api.cohere.com/v2", model="rerank-v3.5"),
    "jina": partial(
        cohere_like, base_url="https://api.jina.ai/v1", model="jina-reranker-v2-base-multilingual"
    ),
}
"""Provider name to what makes its reranker."""


def make_reranker(provider: str, options: Options) -> Reranker:
    """Return the reranker of ``provider``; one behind a server is not asked yet.

    Raises `Misconfigured` for an unknown provider, or where something it needs is missing.
    """
    if provider not in RERANKERS:
        raise Misconfigured(f"unknown reranker; one of {', '.join(RERANKERS)}", field="provider")
    return RERANKERS[provider](options)
