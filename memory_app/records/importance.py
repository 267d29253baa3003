"""Numbers from outside, brought into the range that is stored.

Nothing is rejected silently: whatever was changed is said in a note, which the answer to the caller carries.
"""

from __future__ import annotations

import math

LOWEST, HIGHEST = 1, 10

PROMINENT = 9
"""From here on a memory is looked at whatever is asked. An index holds exactly these, so it changes by a migration."""

COARSE_SCALE = "0-3"
"""The scale of callers that rate 0 to 3; they have to name it, since 1 to 3 stand on both scales."""

SCALES = ("1-10", COARSE_SCALE)

_COARSE = {0: 2, 1: 5, 2: 7, 3: 9}
"""The four steps of the coarse scale, spread over 1 to 10."""


def stored_importance(
    value: float | None, default: int, *, scale: str | None = None
) -> tuple[int, str | None]:
    """The importance to store (1–10), and a note when it is not what the caller gave.

    None takes ``default`` without a note. Others are rounded and clamped to ``scale`` (one of `SCALES`, None is 1–10).
    """
    if value is None:
        return default, None
    if math.isnan(value):
        return default, f"importance is not a number, stored as {default}"
    if scale == COARSE_SCALE:
        stored = _COARSE[_rounded(value, low=0, high=3)]
        return stored, f"importance {value:g} of 0-3 stored as {stored}"
    stored = _rounded(value, low=LOWEST, high=HIGHEST)
    if stored == value:
        return stored, None
    return stored, f"importance {value:g} stored as {stored}"


def _rounded(value: float, *, low: int, high: int) -> int:
    # Clamped before rounding, which infinity does not stand. Not `round`, which takes halves to the even number: 4.5
    # would become 4, and 5.5 become 6.
    return math.floor(min(max(value, low), high) + 0.5)


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
