"""Send events to a client as they come, as server-sent events, with a limit for all that it could take too much of.

Between two looks a stream holds no thread and no database connection. A page is made when the one before was sent on,
so a client that reads slowly holds one page of memory; one that does not read at all is dropped by its connection's
deadline (`memory_app.web.connections`).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from anyio import CancelScope, create_task_group
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from memory_app.errors import Transient
from memory_app.events.answers import EventAnswer
from memory_app.events.event import Event, EventPage
from memory_app.events.read import Feed
from memory_app.settings import Events
from memory_app.web.auth import Call
from memory_app.web.places import InFlight

MEDIA_TYPE = "text/event-stream"

RETRY_MS = 2_000
"""After which a client should connect anew."""

AWAY_SECONDS = 2.0
"""Pause after a look that failed and may succeed a moment later."""

KEY_SECONDS = 30.0
"""How long a stream goes on without another look whether its key is still valid."""

_ALL_KEYS = 0


@dataclass(slots=True)
class Streams:
    """The streams of a process: how many each key may have, and whether they are to end."""

    settings: Events
    is_stopping: bool = False
    _of_keys: InFlight = field(init=False)
    _of_all: InFlight = field(init=False)

    def __post_init__(self) -> None:
        self._of_keys = InFlight(self.settings.key_streams, "streams of this key")
        self._of_all = InFlight(self.settings.streams, "streams")

    @contextmanager
    def counted(self, key_id: int) -> Iterator[None]:
        """Count a stream during the block. Raises `RateLimited`."""
        with self._of_keys.counted(key_id), self._of_all.counted(_ALL_KEYS):
            yield

    def stop(self) -> None:
        """Let all streams end at their next look."""
        self.is_stopping = True


@dataclass(slots=True)
class Listening:
    """One stream: what it reads, and until when. ``is_welcome`` tells whether its key is still valid."""

    call: Call
    feed: Feed
    streams: Streams
    is_welcome: Callable[[], Awaitable[bool]]

    async def pieces(self, page: EventPage) -> AsyncIterator[bytes]:
        """The bytes of the stream, which begins with a page that was read already."""
        limits = self.streams.settings
        end = time.monotonic() + limits.stream_seconds
        next_beat = time.monotonic() + limits.heartbeat_seconds
        next_check = time.monotonic() + KEY_SECONDS
        yield f"retry: {RETRY_MS}\n\n".encode()
        pause = 0.0
        while True:
            now = time.monotonic()
            if page.events:
                yield b"".join(map(_lines, page.events))
                next_beat = now + limits.heartbeat_seconds
            elif now >= next_beat:
                # With the place that was reached, so that a client who hears of little does not begin far behind.
                yield f": nothing new\nid: {self.feed.cursor}\n\n".encode()
                next_beat = now + limits.heartbeat_seconds
            # What is left in a full page is there at once.
            await asyncio.sleep(limits.look_seconds if page.is_last else pause)
            if self.streams.is_stopping or time.monotonic() >= end:
                return
            if time.monotonic() >= next_check:
                if not await self.is_welcome():
                    return
                next_check = time.monotonic() + KEY_SECONDS
            page, pause = await self._next_page()

    async def _next_page(self) -> tuple[EventPage, float]:
        """The next page, and how long to wait after it where there is more."""
        try:
            return await self.call.work(self.feed.look), 0.0
        except Transient:
            # The head of the answer is sent, so nothing can be said; the client keeps its place.
            return EventPage((), str(self.feed.cursor), is_last=False), AWAY_SECONDS


class EventStream(Response):
    """The answer. It ends where the client goes away."""

    def __init__(self, pieces: AsyncIterator[bytes]) -> None:
        # No body: its length is not known.
        self.status_code = 200
        self.background = None
        # A proxy that collects an answer before it hands it on would hand on nothing.
        self.init_headers(
            {"content-type": MEDIA_TYPE, "cache-control": "no-cache", "x-accel-buffering": "no"}
        )
        self._pieces = pieces

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with create_task_group() as group:
            group.start_soon(_wait_until_gone, receive, group.cancel_scope)
            await send(
                {"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers}
            )
            async for piece in self._pieces:
                await send({"type": "http.response.body", "body": piece, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})
            group.cancel_scope.cancel()


async def _wait_until_gone(receive: Receive, scope: CancelScope) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    scope.cancel()


def _lines(event: Event) -> bytes:
    data = EventAnswer.model_validate(event).model_dump_json(exclude_none=True)
    return f"id: {event.id}\nevent: {event.type}\ndata: {data}\n\n".encode()
