"""How vectors travel to Postgres: as pgvector's text form, which one `unnest` turns into many rows."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

TERM_SPACE = 1_000_000_000
"""Dimensions of a keyword vector: term ids are hashes below this number (pgvector's limit for sparsevec)."""


def vector_text(vector: Sequence[float] | np.ndarray) -> str:
    """``[0.1,…]`` in half precision, the form of ``halfvec``: of each value the fewest digits that give it back."""
    halves = np.asarray(vector, dtype=np.float16)
    return "[" + ",".join(_half_texts()[halves.view(np.uint16)].tolist()) + "]"


@cache
def _half_texts() -> NDArray[np.object_]:
    """The text of each number of half precision, in the order of their bits; shape (65536,).

    To look a text up is ten times as fast as to write it, and every search and every new row sends a vector.
    """
    halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    return np.array([str(half) for half in halves], dtype=object)


def vector_of(sent: bytes) -> NDArray[np.float32]:
    """What ``halfvec_send`` gives: two numbers of two bytes, of which the first is the length, then the values."""
    # Big-endian, as everything that the server sends in binary form.
    return np.frombuffer(sent, dtype=">f2", offset=4).astype(np.float32)


def sparse_text(weights: dict[int, float]) -> str:
    """``{term:weight,…}/dimensions``, the form of ``sparsevec``; ids count from 1."""
    inside = ",".join(f"{term}:{weight:.5g}" for term, weight in sorted(weights.items()))
    return f"{{{inside}}}/{TERM_SPACE}"


def terms_text(weights: dict[int, float]) -> str:
    """``{term,…}``, the form of an array: what the keyword index of a big scope is asked for."""
    return "{" + ",".join(str(term) for term in sorted(weights)) + "}"
