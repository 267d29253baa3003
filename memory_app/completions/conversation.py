"""Have a chat answered by the language model with what memory adds; memory may fail or be slow, the chat goes on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from typing import TypeVar

import structlog
from anyio import move_on_after, to_thread
from starlette.responses import Response

from memory_app import metrics
from memory_app.completions.answer import EVENT_STREAM, Heard, OnReply, StreamedAnswer
from memory_app.completions.chat_request import ChatRequest
from memory_app.completions.events import json_of
from memory_app.completions.memory import ChatPolicy, policy_of, redacted, window_of
from memory_app.completions.model_server import ModelServer
from memory_app.completions.placing import Place
from memory_app.completions.record import record_messages, record_reply
from memory_app.errors import MemoryAppError, StoreUnavailable
from memory_app.log_redaction import kinds, places
from memory_app.providers.provider.wire import Answering
from memory_app.records.chat import Message, reply_of, with_window
from memory_app.tenancy.rows.keys import Caller
from memory_app.web.auth import Call

log = structlog.get_logger(__name__)

T = TypeVar("T")

DEGRADED_HEADER = "X-Memory-Degraded"
"""Names what memory could not do for a chat: ``memory`` (it is away), ``context``, sections of it, ``record``."""

POLICIES_LIMIT = 1_000
"""Of policies that are remembered for the time when memory is away."""

PATH = "/chat/completions"


@dataclass(slots=True)
class LastPolicies:
    """What the policy of each agent said last, for when memory is away."""

    _policies: dict[tuple[int, str], ChatPolicy] = field(default_factory=dict)

    def note(self, tenant_id: int, agent: str, policy: ChatPolicy) -> None:
        # Simpler than to find the oldest: each that is met again is noted again.
        if len(self._policies) >= POLICIES_LIMIT:
            self._policies.clear()
        self._policies[tenant_id, agent] = policy

    def of(self, tenant_id: int, agent: str) -> ChatPolicy | None:
        return self._policies.get((tenant_id, agent))


@dataclass(slots=True)
class Conversation:
    """One call: who asks and who answers, and what memory could not do for it so far."""

    call: Call
    caller: Caller
    chat: ChatRequest
    server: ModelServer
    policies: LastPolicies
    degraded: list[str] = field(default_factory=list)

    async def answered(self) -> Response:
        """The model's answer. Raises `Conflict`, `ProviderUnavailable`, `RateLimited`, or `StoreUnavailable` where not
        even the agent's policy is known."""
        server = self.server.forwarding()
        policy, is_away = await self._policy()
        messages: Sequence[Message] = [redacted(message, policy) for message in self.chat.messages]
        place = None
        if policy.has_memory and not is_away:
            messages = await self._with_window(messages)
            # Before the reply, which may never come: what the person said was said.
            place = await self._try(
                "record", partial(record_messages, chat=self.chat, policy=policy, caller=self.caller)
            )
        answering = await server.ask("POST", PATH, {**self.chat.fields, "messages": messages})
        on_reply = partial(self._record_reply, policy, place)
        if answering.status == HTTPStatus.OK and answering.media_type.startswith(EVENT_STREAM):
            return StreamedAnswer(answering, headers=self._headers(), on_reply=on_reply)
        return await self._in_one_piece(answering, on_reply)

    async def _policy(self) -> tuple[ChatPolicy, bool]:
        """What the agent's policy says, and whether memory is away, so that this is what it said last."""
        agent, tenant_id = self.chat.scope.agent, self.call.tenant_id
        policy = await self._try("memory", partial(policy_of, agent=agent))
        if policy is not None:
            self.policies.note(tenant_id, agent, policy)
            return policy, False
        last = self.policies.of(tenant_id, agent)
        if last is None:
            # Nobody knows what must be taken out of what is sent on.
            raise StoreUnavailable("what the agent's policy says cannot be read at this moment")
        return last, True

    async def _with_window(self, messages: Sequence[Message]) -> Sequence[Message]:
        found = await self._try("context", partial(window_of, chat=self.chat))
        if found is None:
            return messages
        window, missing = found
        self.degraded += missing
        return with_window(messages, window) if window.strip() else messages

    async def _in_one_piece(self, answering: Answering, on_reply: OnReply) -> Response:
        try:
            content = await answering.body()
        finally:
            await answering.close()
        if answering.status == HTTPStatus.OK:
            await on_reply(Heard(reply_of(json_of(content)), is_complete=True))
        return Response(content, answering.status, media_type=answering.media_type, headers=self._headers())

    async def _record_reply(self, policy: ChatPolicy, place: Place | None, heard: Heard) -> None:
        # Without what it answers, a reply would stand in a wrong place: it comes again with the next call.
        if place is None or heard.message is None:
            return
        # What was broken off takes nobody's place: the client may go on with the former reply.
        place = place if heard.is_complete else place.without_former()
        await self._try(
            "record",
            partial(
                record_reply,
                chat=self.chat,
                policy=policy,
                caller=self.caller,
                reply=heard.message,
                place=place,
            ),
        )

    def _headers(self) -> dict[str, str]:
        return {DEGRADED_HEADER: ", ".join(dict.fromkeys(self.degraded))} if self.degraded else {}

    async def _try(self, part: str, work: Callable[..., T]) -> T | None:
        """What ``work`` returns; None, with the part noted, where it fails or takes too long."""
        work = partial(work, self.call.runtime, self.call.tenant_id)
        error, at = "too_slow", None
        try:
            with move_on_after(self.server.settings.completions.memory_seconds):
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
