"""Tell the format of a file by its shape."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator, Mapping

from memory_app.errors import InvalidInput
from memory_app.transfer.importers.chatgpt import CHATGPT
from memory_app.transfer.importers.claude import CLAUDE
from memory_app.transfer.importers.json_items import elements, entries, has_lines, lines
from memory_app.transfer.importers.langchain import LANGCHAIN
from memory_app.transfer.importers.letta import LETTA
from memory_app.transfer.importers.mem0 import MEM0
from memory_app.transfer.importers.openai_messages import OPENAI
from memory_app.transfer.importers.openwebui import OPENWEBUI
from memory_app.transfer.importers.records import Form, Format, Shape, Source
from memory_app.transfer.importers.sillytavern import SILLYTAVERN
from memory_app.transfer.importers.whatsapp import RECOGNISED_LINES, WHATSAPP, is_chat_line

FORMATS: Mapping[str, Format] = {
    format.name: format
    for format in (CHATGPT, CLAUDE, SILLYTAVERN, WHATSAPP, LANGCHAIN, OPENWEBUI, MEM0, LETTA, OPENAI)
}
"""Every format by its name. The last one is told by the least."""

HEAD_BYTES = 65_536
SHOWN_KEYS = 8

_INVISIBLE = "\ufeff\u200e\u200f \t\r\n"
_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,39}")


def format_of(source: Source, name: str | None) -> Format:
    """The format of that name, or without one the first that recognises the file.

    Raises `InvalidInput` for an unknown name, and for a file of no known shape, naming what it looks like.
    """
    if name is not None:
        if name not in FORMATS:
            raise InvalidInput(f"format: one of {', '.join(FORMATS)}", field="format")
        return FORMATS[name]
    shape = Shape(Form.TEXT)
    for shape in _shapes(source):
        for format in FORMATS.values():
            if format.recognises(shape):
                return format
    known = "; ".join(f"{format.name}: {format.needs}" for format in FORMATS.values())
    raise InvalidInput(
        f"format: not told by the file, which is {_described(shape)}; nothing was imported. Known are {known}",
        field="format",
    )


def _shapes(source: Source) -> Iterator[Shape]:
    """The shape of the file, again and again the more of it is read."""
    head = _head(source)
    first_lines = tuple(head.splitlines()[:RECOGNISED_LINES])
    start = head.lstrip(_INVISIBLE)[:1]
    # First, since a date may stand in brackets, like a list.
    if start not in ("[", "{") or any(map(is_chat_line, first_lines)):
        yield Shape(Form.TEXT, lines=first_lines)
    elif start == "[":
        first = next(elements(source), None)
        yield Shape(Form.LIST, first=None if first is None else first.value)
    else:
        yield from _shapes_of_objects(source)


def _shapes_of_objects(source: Source) -> Iterator[Shape]:
    if has_lines(source):
        yield Shape(Form.LINES, first=next(lines(source)).value)
        return
    # One object, on one line or on many.
    read: dict[str, object] = {}
    yield Shape(Form.OBJECT)
    for key, value in entries(source):
        read[key] = value
        yield Shape(Form.OBJECT, first=read, entries=read)


def _head(source: Source) -> str:
    """The beginning of the file as text. Raises `InvalidInput` for a file that is none, or empty."""
    with source.open() as file:
        head = file.read(HEAD_BYTES)
    if not head.strip():
        raise InvalidInput("file: is empty; nothing was imported", field="file")
    try:
        # The last character may be cut.
        return codecs.getincrementaldecoder("utf-8-sig")().decode(head)
    except UnicodeDecodeError as error:
        raise InvalidInput("file: is not UTF-8; nothing was imported", field="file") from error


def _described(shape: Shape) -> str:
    """A shape in words: its form and its keys, which name no content."""
    if shape.form is Form.TEXT:
        return "text without lines of a chat"
    keys = [key for key in shape.element() if _KEY.fullmatch(key)][:SHOWN_KEYS]
    of = f" with {', '.join(keys)}" if keys else ""
    return f"{shape.form.value}{' of objects' if shape.form is Form.LIST and keys else ''}{of}"
