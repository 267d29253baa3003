"""Memory around an OpenAI client: the context window before each chat completion, the turns after it.

The client is the caller's; the OpenAI SDK is no dependency. Whatever happens to memory, the chat goes on: the failure
is logged and kept in `memory_error`, and turns that could not be recorded are sent with the next ones.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any, Protocol, Self
from uuid import uuid4

from memory_app.client.chat_turns import new_turns, question_of
from memory_app.client.retries import Retries
from memory_app.errors import InvalidInput, MemoryAppError, Transient
from memory_app.records.chat import Json, Message, StreamedReply, as_json, reply_of, with_window
from memory_app.records.scope import Scope

log = logging.getLogger("memory_app.client")

MEMORY_SECONDS = 5.0
"""The longest that memory may hold a reply up: for each attempt, of which there are two."""

BRIEF = Retries(attempts=2, first_seconds=0.1, longest_seconds=0.2, patience_seconds=0.5)

UNSENT_LIMIT = 200
"""Turns that are kept until memory takes them again; the oldest go first."""


class Window(Protocol):
    """What a context window is needed for here."""

    @property
    def text(self) -> str: ...


class Memory(Protocol):
    """`MemoryClient`, or `MemoryApp` in the same process."""

    def context(
        self,
        scope: Scope,
        query: str | None = None,
        *,
        budget_tokens: int | None = None,
        turns: int | None = None,
    ) -> Window: ...

    def record_all(self, scope: Scope, turns: Sequence[Mapping[str, Any]]) -> object: ...


class AsyncMemory(Protocol):
    """`AsyncMemoryClient`."""

    async def context(
        self,
        scope: Scope,
        query: str | None = None,
        *,
        budget_tokens: int | None = None,
        turns: int | None = None,
    ) -> Window: ...

    async def record_all(self, scope: Scope, turns: Sequence[Mapping[str, Any]]) -> object: ...


class Recorder:
    """What both wrappers keep: where they record, what is still to be sent, and the last failure."""

    def __init__(self, scope: Scope, *, budget_tokens: int | None, turns: int) -> None:
        if scope.user is None or scope.session is None:
            raise InvalidInput("session: name the user and the session", field="session")
        self.scope = scope
        self.budget_tokens = budget_tokens
        self.turns = turns
        self.error: Exception | None = None
        self._unsent: list[Json] = []

    def take(self, messages: Sequence[Message], reply: Json | None) -> list[Json]:
        """The turns to send now, each with its key: those that wait, what was said since the last answer, the reply."""
        turns = new_turns([as_json(message) for message in messages], self.scope)
        turns += [] if reply is None else [reply]
        waiting, self._unsent = self._unsent, []
        return [*waiting, *({"idempotency_key": uuid4().hex, **turn} for turn in turns)]

    def failed(self, error: Exception, *, step: str, turns: Sequence[Json] = ()) -> None:
        """Note a failure of memory, whatever it is: raised, it would end the reply of somebody who asked for no memory.

        Turns wait where it passes by itself; what was refused would be refused again.
        """
        self.error = error
        if isinstance(error, Transient):
            self._unsent = [*turns, *self._unsent][-UNSENT_LIMIT:]
        name = error.kind if isinstance(error, MemoryAppError) else type(error).__name__
        # Without the words of the error: one of another library may quote what was said.
        log.warning(
            "the chat goes on without memory: %s failed (%s), %d turns wait", step, name, len(self._unsent)
        )


class _Proxy:
    """Stands for another object; what it does not have itself is asked of that one."""

    def __init__(self, target: Any) -> None:
        self._target = target

    def __getattr__(self, name: str) -> Any:
        return getattr(self._target, name)


class _Chat(_Proxy):
    def __init__(self, target: Any, completions: Any) -> None:
        super().__init__(target)
        self.completions = completions


class OpenAIWithMemory(_Proxy):
    """The client that was wrapped, with memory around its chat completions. ``memory_error`` is the last failure of
    memory; None while all is well."""

    def __init__(self, client: Any, memory: Memory, recorder: Recorder) -> None:
        super().__init__(client)
        self._memory = memory
        self._recorder = recorder
        self.chat = _Chat(client.chat, _Completions(client.chat.completions, self))

    @property
    def memory_error(self) -> Exception | None:
        return self._recorder.error

    def with_options(self, **options: Any) -> OpenAIWithMemory:
        """The same with other options of the client."""
        return OpenAIWithMemory(self._target.with_options(**options), self._memory, self._recorder)

    def __enter__(self) -> Self:
        self._target.__enter__()
        return self

    def __exit__(self, *failure: Any) -> None:
        self._target.__exit__(*failure)

    def window(self, messages: Sequence[Message]) -> Sequence[Message]:
        """The messages with the context window; without it where memory fails."""
        recorder = self._recorder
        try:
            window = self._memory.context(
                recorder.scope,
                question_of([as_json(message) for message in messages]),
                budget_tokens=recorder.budget_tokens,
                turns=recorder.turns,
            )
            recorder.error = None
            return with_window(messages, window.text)
        except Exception as error:  # see `Recorder.failed`
            recorder.failed(error, step="the context window")
            return messages

    def record(self, messages: Sequence[Message], reply: Json | None) -> None:
        """Record what was said since the last answer, and the reply."""
        turns: list[Json] = []
        try:
            turns = self._recorder.take(messages, reply)
            self._memory.record_all(self._recorder.scope, turns)
        except Exception as error:  # see `Recorder.failed`
            self._recorder.failed(error, step="recording", turns=turns)


class _Completions(_Proxy):
    def __init__(self, target: Any, owner: OpenAIWithMemory) -> None:
        super().__init__(target)
        self._owner = owner

    def create(self, *, messages: Sequence[Message], **options: Any) -> Any:
        """As the client's own."""
        conversation = list(messages)
        answer = self._target.create(messages=self._owner.window(conversation), **options)
        if options.get("stream"):
            return _Stream(answer, self._owner, conversation)
        self._owner.record(conversation, reply_of(answer))
        return answer

    def parse(self, *, messages: Sequence[Message], **options: Any) -> Any:
        """As the client's own."""
        conversation = list(messages)
        answer = self._target.parse(messages=self._owner.window(conversation), **options)
        self._owner.record(conversation, reply_of(answer))
        return answer


