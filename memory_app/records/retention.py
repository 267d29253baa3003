"""Classes of what is kept, each of which an agent's policy may limit in days. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from memory_app.records.kinds import KINDS

TURNS = "turns"
"""The words of conversation: the text of a turn, its speaker, and all that its caller gave with it."""

CLASSES = (TURNS, *KINDS)
"""What a limit may be set for: turns, and each kind of memory."""

DAYS_LIMIT = 36_500
"""A hundred years: more than anybody means, and far from what a date cannot hold."""


def memory_days(retention: Mapping[str, int]) -> dict[str, int]:
    """The limits of kinds of memory alone."""
    return {name: days for name, days in retention.items() if name != TURNS}


def deletion_note(deleted_at: datetime) -> str:
    """What people read in place of the words of a turn."""
    return f"its words were deleted on {deleted_at:%Y-%m-%d}, as the agent's retention says"
