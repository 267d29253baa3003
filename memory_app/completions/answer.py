"""Hand the model's answer on to the client as it comes, and tell what was said once it has ended or the client went."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

import structlog
from anyio import CancelScope, create_task_group
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from memory_app.completions.events import Events
from memory_app.errors import MemoryAppError
from memory_app.providers.provider.wire import Answering
from memory_app.records.chat import Json, StreamedReply

log = structlog.get_logger(__name__)

EVENT_STREAM = "text/event-stream"

END_OF_STREAM = b"data: [DONE]"
"""After it clients read no further."""


@dataclass(frozen=True, slots=True)
class Heard:
    """The reply as a message, None where nothing was said. ``is_complete``: it was not broken off."""

    message: Json | None
    is_complete: bool


OnReply = Callable[[Heard], Awaitable[None]]


class StreamedAnswer(Response):
    """A stream of events from the model's server. What came of it before it ended in whatever way is told as well."""

    def __init__(self, answering: Answering, *, headers: Mapping[str, str], on_reply: OnReply) -> None:
        # No body: its length is not known.
        self.status_code = answering.status
        self.background = None
        self.init_headers({**headers, "content-type": answering.media_type, "cache-control": "no-cache"})
        self._answering = answering
        self._on_reply = on_reply
        self._reply = StreamedReply()
        self._is_told = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            async with create_task_group() as group:
                group.start_soon(_wait_until_gone, receive, group.cancel_scope)
                await self._hand_on(send)
                group.cancel_scope.cancel()
        finally:
            # Also where the client went away or the server stops: what the model said was said.
            with CancelScope(shield=True):
                await self._answering.close()
                await self._tell(is_complete=False)

    async def _tell(self, *, is_complete: bool) -> None:
        """What was said, once."""
        if not self._is_told:
            self._is_told = True
            await self._on_reply(Heard(self._reply.message(), is_complete))

    async def _hand_on(self, send: Send) -> None:
        head = {"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers}
        await send(head)
        events = Events()
        try:
            async for piece in self._answering.pieces():
                for event in events.of(piece):
                    self._reply.add(event)
                if END_OF_STREAM in piece:
                    # First, so that the next call of the client finds the reply recorded.
                    await self._tell(is_complete=True)
                await send({"type": "http.response.body", "body": piece, "more_body": True})
        except MemoryAppError as error:
            log.warning("chat_broken_off", error=error.kind)
            # The head is sent, so the status cannot say it; client libraries raise on such an event.
            event = json.dumps({"error": {"type": error.kind, "message": error.message}})
            await send(
                {"type": "http.response.body", "body": f"data: {event}\n\n".encode(), "more_body": True}
            )
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _wait_until_gone(receive: Receive, scope: CancelScope) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    scope.cancel()