class _Stream(_Proxy):
    """Hands the chunks through, and records when they end or nobody reads on."""

    def __init__(self, stream: Any, owner: OpenAIWithMemory, messages: Sequence[Message]) -> None:
        super().__init__(stream)
        self._owner = owner
        self._messages: Sequence[Message] | None = messages
        self._reply = StreamedReply()
        self._chunks = self._read()

    def _read(self) -> Iterator[Any]:
        try:
            for chunk in self._target:
                self._reply.add(chunk)
                yield chunk
        finally:
            self._end()

    def _end(self) -> None:
        messages, self._messages = self._messages, None
        if messages is not None:
            self._owner.record(messages, self._reply.message())

    def __iter__(self) -> Iterator[Any]:
        return self._chunks

    def __next__(self) -> Any:
        return next(self._chunks)

    def close(self) -> None:
        """As the stream's own; what came so far is recorded."""
        try:
            self._target.close()
        finally:
            self._end()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncOpenAIWithMemory(_Proxy):
    """`OpenAIWithMemory` for the asynchronous client."""

    def __init__(self, client: Any, memory: AsyncMemory, recorder: Recorder) -> None:
        super().__init__(client)
        self._memory = memory
        self._recorder = recorder
        self.chat = _Chat(client.chat, _AsyncCompletions(client.chat.completions, self))

    @property
    def memory_error(self) -> Exception | None:
        return self._recorder.error

    def with_options(self, **options: Any) -> AsyncOpenAIWithMemory:
        """The same with other options of the client."""
        return AsyncOpenAIWithMemory(self._target.with_options(**options), self._memory, self._recorder)

    async def __aenter__(self) -> Self:
        await self._target.__aenter__()
        return self

    async def __aexit__(self, *failure: Any) -> None:
        await self._target.__aexit__(*failure)

    async def window(self, messages: Sequence[Message]) -> Sequence[Message]:
        """The messages with the context window; without it where memory fails."""
        recorder = self._recorder
        try:
            window = await self._memory.context(
                recorder.scope,
                question_of([as_json(message) for message in messages]),
                budget_tokens=recorder.budget_tokens,
                turns=recorder.turns,
            )
            recorder.error = None
            return with_window(messages, window.text)
        except Exception as error:  # see `Recorder.failed`
            recorder.failed(error, step="the context window")
            return messages

    async def record(self, messages: Sequence[Message], reply: Json | None) -> None:
        """Record what was said since the last answer, and the reply."""
        turns: list[Json] = []
        try:
            turns = self._recorder.take(messages, reply)
            await self._memory.record_all(self._recorder.scope, turns)
        except Exception as error:  # see `Recorder.failed`
            self._recorder.failed(error, step="recording", turns=turns)


