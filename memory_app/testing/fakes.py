"""A language model without a server: says what it was told to say, and notes what it was asked."""

from __future__ import annotations

import json
from collections.abc import Sequence
from threading import Lock
from typing import TypeVar

from pydantic import BaseModel

from memory_app.errors import BadModelOutput, MemoryAppError
from memory_app.providers.chat.chat import Answer
from memory_app.providers.chat.dialect import Dialect, Message, request_body
from memory_app.providers.chat.json_text import Unreadable, read_answer
from memory_app.providers.chat.reply import estimated_tokens
from memory_app.providers.chat.shape import shape_of
from memory_app.providers.chat.usage import OnUsage, Usage
from memory_app.testing.answers import answer_of

Model = TypeVar("Model", bound=BaseModel)


class ScriptedModel:
    """A `LanguageModel` that gives ``answers`` in turn: JSON, a string as it is, an error to raise, or a function
    of the request's body. When none is left it says the smallest thing that fits.
    """

    def __init__(self, *answers: object, model: str = "scripted") -> None:
        self.model = model
        self.asked: list[tuple[Message, ...]] = []
        self._answers = list(answers)
        self._lock = Lock()

    def complete(
        self,
        messages: Sequence[Message],
        shape: type[Model],
        *,
        on_usage: OnUsage | None = None,
        optional: bool = False,
    ) -> Answer[Model]:
        """See `Chat.complete`; nothing is repaired."""
        answer_shape = shape_of(shape)
        body = request_body(
            Dialect(),
            self.model,
            messages=messages,
            shape=answer_shape,
            temperature=0,
            output_limit_tokens=4_000,
        )
        text = self._next_text(messages, body)
        usage = Usage(
            model=self.model,
            tokens_in=estimated_tokens(json.dumps(body)),
            tokens_out=estimated_tokens(text),
            seconds=0.0,
        )
        if on_usage is not None:
            on_usage(usage)
        try:
            reading = read_answer(text, answer_shape)
        except Unreadable as error:
            raise BadModelOutput(error.reason) from None
        return Answer(
            value=reading.value,
            text=text,
            model=self.model,
            tokens_in=usage.tokens_in,
            tokens_out=usage.tokens_out,
            calls=1,
            dropped=reading.dropped,
        )

    def _next_text(self, messages: Sequence[Message], body: dict[str, object]) -> str:
        # Calls come from several threads, and each answer is to be given once.
        with self._lock:
            self.asked.append(tuple(messages))
            answer = self._answers.pop(0) if self._answers else answer_of
        if isinstance(answer, MemoryAppError):
            raise answer
        content = answer(body) if callable(answer) else answer
        return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
