"""Values of enums as literals of SQL, for what cannot be a parameter or would hide what a statement is about."""

from __future__ import annotations

from collections.abc import Iterable


def literals(values: Iterable[str]) -> str:
    """``'evicted', 'expired'``, to stand in brackets after IN. Only names of our own may be written so."""
    return ", ".join(f"'{value}'" for value in values)
