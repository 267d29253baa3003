"""Records of webhooks: as configured and shown, what is being delivered, a try in the log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from memory_app.events.event import Choice
from memory_app.events.webhooks.secret import SecretSource
from memory_app.events.webhooks.send import Outcome
from memory_app.records.unchanged import UNCHANGED, Unchanged


class PausedReason(StrEnum):
    """Why nothing is sent. The values are stored: never rename one."""

    ASKED = "asked"
    GONE = "gone"
    FAILING = "failing"


@dataclass(frozen=True, slots=True)
class Webhook:
    """A webhook as listed. ``types`` None: all events; ``agent`` and ``user`` None: of anybody.

    ``position``: everything up to this event was delivered. ``failing_since``: no delivery succeeded since then.
    ``paused_reason`` None: it is active.
    """

    id: UUID
    url: str
    description: str | None
    types: tuple[str, ...] | None
    agent: str | None
    user: str | None
    created_at: datetime
    position: str
    attempts: int
    failing_since: datetime | None
    waiting_since: datetime | None
    next_try_at: datetime | None
    paused_reason: str | None


@dataclass(frozen=True, slots=True)
class NewWebhook:
    """A webhook with its secret, which is not shown again."""

    webhook: Webhook
    secret: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class WebhookChange:
    """What changes of a webhook; the rest stays. ``paused`` True pauses it, False goes on where it was."""

    url: str | Unchanged = UNCHANGED
    description: str | Unchanged | None = UNCHANGED
    types: Sequence[str] | Unchanged | None = UNCHANGED
    agent: str | Unchanged | None = UNCHANGED
    user: str | Unchanged | None = UNCHANGED
    paused: bool | Unchanged = UNCHANGED


@dataclass(frozen=True, slots=True)
class Delivery:
    """A try. ``from_event`` and ``to_event`` are the ids of the first and last event, None for a ping.

    ``status`` is that of the answer, None where there was none.
    """

    id: UUID
    message_id: UUID
    from_event: str | None
    to_event: str | None
    events: int
    attempt: int
    outcome: Outcome
    status: int | None
    duration_ms: int
    at: datetime


@dataclass(frozen=True, slots=True)
class Batch:
    """What a message holds: events up to ``end``. ``id`` stays over all tries, and is the ``webhook-id``."""

    id: UUID
    end: str


@dataclass(frozen=True, slots=True)
class Work:
    """What a delivery needs to know of a webhook. ``sources``: of the secrets that sign, the newest first."""

    id: UUID
    url: str
    choice: Choice
    position: str
    batch: Batch | None
    sources: tuple[SecretSource, ...] = field(repr=False)


@dataclass(frozen=True, slots=True)
class WebhookClaim:
    """A webhook lent to this process. ``attempt`` counts from 1 for each batch."""

    batch: Batch
    fence: int
    attempt: int
    failing_since: datetime | None


@dataclass(frozen=True, slots=True)
class WebhookState:
    """Counts over all tenants: active webhooks, those of them that fail, those that were given up; and for how many
    seconds the oldest event waits whose delivery was tried."""

    active: int
    failing: int
    given_up: int
    oldest_waiting_seconds: float
