"""Ask a language model for an answer of a given shape, and get that or an error: never an empty success.

One question is one or two calls: when nothing of the first answer can be read, the model is told why and asked once
more. After that it is `UnreadableAnswer` with the reason; a refusal is `BadModelOutput` at once. An odd item of a list
is no reason to ask again: it is dropped and counted. Everything about time, retries and postponing is the caller's.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from pydantic import BaseModel

from memory_app import metrics
from memory_app.errors import BadModelOutput, TooSlow, UnreadableAnswer
from memory_app.providers.chat.dialect import Dialect, Message, request_body, schema_in_words, simpler
from memory_app.providers.chat.json_text import Unreadable, read_answer
from memory_app.providers.chat.reply import Reply, estimated_tokens, reply_of
from memory_app.providers.chat.shape import Shape, shape_of
from memory_app.providers.chat.usage import OnUsage, Usage
from memory_app.providers.provider import Passage, Refused, Wire, open_gate

T = TypeVar("T")
Model = TypeVar("Model", bound=BaseModel)

SHOWN_AGAIN_CHARS = 4_000
"""How much of an unreadable answer is shown to the model when it is asked once more."""

LATENCIES = 0.2
"""Weight of the newest call in the running mean of latencies."""


@dataclass(frozen=True, slots=True)
class Answer(Generic[T]):
    """``value`` is of the shape asked for, ``text`` what it was read from. Tokens and calls are of all calls made.

    ``dropped`` counts what was left out of ``value`` because it could not be read, by words that may be stored.
    """

    value: T
    text: str
    model: str
    tokens_in: int = 0
    tokens_out: int = 0
    seconds: float = 0.0
    calls: int = 0
    dropped: Mapping[str, int] = field(default_factory=dict)


class LanguageModel(Protocol):
    """Anything that answers as `Chat` does."""

    @property
    def model(self) -> str: ...

    def complete(
        self,
        messages: Sequence[Message],
        shape: type[Model],
        *,
        on_usage: OnUsage | None = None,
        optional: bool = False,
    ) -> Answer[Model]: ...


class Chat:
    """One model on one server. Safe between threads.

    ``gate`` stands before every call. ``slow_after_seconds``: while the mean of the latest calls is above it,
    optional questions are not asked (`TooSlow`); 0 asks always.
    """

    def __init__(
        self,
        connection: Wire,
        model: str,
        *,
        gate: Passage = open_gate,
        temperature: float = 0.0,
        output_limit_tokens: int = 4_000,
        question_seconds: float = 40.0,
        slow_after_seconds: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.model = model
        self._connection = connection
        self._gate = gate
        self._temperature = temperature
        self._limit = output_limit_tokens
        self._question_seconds = question_seconds
        self._slow_after = slow_after_seconds
        self._clock = clock
        self._latency = 0.0
        self._dialect = Dialect()

    def __repr__(self) -> str:
        return f"Chat({self.model!r}, {self._connection!r})"

    @property
    def dialect(self) -> Dialect:
        """What was learnt about the server so far."""
        return self._dialect

    def complete(
        self,
        messages: Sequence[Message],
        shape: type[Model],
        *,
        on_usage: OnUsage | None = None,
        optional: bool = False,
    ) -> Answer[Model]:
        """The model's answer to ``messages`` as a ``shape``.

        Raises `UnreadableAnswer` after one repair, `BadModelOutput`, `RateLimited`, `CircuitOpen` or
        `ProviderUnavailable`.
        """
        if optional and self._slow_after and self._latency > self._slow_after:
            # The mean moves with calls alone: without this, nothing optional would ever be asked again.
            self._latency *= 1 - LATENCIES
            raise TooSlow("the language model is slow; what is optional is left out", retry_after=60)
        question = _Question(self._call, self._clock, self._question_seconds)
        return question.answered(messages, shape_of(shape), on_usage)

    def close(self) -> None:
        self._connection.close()

    def _call(self, messages: Sequence[Message], shape: Shape[Any]) -> tuple[Reply, float]:
        """One answer of the model, and how long it took in seconds."""
        sent = estimated_tokens("".join(message.text for message in messages))
        with self._gate(sent) as spent:
            started = self._clock()
            reply = reply_of(self._post(messages, shape), model=self.model, sent_tokens=sent)
            seconds = self._clock() - started
        spent(reply.tokens_out)
        self._latency += (seconds - self._latency) * LATENCIES
        return reply, seconds

    def _post(self, messages: Sequence[Message], shape: Shape[Any]) -> Mapping[str, object]:
        dialect = self._dialect
        # Each round takes something out of the request, so that it ends after a few.
        while True:
            body = request_body(
                dialect,
                self.model,
                messages=messages,
                shape=shape,
                temperature=self._temperature,
                output_limit_tokens=self._limit,
            )
            try:
                answer = self._connection.post("/chat/completions", body)
            except Refused as error:
                easier = simpler(dialect, error.hint)
                if easier is None:
                    raise
                dialect = easier
            else:
                # Noted once it was understood; two threads may learn the same, which needs no lock.
                self._dialect = dialect
                return answer


Call = Callable[[Sequence[Message], Shape[Any]], tuple[Reply, float]]


class _Question:
    """One question with its repair: what was spent adds up, and the time for both is limited."""

    def __init__(self, call: Call, clock: Callable[[], float], seconds: float) -> None:
        self._call = call
        self._clock = clock
        self._ends_at = clock() + seconds
        self._usages: list[Usage] = []

    def answered(self, messages: Sequence[Message], shape: Shape[T], on_usage: OnUsage | None) -> Answer[T]:
        reply = self._asked(messages, shape, on_usage)
        try:
            return self._answer(reply, shape)
        except Unreadable as error:
            first = error
        # A refusal would be repeated and paid for twice.
        if not first.repairable:
            raise BadModelOutput(f"{first.reason} (model {reply.model})")
        # A slow model would be waited for twice.
        if self._clock() > self._ends_at:
            raise UnreadableAnswer(f"{first.reason} (model {reply.model})")
        metrics.model_repairs.inc()
        again = self._asked([*messages, *repair_messages(reply, first, shape)], shape, on_usage)
        try:
            return self._answer(again, shape)
        except Unreadable as error:
            raise UnreadableAnswer(f"{error.reason}, after one repair (model {again.model})") from None

    def _asked(self, messages: Sequence[Message], shape: Shape[Any], on_usage: OnUsage | None) -> Reply:
        reply, seconds = self._call(messages, shape)
        usage = Usage(
            model=reply.model, tokens_in=reply.tokens_in, tokens_out=reply.tokens_out, seconds=seconds
        )
        # Before the answer is read: it was paid for, whatever it is worth.
        self._usages.append(usage)
        if on_usage is not None:
            on_usage(usage)
        return reply

    def _answer(self, reply: Reply, shape: Shape[T]) -> Answer[T]:
        if reply.fault is not None:
            raise reply.fault
        reading = read_answer(reply.text, shape, complete=reply.complete)
        return Answer(
            value=reading.value,
            text=reply.text,
            model=reply.model,
            tokens_in=sum(usage.tokens_in for usage in self._usages),
            tokens_out=sum(usage.tokens_out for usage in self._usages),
            seconds=sum(usage.seconds for usage in self._usages),
            calls=len(self._usages),
            dropped=reading.dropped,
        )


def repair_messages(reply: Reply, error: Unreadable, shape: Shape[Any]) -> list[Message]:
    """What is said to a model whose answer could not be read."""
    wish = "Answer again. " + schema_in_words(shape)
    if not reply.complete:
        wish = (
            f"Answer again in at most half the length: keep only what matters most. {schema_in_words(shape)}"
        )
    excerpt = reply.text[:SHOWN_AGAIN_CHARS] or "(nothing)"
    return [Message("assistant", excerpt), Message("user", f"That could not be used: {error.reason}. {wish}")]
