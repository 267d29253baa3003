"""Chat messages of OpenAI's API: a list, lines, an object with ``messages``, or several such conversations."""

from __future__ import annotations

from collections.abc import Iterator

from memory_app.errors import InvalidInput
from memory_app.records.records import NewTurn
from memory_app.transfer.importers.json_items import Element, elements, has_lines, lines
from memory_app.transfer.importers.records import (
    Conversation,
    Form,
    Format,
    Item,
    Message,
    Omission,
    Options,
    Reason,
    Shape,
    Source,
)
from memory_app.transfer.importers.values import id_of, instant_of, list_of, mapping_of, name_of
from memory_app.turns.bodies import parse_message

TIMES = ("at", "timestamp", "created_at", "create_time", "created", "time", "date")
"""Fields that hold the time of a message where a program stores one, the surest first."""


def _recognises(shape: Shape) -> bool:
    if shape.form is Form.OBJECT:
        return "role" in shape.element_of("messages") or {"role", "content"} <= shape.entries.keys()
    if shape.form is Form.LIST and isinstance(shape.first, list):
        return "role" in mapping_of(next(iter(shape.first), None))
    first = shape.element()
    return "role" in first or "role" in mapping_of(next(iter(list_of(first.get("messages"))), None))


def _read(source: Source, options: Options) -> Iterator[Item]:
    is_begun = False
    for element in messages_or_conversations(source):
        inner = (
            element.value if isinstance(element.value, list) else mapping_of(element.value).get("messages")
        )
        if isinstance(inner, list):
            id = id_of(mapping_of(element.value).get("id"))
            yield Conversation(element.place, id=id)
            for number, value in enumerate(inner):
                yield read_message(f"{element.place}.messages[{number}]", value, options)
            continue
        if not is_begun:
            is_begun = True
            yield Conversation(element.place)
        yield read_message(element.place, element.value, options)


def messages_or_conversations(source: Source) -> Iterator[Element]:
    """The elements of the file: messages, or conversations of them."""
    if has_lines(source):
        yield from lines(source)
    else:
        yield from elements(source, keys={"messages"})


def read_message(place: str, value: object, options: Options) -> Item:
    """The message in a mapping, with the time that the program stored beside it."""
    fields = dict(mapping_of(value))
    if "role" not in fields:
        return Omission(place, Reason.UNREADABLE, "role is missing")
    at = next((at for name in TIMES if (at := instant_of(fields.get(name), options.time_zone))), None)
    for name in TIMES:
        fields.pop(name, None)
    id = id_of(fields.pop("id", None))
    speaker = name_of(fields.pop("name", None))
    try:
        turn = parse_message(fields | {"at": at, "name": speaker})
    except InvalidInput as error:
        return Omission(place, Reason.UNREADABLE, f"{error.field or 'the message'} does not fit")
    return spoken(place, turn, id=id)


def spoken(place: str, turn: NewTurn, *, id: str | None) -> Item:
    """The message of a turn, or why there is none."""
    if not turn.text.strip():
        return Omission(place, Reason.EMPTY)
    return Message(place, turn, id=id)


OPENAI = Format("openai", _recognises, _read, needs="messages with a `role`")
