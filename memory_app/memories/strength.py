"""How strong a memory is without a query, and when it has faded. Pure: no clock, no I/O."""

from __future__ import annotations

import math
from datetime import datetime, timedelta

from memory_app.records.importance import HIGHEST
from memory_app.records.records import Memory
from memory_app.records.scoring import retention


def strength(memory: Memory, now: datetime, half_life: timedelta | None) -> float:
    """Rank of a memory without a query, 0–1: retention × worth; pinned is 1.

    Retention halves every ``half_life`` since it was last seen or recalled; None means that it never fades.
    """
    if memory.pinned:
        return 1.0
    freshness = 1.0 if half_life is None else retention(now - _last_touched(memory), half_life)
    return freshness * _worth(memory)


def fades_at(memory: Memory, threshold: float, half_life: timedelta | None) -> datetime | None:
    """When strength falls to ``threshold`` if nothing happens; None: never, or after year 9999."""
    if memory.pinned or half_life is None or threshold <= 0:
        return None
    touched = _last_touched(memory)
    worth = _worth(memory)
    if worth <= threshold:
        return touched
    # strength(t) = worth × 2^(−t / half-life), solved for the t at which it is the threshold.
    seconds = half_life.total_seconds() * math.log2(worth / threshold)
    end_of_time = datetime.max.replace(tzinfo=touched.tzinfo)
    # A tiny threshold or a long half-life reaches beyond year 9999, the last of a `datetime`.
    if seconds >= (end_of_time - touched).total_seconds():
        return None
    return touched + timedelta(seconds=seconds)


def _last_touched(memory: Memory) -> datetime:
    return max(filter(None, (memory.created_at, memory.last_seen, memory.last_recalled)))


def _worth(memory: Memory) -> float:
    """0–1. Importance counts half; used or corroborated three times is half way to that full share."""
    # The first statement is no repetition.
    uses = memory.recall_count + max(memory.repeat_count - 1, 0)
    # The shares sum up to 1. Uses approach theirs without reaching it, so that a favourite cannot outweigh the rest.
    return (
        0.5 * memory.importance / HIGHEST
        + 0.2 * memory.confidence
        + 0.15 * uses / (uses + 3)
        + 0.15 * (memory.feedback_score + 1) / 2
    )
