"""How many tokens a text costs, and how a budget is shared out. Pure and deterministic.

The count is an estimate that needs no tokeniser's files and errs on the high side.
"""

from __future__ import annotations

from collections.abc import Sequence


def count_tokens(text: str) -> int:
    """Tokens of ``text``, estimated high. Adds up over lines: the count of a text is that of its lines, joined."""
    raise NotImplementedError


def allocate(
    shares: Sequence[float], demands: Sequence[int], budget: int, *, floors: Sequence[int] = ()
) -> list[int]:
    """Tokens for each place: never more than it demands, never more than ``budget`` in all."""
    raise NotImplementedError
