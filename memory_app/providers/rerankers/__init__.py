"""Rerankers: models that read a query and a text together, and say how well the text answers."""

from memory_app.providers.rerankers.factory import RERANKERS, make_reranker
from memory_app.providers.rerankers.reranker import Options, Reranker

__all__ = ["RERANKERS", "Options", "Reranker", "make_reranker"]
