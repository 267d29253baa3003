"""Why a message of the broker is refused: it comes too late, or above a limit of its sender. Pure."""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum

from memory_app.records.statement import CLOCK_MARGIN

UNTIMED = timedelta(days=1)
"""How long after an erasure a message that does not say when it was sent is refused."""


class Refusal(StrEnum):
    """Why a message was refused. The values are stored: never rename one."""

    SENT_BEFORE = "sent_before_erasure"
    """The person, the session or the agent was erased after the message was sent."""
    UNTIMED = "no_sent_at"
    """It does not say when it was sent, and the person, the session or the agent was erased within a day."""
    TURN = "turn_erased"
    """The very same turn was erased."""
    RATE_LIMITED = "rate_limited"
    """Its key or tenant sent more than it may at once."""
    QUOTA_EXCEEDED = "quota_exceeded"
    """As much is stored as may be."""


def refusal_of(*, sent_at: datetime | None, erased_at: datetime | None, now: datetime) -> Refusal | None:
    """Why a message is refused, given when its person, session or agent was erased last; None if it is not.

    ``sent_at`` is by the producer's clock, ``erased_at`` and ``now`` by the database's.
    """
    if erased_at is None:
        return None
    # A time that lies further ahead than a clock may be wrong would pass for consent given after the erasure.
    if sent_at is None or sent_at > now + CLOCK_MARGIN:
        return Refusal.UNTIMED if now - erased_at < UNTIMED else None
    return Refusal.SENT_BEFORE if sent_at <= erased_at else None
