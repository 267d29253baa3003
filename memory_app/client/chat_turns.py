"""What a chat completion means to memory: the question it asks, where the window goes, which turns are new. Pure.

Messages are as the OpenAI API takes them: mappings, or objects of its client.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel

Message = Mapping[str, Any] | BaseModel
Json = dict[str, Any]

INSTRUCTIONS = ("system", "developer")
"""Roles of messages that nobody said; they are not recorded."""


def as_json(message: Message) -> Json:
    if isinstance(message, BaseModel):
        return message.model_dump(mode="json", exclude_none=True, warnings=False)
    return dict(message)


def question_of(messages: Sequence[Json]) -> str | None:
    """The text of the last message of the user, or None."""
    for message in reversed(messages):
        if message.get("role") == "user":
            return _text_of(message.get("content")) or None
    return None


def _text_of(content: object) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, Sequence):
        return ""
    parts = [part.get("text") for part in content if isinstance(part, Mapping)]
    return "\n".join(part for part in parts if isinstance(part, str))


def with_window(messages: Sequence[Message], window: str) -> list[Message]:
    """The messages with the context window behind the instructions that they begin with."""
    instructions = 0
    while instructions < len(messages) and as_json(messages[instructions]).get("role") in INSTRUCTIONS:
        instructions += 1
    return [*messages[:instructions], {"role": "system", "content": window}, *messages[instructions:]]


def new_turns(messages: Sequence[Json]) -> list[Json]:
    """What was said since the assistant's last message, to be recorded.

    Where earlier messages come along, a turn has an idempotency key made of all of them up to it: a completion that is
    asked for once more records nothing again. Without them the same words may well have been said twice.
    """
    said = [message for message in messages if message.get("role") not in INSTRUCTIONS]
    answered = max((place for place, message in enumerate(said) if _is_answer(message)), default=None)
    if answered is None:
        return said
    return [
        {"idempotency_key": _key_of(said[: place + 1]), **said[place]}
        for place in range(answered + 1, len(said))
    ]


def _is_answer(message: Json) -> bool:
    return message.get("role") == "assistant"


def _key_of(messages: Sequence[Json]) -> str:
    spoken = [
        {name: message.get(name) for name in ("role", "content", "tool_calls", "tool_call_id")}
        for message in messages
    ]
    return hashlib.sha256(json.dumps(spoken, sort_keys=True, default=str).encode()).hexdigest()


class Reply:
    """The assistant's message, put together from the pieces of a stream."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._refusals: list[str] = []
        self._calls: dict[int, Json] = {}

    def add(self, chunk: Any) -> None:
        """Take the first choice of a chunk; others are variants that nobody may have seen."""
        for choice in getattr(chunk, "choices", None) or ():
            if choice.index == 0 and choice.delta is not None:
                self._add(choice.delta)

    def _add(self, delta: Any) -> None:
        self._texts.append(getattr(delta, "content", None) or "")
        self._refusals.append(getattr(delta, "refusal", None) or "")
        for piece in getattr(delta, "tool_calls", None) or ():
            call = self._calls.setdefault(
                piece.index, {"id": "", "type": "function", "function": {"name": "", "arguments": ""}}
            )
            call["id"] = call["id"] or piece.id or ""
            if piece.function is not None:
                call["function"]["name"] += piece.function.name or ""
                call["function"]["arguments"] += piece.function.arguments or ""

    def message(self) -> Json | None:
        """The message; None where nothing was said."""
        text, refusal = "".join(self._texts), "".join(self._refusals)
        calls = [self._calls[place] for place in sorted(self._calls)]
        if not text and not refusal and not calls:
            return None
        message: Json = {"role": "assistant", "content": text or None}
        if refusal:
            message["refusal"] = refusal
        if calls:
            message["tool_calls"] = calls
        return message


def reply_of(completion: Any) -> Json | None:
    """The message of a completion that came as a whole; None where nothing was said."""
    choices = getattr(completion, "choices", None)
    if not choices:
        return None
    message = as_json(choices[0].message)
    says_something = any(message.get(name) for name in ("content", "refusal", "tool_calls", "audio"))
    return {"content": None, **message} if says_something else None
