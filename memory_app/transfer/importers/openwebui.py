"""Exports of Open WebUI: chats, each a tree of messages, and the memories of a user."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from memory_app.records.records import Origin, Statement
from memory_app.transfer.importers.json_items import elements
from memory_app.transfer.importers.openai_messages import read_message
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
from memory_app.transfer.importers.values import branch, id_of, instant_of, mapping_of, text_of

NAME = "openwebui"

_FIELDS = ("role", "content", "id", "timestamp")
"""What is read of a message; the rest is about how it was shown."""


def _recognises(shape: Shape) -> bool:
    first = shape.element()
    has_chats = "messages" in mapping_of(first.get("chat")) or "history" in mapping_of(first.get("chat"))
    return shape.form in (Form.LIST, Form.OBJECT) and (has_chats or _is_memory(first))


def _is_memory(value: Mapping[str, object]) -> bool:
    return {"id", "user_id", "content"} <= value.keys() and "role" not in value


def _read(source: Source, options: Options) -> Iterator[Item]:
    for element in elements(source):
        fields = mapping_of(element.value)
        owner = id_of(fields.get("user_id"))
        if _is_memory(fields):
            yield _memory(element.place, fields, owner, options)
            continue
        chat = mapping_of(fields.get("chat"))
        if "messages" not in chat and "history" not in chat:
            yield Omission(element.place, Reason.UNREADABLE, "chat.messages is missing")
            continue
        yield Conversation(element.place, id=id_of(fields.get("id")), owner=owner)
        yield from _messages(f"{element.place}.chat", chat, options)


def _messages(place: str, chat: Mapping[str, object], options: Options) -> Iterator[Item]:
    history = mapping_of(chat.get("history"))
    tree = mapping_of(history.get("messages"))
    current = id_of(history.get("currentId"))
    if current is None or current not in tree:
        listed = chat.get("messages")
        for number, value in enumerate(listed if isinstance(listed, list) else []):
            yield _message(f"{place}.messages[{number}]", value, options)
        return
    parents = {key: id_of(mapping_of(value).get("parentId")) for key, value in tree.items()}
    shown = branch(parents, current)
    for key in tree.keys() - set(shown):
        yield Omission(f"{place}.history.messages.{key[:64]}", Reason.BRANCH)
    for key in shown:
        yield _message(f"{place}.history.messages.{key[:64]}", tree[key], options)


def _message(place: str, value: object, options: Options) -> Item:
    fields = mapping_of(value)
    return read_message(place, {name: fields[name] for name in _FIELDS if name in fields}, options)


def _memory(place: str, fields: Mapping[str, object], owner: str | None, options: Options) -> Item:
    text = text_of(fields.get("content"))
    if not text.strip():
        return Omission(place, Reason.EMPTY)
    at = instant_of(fields.get("created_at"), options.time_zone)
    statement = Statement("fact", text, origin=Origin.IMPORTED, source=NAME, valid_from=at, said_at=at)
    return Memory(place, statement, owner=owner)


OPENWEBUI = Format(
    NAME, _recognises, _read, needs="chats with a `chat`, or memories with `content` and `user_id`"
)
