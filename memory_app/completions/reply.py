"""Read the model's reply out of its answer, in one piece or as a stream of events, so that it can be recorded. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

LONGEST_CHARS = 1_000_000
"""Of a reply that is kept; what goes on is passed on and not recorded."""


@dataclass(slots=True)
class Reply:
    """The first choice of an answer, put together from the pieces of a stream."""

    _rest: bytes = b""
    _texts: list[str] = field(default_factory=list)
    _chars: int = 0
    _calls: dict[int, dict[str, str]] = field(default_factory=dict)

    def feed(self, piece: bytes) -> None:
        """Read a piece, which may end in the middle of a line."""
        *lines, self._rest = (self._rest + piece).split(b"\n")
        for line in lines:
            name, _, value = line.rstrip(b"\r").partition(b":")
            if name == b"data":
                self._read(value)

    def message(self) -> dict[str, Any] | None:
        """The reply so far as a chat message; None while nothing was said."""
        text = "".join(self._texts)
        calls = [
            {
                "id": call["id"],
                "type": "function",
                "function": {"name": call["name"], "arguments": call["arguments"]},
            }
            for _, call in sorted(self._calls.items())
            if call["name"]
        ]
        if not text.strip() and not calls:
            return None
        message: dict[str, Any] = {"role": "assistant", "content": text or None}
        return message | ({"tool_calls": calls} if calls else {})

    def _read(self, value: bytes) -> None:
        delta = _choice(_json(value)).get("delta")
        if not isinstance(delta, Mapping):
            return
        text = delta.get("content")
        if isinstance(text, str) and self._chars < LONGEST_CHARS:
            self._texts.append(text)
            self._chars += len(text)
        calls = delta.get("tool_calls")
        for call in calls if isinstance(calls, list) else ():
            self._read_call(call)

    def _read_call(self, call: object) -> None:
        if not isinstance(call, Mapping):
            return
        index = call.get("index")
        known = self._calls.setdefault(
            index if isinstance(index, int) else 0, {"id": "", "name": "", "arguments": ""}
        )
        function = call.get("function")
        parts = {"id": call.get("id")} | (dict(function) if isinstance(function, Mapping) else {})
        for name in known:
            part = parts.get(name)
            # The name and the arguments come in pieces, too.
            if isinstance(part, str) and len(known[name]) < LONGEST_CHARS:
                known[name] += part


def message_in(content: bytes) -> dict[str, Any] | None:
    """The reply of an answer in one piece; None where it holds none."""
    message = _choice(_json(content)).get("message")
    if not isinstance(message, Mapping):
        return None
    says_something = any(message.get(name) for name in ("content", "tool_calls", "refusal", "function_call"))
    return {**message, "role": "assistant"} if says_something else None


def _choice(answer: object) -> Mapping[str, Any]:
    """The first choice of an answer, or of an event; one without any is no fault."""
    choices = answer.get("choices") if isinstance(answer, Mapping) else None
    for choice in choices if isinstance(choices, list) else ():
        if isinstance(choice, Mapping) and choice.get("index", 0) == 0:
            return choice
    return {}


def _json(value: bytes) -> object:
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        # The end of a stream is no JSON.
        return None
