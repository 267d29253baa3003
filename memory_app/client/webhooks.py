"""The calls of webhooks."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from memory_app.client.call import Call, answer_of, body_of, json_of, nothing, path, query_of
from memory_app.events.answers import (
    DeliveriesAnswer,
    DeliveryAnswer,
    NewWebhookAnswer,
    WebhookAnswer,
    WebhooksAnswer,
)
from memory_app.records.ids import checked_id
from memory_app.records.unchanged import UNCHANGED, Unchanged

PING_SECONDS = 60.0
"""Further time for a call that waits for the receiver."""


def webhooks() -> Call[WebhooksAnswer]:
    """The webhooks of the tenant, and how far each has come; never their secrets."""
    return Call("GET", "/v1/webhooks", answer_of(WebhooksAnswer))


def make_webhook(
    url: str,
    *,
    types: Sequence[str] | None = None,
    agent: str | None = None,
    user: str | None = None,
    description: str | None = None,
    after: str | None = None,
) -> Call[NewWebhookAnswer]:
    """Have events after ``after`` posted to ``url`` (``oldest``: from the first that is kept; None: from now on).

    ``types`` are those of events or their groups; None: all. The secret is shown this once.
    """
    body = body_of(
        url=url,
        types=None if types is None else list(types),
        agent=agent,
        user=user,
        description=description,
        after=after,
    )
    return Call("POST", "/v1/webhooks", answer_of(NewWebhookAnswer), body=body, is_repeatable=False)


def change_webhook(
    webhook: UUID | str,
    *,
    url: str | Unchanged = UNCHANGED,
    types: Sequence[str] | Unchanged | None = UNCHANGED,
    agent: str | Unchanged | None = UNCHANGED,
    user: str | Unchanged | None = UNCHANGED,
    description: str | Unchanged | None = UNCHANGED,
    paused: bool | Unchanged = UNCHANGED,
) -> Call[WebhookAnswer]:
    """Change a webhook; what is not given stays. ``paused`` False goes on where it was."""
    parts = {
        "url": url,
        "types": types,
        "agent": agent,
        "user": user,
        "description": description,
        "paused": paused,
    }
    body = {name: part for name, part in parts.items() if part is not UNCHANGED}
    return Call("PATCH", _of(webhook), answer_of(WebhookAnswer), body=json_of(body))


def rotate_webhook(webhook: UUID | str, *, overlap_hours: float = 24) -> Call[NewWebhookAnswer]:
    """Give it another secret; messages have a signature with the old one, too, for ``overlap_hours``."""
    body = body_of(overlap_hours=overlap_hours)
    address = _of(webhook, "rotate")
    return Call("POST", address, answer_of(NewWebhookAnswer), body=body, is_repeatable=False)


def delete_webhook(webhook: UUID | str) -> Call[None]:
    """Delete a webhook and its log."""
    return Call("DELETE", _of(webhook), nothing)


def webhook_deliveries(
    webhook: UUID | str, *, limit: int = 50, cursor: UUID | str | None = None
) -> Call[DeliveriesAnswer]:
    """The latest tries of deliveries, the newest first; those before the id ``cursor``."""
    query = query_of(limit=limit, cursor=cursor)
    return Call("GET", _of(webhook, "deliveries"), answer_of(DeliveriesAnswer), query=query)


def resend_webhook(webhook: UUID | str, *, after: str) -> Call[WebhookAnswer]:
    """Send again what came after an event (``oldest``: everything that is kept), in messages with new ids."""
    body = body_of(after=after)
    return Call("POST", _of(webhook, "resend"), answer_of(WebhookAnswer), body=body)


def ping_webhook(webhook: UUID | str) -> Call[DeliveryAnswer]:
    """Send a message of the type ``ping`` now, also while it is paused; what came of it."""
    return Call(
        "POST",
        _of(webhook, "ping"),
        answer_of(DeliveryAnswer),
        is_repeatable=False,
        further_seconds=PING_SECONDS,
    )


def _of(webhook: UUID | str, *rest: str) -> str:
    return path("v1", "webhooks", checked_id(webhook, field="webhook"), *rest)
