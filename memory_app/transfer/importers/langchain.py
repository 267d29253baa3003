"""Message lists of LangChain: as `messages_to_dict` writes them, as `dumps` does, or flat with a ``type``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from memory_app.transfer.importers.openai_messages import messages_or_conversations, read_message
from memory_app.transfer.importers.records import (
    Conversation,
    Form,
    Format,
    Item,
    Omission,
    Options,
    Reason,
    Shape,
    Source,
)
from memory_app.transfer.importers.values import list_of, mapping_of, text_of

_ROLES = {
    "human": "user",
    "humanmessage": "user",
    "ai": "assistant",
    "aimessage": "assistant",
    "aimessagechunk": "assistant",
    "system": "system",
    "systemmessage": "system",
    "tool": "tool",
    "toolmessage": "tool",
    "function": "function",
    "functionmessage": "function",
}
_CHAT = ("chat", "chatmessage")
"""Types of messages whose role is a field of theirs."""


def _recognises(shape: Shape) -> bool:
    first = shape.element_of("messages") if shape.form is Form.OBJECT else shape.element()
    is_typed = _kind(first) in (*_ROLES, *_CHAT)
    return is_typed and ("content" in _inner(first) or "data" in first)


def _read(source: Source, options: Options) -> Iterator[Item]:
    is_begun = False
    for element in messages_or_conversations(source):
        if not is_begun:
            is_begun = True
            yield Conversation(element.place)
        yield _message(element.place, mapping_of(element.value), options)


def _kind(written: Mapping[str, object]) -> str:
    """The type of a message in lower case: "human", or the last part of the path to its class."""
    if written.get("type") == "constructor":
        path = list_of(written.get("id"))
        return text_of(path[-1]).lower() if path else ""
    return text_of(written.get("type")).lower()


def _inner(written: Mapping[str, object]) -> Mapping[str, object]:
    for name in ("data", "kwargs"):
        if isinstance(written.get(name), Mapping):
            return mapping_of(written.get(name))
    return written


def _message(place: str, written: Mapping[str, object], options: Options) -> Item:
    kind = _kind(written)
    fields = _inner(written)
    role = text_of(fields.get("role")) if kind in _CHAT else _ROLES.get(kind)
    if not role:
        return Omission(place, Reason.UNREADABLE, "type is missing")
    extra = mapping_of(fields.get("additional_kwargs"))
    message: dict[str, Any] = {
        **{name: extra[name] for name in ("timestamp", "created_at", "time", "date") if name in extra},
        **{name: fields[name] for name in ("id", "name", "tool_call_id", "timestamp") if fields.get(name)},
        "role": role,
        "content": fields.get("content"),
    }
    calls = [_call(mapping_of(call)) for call in list_of(fields.get("tool_calls"))]
    if calls:
        message["tool_calls"] = calls
    return read_message(place, message, options)


def _call(call: Mapping[str, object]) -> dict[str, Any]:
    """A call of a tool as chat completions have it."""
    function = {"name": text_of(call.get("name")), "arguments": json.dumps(call.get("args"), default=str)}
    return {"id": text_of(call.get("id")), "type": "function", "function": function}


LANGCHAIN = Format("langchain", _recognises, _read, needs="messages with a `type` such as human or ai")
