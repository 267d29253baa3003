"""Have a chat answered by the language model with what memory adds; memory may fail or be slow, the chat goes on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from typing import Any, TypeVar

import structlog
from anyio import move_on_after, to_thread
from starlette.responses import Response

from memory_app import metrics
from memory_app.completions.answer import EVENT_STREAM, OnSaid, StreamedAnswer
from memory_app.completions.chat_request import ChatRequest, with_window
from memory_app.completions.memory import (
    Memory,
    memory_of,
    record_reply,
    record_said,
    redacted,
    window_of,
)
from memory_app.completions.reply import message_in
from memory_app.errors import Conflict, MemoryAppError, Misconfigured, ProviderUnavailable, StoreUnavailable
from memory_app.log_redaction import kinds, places
from memory_app.providers.provider.wire import Answering, Forwarding, forwarding
from memory_app.settings import Settings
from memory_app.web.auth import Call

log = structlog.get_logger(__name__)

T = TypeVar("T")

DEGRADED_HEADER = "X-Memory-Degraded"
"""Names what memory could not do for a chat: ``memory`` (it is away), ``context``, sections of it, ``record``."""

POLICIES_LIMIT = 1_000
"""Of policies that are remembered for the time when memory is away."""

PATH = "/chat/completions"


@dataclass(slots=True)
class Chats:
    """The way to the model that answers chats; opened with the first of them, in the loop that serves."""

    settings: Settings
    policies: dict[tuple[int, str], Memory] = field(default_factory=dict)
    """What each agent's policy said last, by tenant and name."""
    _server: Forwarding | None = None

    @property
    def default_model(self) -> str | None:
        return self.settings.completions.model or self.settings.chat.model

    def server(self) -> Forwarding:
        """Raises `Conflict` where no server is set, `ProviderUnavailable` where its address is none."""
        if self._server is None:
            own, chat = self.settings.completions, self.settings.chat
            base_url, key = (chat.base_url, chat.key) if own.base_url is None else (own.base_url, own.key)
            if base_url is None:
                raise Conflict(
                    "no language model is set for chats; set MEMORY_COMPLETIONS__BASE_URL or MEMORY_CHAT__BASE_URL"
                )
            try:
                self._server = forwarding(
                    base_url,
                    key,
                    provider="the language model",
                    connect_seconds=own.connect_seconds,
                    silence_seconds=own.silence_seconds,
                    limit_bytes=own.response_limit_bytes,
                )
            except Misconfigured as error:
                raise ProviderUnavailable(f"MEMORY_COMPLETIONS__{error.message}") from None
        return self._server

    async def close(self) -> None:
        if self._server is not None:
            await self._server.close()


@dataclass(slots=True)
class Conversation:
    """One call: what memory did for it so far, and what it could not do."""

    call: Call
    chat: ChatRequest
    seconds: float
    degraded: list[str] = field(default_factory=list)

    async def answered(self, chats: Chats) -> Response:
        """The model's answer. Raises `Conflict`, `ProviderUnavailable`, `RateLimited`, or `StoreUnavailable` where not
        even the agent's policy is known."""
        server = chats.server()
        memory, is_away = await self._policy(chats)
        messages = [redacted(message, memory) for message in self.chat.messages]
        previous = None
        if memory.is_on and not is_away:
            messages = await self._with_window(messages)
            # Before the reply, which may never come: what the person said was said.
            previous = await self._try("record", partial(record_said, chat=self.chat, memory=memory))
        answering = await server.ask("POST", PATH, {**self.chat.fields, "messages": messages})
        on_said = partial(self._record_reply, memory, previous)
        if answering.status == HTTPStatus.OK and answering.media_type.startswith(EVENT_STREAM):
            return StreamedAnswer(answering, headers=self._headers(), on_said=on_said)
        return await self._in_one_piece(answering, on_said)

    async def _policy(self, chats: Chats) -> tuple[Memory, bool]:
        """What the agent's policy says, and whether memory is away, so that this is what it said last."""
        place = (self.call.tenant_id, self.chat.scope.agent)
        memory = await self._try("memory", partial(memory_of, agent=self.chat.scope.agent))
        if memory is None:
            known = chats.policies.get(place)
            if known is None:
                # Nobody knows what must be taken out of what is sent on.
                raise StoreUnavailable("what the agent's policy says cannot be read at this moment")
            return known, True
        if len(chats.policies) >= POLICIES_LIMIT:
            chats.policies.clear()
        chats.policies[place] = memory
        return memory, False

    async def _with_window(self, messages: list[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        found = await self._try("context", partial(window_of, chat=self.chat))
        if found is None:
            return messages
        window, missing = found
        self.degraded += missing
        return with_window(messages, window) if window.strip() else messages

    async def _in_one_piece(self, answering: Answering, on_said: OnSaid) -> Response:
        try:
            content = await answering.body()
        finally:
            await answering.close()
        if answering.status == HTTPStatus.OK:
            await on_said(message_in(content))
        return Response(content, answering.status, media_type=answering.media_type, headers=self._headers())

    async def _record_reply(
        self, memory: Memory, previous: str | None, message: Mapping[str, Any] | None
    ) -> None:
        # Without what it answers, a reply would stand in a wrong place: it comes again with the next call.
        if previous is None or message is None:
            return
        await self._try(
            "record",
            partial(record_reply, chat=self.chat, memory=memory, message=message, previous=previous),
        )

    def _headers(self) -> dict[str, str]:
        return {DEGRADED_HEADER: ", ".join(dict.fromkeys(self.degraded))} if self.degraded else {}

    async def _try(self, part: str, work: Callable[..., T]) -> T | None:
        """What ``work`` returns; None, with the part noted, where it fails or takes too long."""
        work = partial(work, self.call.runtime, self.call.tenant_id)
        error, at = "too_slow", None
        try:
            with move_on_after(self.seconds):
                async with self.call.places.held(self.call.tenant_id):
                    return await to_thread.run_sync(work, abandon_on_cancel=True)
        except MemoryAppError as failure:
            error = failure.kind
        except Exception as failure:
            # Whatever is wrong with memory, the person gets a reply.
            error, at = kinds(failure), places(failure)
        log.warning("chat_without_memory", part=part, error=error, at=at)
        metrics.degraded.labels("chat", part).inc()
        self.degraded.append(part)
        return None