class _AsyncCompletions(_Proxy):
    def __init__(self, target: Any, owner: AsyncOpenAIWithMemory) -> None:
        super().__init__(target)
        self._owner = owner

    async def create(self, *, messages: Sequence[Message], **options: Any) -> Any:
        """As the client's own."""
        conversation = list(messages)
        answer = await self._target.create(messages=await self._owner.window(conversation), **options)
        if options.get("stream"):
            return _AsyncStream(answer, self._owner, conversation)
        await self._owner.record(conversation, reply_of(answer))
        return answer

    async def parse(self, *, messages: Sequence[Message], **options: Any) -> Any:
        """As the client's own."""
        conversation = list(messages)
        answer = await self._target.parse(messages=await self._owner.window(conversation), **options)
        await self._owner.record(conversation, reply_of(answer))
        return answer


class _AsyncStream(_Proxy):
    """Hands the chunks through, and records when they end or the stream is closed."""

    def __init__(self, stream: Any, owner: AsyncOpenAIWithMemory, messages: Sequence[Message]) -> None:
        super().__init__(stream)
        self._owner = owner
        self._messages: Sequence[Message] | None = messages
        self._reply = StreamedReply()
        self._chunks = self._read()

    async def _read(self) -> AsyncIterator[Any]:
        try:
            async for chunk in self._target:
                self._reply.add(chunk)
                yield chunk
        finally:
            await self._end()

    async def _end(self) -> None:
        messages, self._messages = self._messages, None
        if messages is not None:
            await self._owner.record(messages, self._reply.message())

    def __aiter__(self) -> AsyncIterator[Any]:
        return self._chunks

    async def __anext__(self) -> Any:
        return await anext(self._chunks)

    async def close(self) -> None:
        """As the stream's own; what came so far is recorded."""
        try:
            await self._target.close()
        finally:
            await self._end()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


def wrap_openai(
    client: Any, memory: Memory, scope: Scope, *, budget_tokens: int | None = None, turns: int = 0
) -> OpenAIWithMemory:
    """An `openai.OpenAI` with memory around ``chat.completions.create`` and ``parse``, for one conversation.

    Before each completion the context window is put behind the instructions; afterwards what was said since the last
    answer and the reply are recorded in the scope's session. ``turns`` are the latest turns that the window shows: none
    for a program that sends the conversation along, more for one that sends the newest message alone.
    Wrapping is cheap: wrap one client anew for each conversation.
    """
    return OpenAIWithMemory(
        client, _impatient(memory), Recorder(scope, budget_tokens=budget_tokens, turns=turns)
    )


def wrap_async_openai(
    client: Any, memory: AsyncMemory, scope: Scope, *, budget_tokens: int | None = None, turns: int = 0
) -> AsyncOpenAIWithMemory:
    """`wrap_openai` for an `openai.AsyncOpenAI`, with an `AsyncMemoryClient`."""
    return AsyncOpenAIWithMemory(
        client, _impatient(memory), Recorder(scope, budget_tokens=budget_tokens, turns=turns)
    )


def _impatient(memory: Any) -> Any:
    """The client with the patience of a chat; the facade, which is in this process, as it is."""
    limited = getattr(memory, "limited", None)
    return memory if limited is None else limited(timeout_seconds=MEMORY_SECONDS, retries=BRIEF)
