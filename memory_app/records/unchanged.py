"""The default of a parameter for which None means something: "put it back to its default"."""

from __future__ import annotations

from enum import Enum
from typing import Final, Literal


class Unchanged(Enum):
    """What is not to be changed."""

    UNCHANGED = "unchanged"


UNCHANGED: Final[Literal[Unchanged.UNCHANGED]] = Unchanged.UNCHANGED
