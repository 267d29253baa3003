"""What routes of events answer with."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from pydantic import Field

from memory_app.events.event import EVENT_VERSION
from memory_app.web.answers import Answer


class EventAnswer(Answer):
    version: int = Field(EVENT_VERSION, description="Of the form of events; fields may be added to it.")
    id: str = Field(description="Its place in the order: send it as `after` to go on from here.")
    type: str = Field(description="Such as `turn.extracted`; see docs/events.md.")
    at: datetime | None = None
    agent: str | None = None
    user: str | None = None
    session: str | None = None
    target: UUID | None = Field(None, description="Id of the turn, memory, run or receipt.")
    kind: str | None = Field(None, description="Kind of the memory, or what the run does.")
    successor: UUID | None = Field(None, description="The memory that took the place of this one.")


class EventsAnswer(Answer):
    events: list[EventAnswer]
    cursor: str = Field(
        description="Send it as `after` for what comes next, also where there were no events."
    )


class WebhookAnswer(Answer):
    id: UUID
    url: str
    description: str | None
    types: list[str] | None = Field(description="Null: all.")
    agent: str | None
    user: str | None
    created_at: datetime
    position: str = Field(description="Everything up to this event was delivered.")
    attempts: int = Field(description="Tries of the message that is being delivered.")
    failing_since: datetime | None = Field(description="No delivery has succeeded since then.")
    waiting_since: datetime | None = Field(description="Time of the first event that is being delivered.")
    next_try_at: datetime | None = Field(description="When a delivery that failed is tried again.")
    paused_reason: str | None = Field(
        description="Null: it is active. `asked`, `gone` (answered 410) or `failing` (for too long)."
    )


class WebhooksAnswer(Answer):
    webhooks: list[WebhookAnswer]


class NewWebhookAnswer(Answer):
    webhook: WebhookAnswer
    secret: str = Field(description="Verifies messages. It is shown this once.")


class DeliveryAnswer(Answer):
    id: UUID
    message_id: UUID = Field(description="The `webhook-id` of the message, which is `msg_` and this in hex.")
    from_event: str | None = Field(description="Id of the first event; null for a ping.")
    to_event: str | None
    events: int
    attempt: int
    outcome: str = Field(description="`delivered`, or how it failed; see docs/events.md.")
    status: int | None = Field(description="Of the answer; null where there was none.")
    duration_ms: int
    at: datetime


class DeliveriesAnswer(Answer):
    deliveries: list[DeliveryAnswer]
    cursor: UUID | None = Field(description="Send it for the older ones; null at the end.")
