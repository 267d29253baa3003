"""Chat messages as the OpenAI API has them: where the context window goes, and a reply put together from its pieces.

Messages and answers are JSON objects, or objects of the API's client library.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import BaseModel

Json = dict[str, Any]
Message = Mapping[str, Any] | BaseModel

INSTRUCTIONS = frozenset({"system", "developer"})
"""Roles of messages that are the program's own instructions: nobody said them, so they are not recorded."""

REPLY_LIMIT_CHARS = 1_000_000
"""Of a streamed reply, and of the arguments of a call, that are kept: what goes on is not recorded."""

SAYS_SOMETHING = ("content", "refusal", "tool_calls", "audio")
"""Fields of a reply, one of which is not empty."""


def as_json(value: object) -> Json:
    """The object as a dictionary; empty for what is none."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", exclude_none=True, warnings=False)
    return dict(value) if isinstance(value, Mapping) else {}


def is_instruction(message: Message) -> bool:
    return as_json(message).get("role") in INSTRUCTIONS


def with_window(messages: Sequence[Message], window: str) -> list[Message]:
    """The messages with the context window behind the instructions that they begin with: these stay the beginning of
    the prompt, which providers keep from one request to the next."""
    first = next(
        (place for place, message in enumerate(messages) if not is_instruction(message)), len(messages)
    )
    return [*messages[:first], {"role": "system", "content": window}, *messages[first:]]


def reply_of(answer: object) -> Json | None:
    """The message of an answer that came as a whole; None where nothing was said."""
    message = as_json(_first_choice(answer).get("message"))
    if not any(message.get(name) for name in SAYS_SOMETHING):
        return None
    return {"content": None, **message, "role": "assistant"}


class StreamedReply:
    """The message of an answer that comes in pieces."""

    def __init__(self) -> None:
        self._texts = {"content": "", "refusal": ""}
        self._calls: dict[int, dict[str, str]] = {}

    def add(self, chunk: object) -> None:
        """Read a chunk of the stream. Its other choices are variants, which nobody may have seen."""
        delta = as_json(_first_choice(chunk).get("delta"))
        for name in self._texts:
            _extend(self._texts, name, delta.get(name))
        for call in _items(delta.get("tool_calls")):
            self._add_call(call)

    def message(self) -> Json | None:
        """The message so far; None while nothing was said."""
        calls = [_call(parts) for _, parts in sorted(self._calls.items()) if parts["name"]]
        content, refusal = self._texts["content"], self._texts["refusal"]
        if not (content.strip() or refusal.strip() or calls):
            return None
        fields = {"refusal": refusal, "tool_calls": calls}
        return {"role": "assistant", "content": content or None} | {
            name: value for name, value in fields.items() if value
        }

    def _add_call(self, call: Json) -> None:
        index = call.get("index")
        place = index if isinstance(index, int) else 0
        parts = self._calls.setdefault(place, {"id": "", "name": "", "arguments": ""})
        # The id comes once, the name and the arguments in pieces.
        parts["id"] = parts["id"] or str(call.get("id") or "")
        function = as_json(call.get("function"))
        for name in ("name", "arguments"):
            _extend(parts, name, function.get(name))


def _first_choice(answer: object) -> Json:
    """The choice number 0 of an answer or a chunk; empty where there is none."""
    choices = _items(as_json(answer).get("choices"))
    return next((choice for choice in choices if choice.get("index", 0) == 0), {})


def _items(values: object) -> Iterator[Json]:
    """The objects of a list; nothing for what is no list."""
    for value in values if isinstance(values, list) else ():
        if item := as_json(value):
            yield item


def _extend(parts: dict[str, str], name: str, piece: object) -> None:
    if isinstance(piece, str) and len(parts[name]) < REPLY_LIMIT_CHARS:
        parts[name] += piece


def _call(parts: Mapping[str, str]) -> Json:
    function = {"name": parts["name"], "arguments": parts["arguments"]}
    return {"id": parts["id"], "type": "function", "function": function}
