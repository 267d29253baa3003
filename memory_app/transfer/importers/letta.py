"""Agent files of Letta (``.af``): the blocks of its core memory become statements, its messages turns.

Both forms are read: one agent with ``core_memory``, and lists of ``agents`` and ``blocks``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from memory_app.records.records import Origin, Role, Statement
from memory_app.transfer.importers.json_items import elements
from memory_app.transfer.importers.records import (
    Conversation,
    Form,
    Format,
    Item,
    Memory,
    Omission,
    Options,
    Reason,
    Shape,
    Source,
)
from memory_app.transfer.importers.values import (
    id_of,
    instant_of,
    list_of,
    mapping_of,
    message,
    text_of,
)

NAME = "letta"

_SEND = "send_message"
"""The tool by which an agent of the older kind speaks."""

_PERSONA = "persona"
"""The label of the block that is about the agent itself; the others are about the user, or what both work on."""


def _recognises(shape: Shape) -> bool:
    if shape.form is not Form.OBJECT:
        return False
    has_blocks = isinstance(shape.entries.get("agents"), list) and isinstance(
        shape.entries.get("blocks"), list
    )
    return has_blocks or isinstance(shape.entries.get("core_memory"), list)


def _read(source: Source, options: Options) -> Iterator[Item]:
    is_begun = False
    for element in elements(source, keys={"agents", "blocks", "core_memory", "messages"}):
        fields = mapping_of(element.value)
        if element.key in ("blocks", "core_memory"):
            yield from _block(element.place, fields, options)
        elif element.key == "messages":
            if not is_begun:
                is_begun = True
                yield Conversation("messages")
            yield _message(element.place, fields, options)
        elif element.key == "agents":
            yield Conversation(element.place, id=id_of(fields.get("id")))
            for number, value in enumerate(list_of(fields.get("messages"))):
                yield _message(f"{element.place}.messages[{number}]", mapping_of(value), options)


def _block(place: str, fields: Mapping[str, object], options: Options) -> Iterator[Item]:
    value = fields.get("value")
    if not isinstance(value, str):
        yield Omission(place, Reason.UNREADABLE, "value is missing")
        return
    kind = "core" if fields.get("label") == _PERSONA else "fact"
    at = instant_of(fields.get("created_at"), options.time_zone)
    # A block is written line by line, and a line is what one statement can hold.
    for number, line in enumerate(value.splitlines()):
        text = line.strip().removeprefix("- ").strip()
        if text:
            statement = Statement(kind, text, origin=Origin.IMPORTED, source=NAME, valid_from=at, said_at=at)
            yield Memory(f"{place}.value[{number}]", statement)


def _message(place: str, fields: Mapping[str, object], options: Options) -> Item:
    role = text_of(fields.get("role"))
    at = instant_of(fields.get("created_at"), options.time_zone)
    id = id_of(fields.get("id"))
    text = _text(fields)
    if role == "user":
        unpacked = _unpacked(text)
        # What is no message of the user is an event that the program tells the agent of.
        if unpacked is None:
            return Omission(place, Reason.INTERNAL)
        return message(place, role=Role.USER, text=unpacked, at=at, id=id)
    if role == "assistant":
        spoken = [words for call in list_of(fields.get("tool_calls")) if (words := _sent(mapping_of(call)))]
        # Beside a call of the tool that speaks, the content is what the agent thinks.
        said = "\n".join(spoken) or ("" if fields.get("tool_calls") else text)
        if not said.strip():
            return Omission(place, Reason.INTERNAL)
        return message(place, role=Role.ASSISTANT, text=said, at=at, id=id)
    if role in ("system", "tool", "approval"):
        return Omission(place, Reason.INTERNAL)
    return Omission(place, Reason.UNREADABLE, "role is missing")


def _text(fields: Mapping[str, object]) -> str:
    content = fields.get("content")
    if isinstance(content, str):
        return content
    parts = [mapping_of(part) for part in list_of(content)]
    return "\n".join(text_of(part.get("text")) for part in parts if part.get("type", "text") == "text")


def _unpacked(text: str) -> str | None:
    """The words of a user's message, which older versions pack into JSON; None for an event of the program."""
    try:
        packed = json.loads(text)
    except (ValueError, RecursionError):
        return text
    if not isinstance(packed, dict) or "type" not in packed:
        return text
    return text_of(packed.get("message")) if packed["type"] == "user_message" else None


def _sent(call: Mapping[str, object]) -> str:
    """What a call of the speaking tool says; empty for any other call."""
    function = mapping_of(call.get("function"))
    if function.get("name") != _SEND:
        return ""
    try:
        arguments = json.loads(text_of(function.get("arguments")))
    except (ValueError, RecursionError):
        return ""
    return text_of(mapping_of(arguments).get("message"))


LETTA = Format(NAME, _recognises, _read, needs="`agents` and `blocks`, or `core_memory`")
