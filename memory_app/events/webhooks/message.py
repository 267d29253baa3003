"""The body of a message, and the headers that sign it. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from memory_app.events.answers import EventAnswer
from memory_app.events.event import Event
from memory_app.events.webhooks.signature import ID, SIGNATURE, TIMESTAMP, sign

EVENTS, PING = "events", "ping"
"""Types of messages: known to receivers."""


def body_of(type: str, *, webhook_id: UUID, events: Sequence[Event], now: datetime) -> bytes:
    """``{"type", "timestamp", "data": {"webhook", "events"}}`` in UTF-8; events as `GET /v1/events` shows them."""
    data: dict[str, Any] = {"webhook": str(webhook_id)}
    if type == EVENTS:
        data["events"] = [
            EventAnswer.model_validate(event).model_dump(mode="json", exclude_none=True) for event in events
        ]
    message = {"type": type, "timestamp": now.astimezone(UTC).isoformat(), "data": data}
    return json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode()


def headers_of(secrets: Sequence[bytes], *, message_id: UUID, body: bytes, now: datetime) -> dict[str, str]:
    """Headers of one try. The id is that of all tries, the timestamp of this one."""
    id, timestamp = f"msg_{message_id.hex}", int(now.timestamp())
    return {
        "Content-Type": "application/json",
        "User-Agent": "memory-app",
        ID: id,
        TIMESTAMP: str(timestamp),
        SIGNATURE: sign(secrets, id=id, timestamp=timestamp, body=body),
    }
