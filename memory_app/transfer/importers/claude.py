"""The export of Claude: ``conversations.json``, a list of conversations with their ``chat_messages``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from memory_app.language.marks import MarkKind, mark
from memory_app.records.records import Role
from memory_app.transfer.importers.json_items import elements
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
from memory_app.transfer.importers.values import (
    branch,
    id_of,
    instant_of,
    list_of,
    mapping_of,
    message,
    text_of,
)

_ROLES = {"human": Role.USER, "user": Role.USER, "assistant": Role.ASSISTANT}

_ROOT = "00000000-0000-4000-8000-000000000000"
"""What the first message of a conversation names as the one before it."""


def _recognises(shape: Shape) -> bool:
    if shape.form is Form.LIST:
        return "chat_messages" in shape.element()
    return shape.form is Form.OBJECT and (
        "chat_messages" in shape.entries or "chat_messages" in shape.element_of("conversations")
    )


def _read(source: Source, options: Options) -> Iterator[Item]:
    for element in elements(source, keys={"conversations"}):
        conversation = mapping_of(element.value)
        written = conversation.get("chat_messages")
        if not isinstance(written, list):
            yield Omission(element.place, Reason.UNREADABLE, "chat_messages is missing")
            continue
        owner = id_of(mapping_of(conversation.get("account")).get("uuid"))
        yield Conversation(element.place, id=id_of(conversation.get("uuid")), owner=owner)
        yield from _messages(f"{element.place}.chat_messages", written, options)


def _messages(place: str, written: Sequence[object], options: Options) -> Iterator[Item]:
    shown = _shown(written)
    for number, value in enumerate(written):
        here = f"{place}[{number}]"
        fields = mapping_of(value)
        if shown is not None and id_of(fields.get("uuid")) not in shown:
            yield Omission(here, Reason.BRANCH)
        else:
            yield _message(here, fields, options)


def _shown(written: Sequence[object]) -> frozenset[str] | None:
    """Ids of the branch that ends with the last message; None where the export names no predecessors."""
    messages = [mapping_of(value) for value in written]
    parents = {
        text_of(fields.get("uuid")): id_of(fields.get("parent_message_uuid"))
        for fields in messages
        if text_of(fields.get("uuid"))
    }
    named = [parent for parent in parents.values() if parent not in (None, _ROOT)]
    # Without two that follow on the same one nothing branches; a gap in the chain must not cost what is before it.
    if len(named) == len(set(named)) or not messages:
        return None
    return frozenset(branch(parents, text_of(messages[-1].get("uuid"))))


def _message(place: str, fields: Mapping[str, object], options: Options) -> Item:
    role = _ROLES.get(text_of(fields.get("sender")))
    if role is None:
        return Omission(place, Reason.UNREADABLE, "sender is missing")
    texts = [*_texts(fields), *_files(fields)]
    return message(
        place,
        role=role,
        text="\n".join(texts),
        at=instant_of(fields.get("created_at"), options.time_zone),
        id=id_of(fields.get("uuid")),
    )


def _texts(fields: Mapping[str, object]) -> list[str]:
    """What was said. The parts come first: ``text`` has a place holder where a tool was called."""
    parts = [mapping_of(part) for part in list_of(fields.get("content"))]
    texts = [text_of(part.get("text")) for part in parts if part.get("type") == "text"]
    said = [text for text in texts if text.strip()]
    if said or parts:
        return said
    return [text_of(fields.get("text"))]


def _files(fields: Mapping[str, object]) -> Iterator[str]:
    for attached in (*list_of(fields.get("attachments")), *list_of(fields.get("files"))):
        yield mark(MarkKind.FILE, text_of(mapping_of(attached).get("file_name")))


CLAUDE = Format("claude", _recognises, _read, needs="conversations with `chat_messages`")
