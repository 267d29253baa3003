"""Hear events as a listener does, until one comes: a transaction of another test of this cluster may hold them up."""

from __future__ import annotations

import time

from memory_app.events.event import Choice, Event, EventType
from memory_app.events.read import Feed, read_page
from memory_app.runtime import Runtime

PATIENCE_SECONDS = 60.0


def now(runtime: Runtime, tenant: int) -> str:
    return read_page(runtime, tenant, Choice(), after=None, limit=1).cursor


def listen(
    runtime: Runtime,
    tenant: int,
    count: int,
    *,
    after: str | None = "oldest",
    choice: Choice | None = None,
    limit: int = 100,
) -> list[Event]:
    """The next ``count`` events, and those that came with the last of them."""
    feed = Feed(runtime, tenant, choice or Choice(), after, limit)
    events: list[Event] = []
    deadline = time.monotonic() + PATIENCE_SECONDS
    while len(events) < count:
        assert time.monotonic() < deadline, f"{len(events)} of {count} events: {events}"
        page = feed.look()
        events += page.events
        if not page.events:
            time.sleep(0.02)
    return events


def types(events: list[Event]) -> list[EventType]:
    return [event.type for event in events]
