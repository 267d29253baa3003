"""Numbers from outside, brought into the range that is stored.

Nothing is rejected silently: whatever was changed is said in a note, which the answer to the caller carries.
"""

from __future__ import annotations

import math

LOWEST, HIGHEST = 1, 10

PROMINENT = 9
"""From here on a memory is looked at whatever is asked. An index holds exactly these, so it changes by a migration."""

_COARSE = {0: 2, 1: 5, 2: 7, 3: 9}
"""Callers that rate 0–3 mean the whole range by it, so their steps are spread over 1–10."""


def stored_importance(value: float | None, default: int) -> tuple[int, str | None]:
    """The importance to store (1–10), and a note when it is not what the caller gave.

    None takes ``default`` without a note. 0–3 count as the coarse scale; the rest is rounded and clamped.
    """
    if value is None:
        return default, None
    if math.isnan(value):
        return default, f"importance is not a number, stored as {default}"
    stored = _on_scale(value)
    if stored == value:
        return stored, None
    return stored, f"importance {value:g} stored as {stored}"


def _on_scale(value: float) -> int:
    # Compared before rounding, which infinity does not stand.
    if value < 0:
        return LOWEST
    if value > HIGHEST:
        return HIGHEST
    # Not `round`, which takes halves to the even number: 4.5 would become 4, and 5.5 become 6.
    rounded = math.floor(value + 0.5)
    return _COARSE.get(rounded, rounded)


def clamped(
    value: float, *, low: float = 0.0, high: float = 1.0, name: str = "value"
) -> tuple[float, str | None]:
    """``value`` inside ``low`` to ``high``, and a note when it was moved. What is no number becomes ``low``."""
    # Asked first, since every comparison with it is false: `min` and `max` would let it through.
    if math.isnan(value):
        return low, f"{name} is not a number, stored as {low:g}"
    stored = min(max(float(value), low), high)
    if stored == value:
        return stored, None
    return stored, f"{name} {value:g} stored as {stored:g}"
