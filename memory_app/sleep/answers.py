"""What routes of runs and of synthesis answer with."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

from pydantic import Field

from memory_app.memories.answers import MemoryAnswer
from memory_app.web.answers import Answer


class RestoredAnswer(Answer):
    memories: list[MemoryAnswer] = Field(description="Current again, as they were.")


class UsageDayAnswer(Answer):
    day: date = Field(description="In UTC.")
    model: str
    calls: int
    tokens_in: int
    tokens_out: int
    cost_usd: Decimal


class UsageAnswer(Answer):
    days: list[UsageDayAnswer]
