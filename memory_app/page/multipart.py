"""Read a form that holds a file (``multipart/form-data``, RFC 7578). Pure.

The file stays where the body is: it is read as a piece of it, so that one of many gigabytes is neither in memory nor
written a second time.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass
from email.message import Message
from email.parser import HeaderParser
from itertools import pairwise
from typing import IO, Any, BinaryIO, cast

from memory_app.errors import InvalidInput
from memory_app.page.form import FIELDS_LIMIT, Form

FIELD_BYTES = 256_000
"""The longest field that is no file."""

HEAD_BYTES = 16_000
"""The longest headers of a part."""

CHUNK_BYTES = 1_000_000


@dataclass(frozen=True, slots=True)
class Part:
    """A field: its headers, and where its value is in the body. ``end`` is exclusive."""

    head: Message
    start: int
    end: int

    @property
    def name(self) -> str:
        return str(self.head.get_param("name", "", "content-disposition"))

    @property
    def is_file(self) -> bool:
        return self.head.get_param("filename", None, "content-disposition") is not None


def read_form(body: IO[bytes], content_type: str) -> tuple[Form, BinaryIO]:
    """The fields of a form, and its file; an empty one where none was chosen. Raises `InvalidInput` for another body.

    Reads the body to its end: call it in a thread.
    """
    boundary = _boundary(content_type)
    fields: dict[str, list[str]] = {}
    file: BinaryIO = io.BytesIO()
    for part in _parts(body, boundary):
        if part.is_file:
            file = _slice(body, part)
        else:
            fields.setdefault(part.name, []).append(_value(body, part))
    return Form(fields), file


def _boundary(content_type: str) -> bytes:
    head = Message()
    head["content-type"] = content_type
    boundary = head.get_boundary()
    if head.get_content_type() != "multipart/form-data" or not boundary or not boundary.isascii():
        raise _no_form()
    return b"\r\n--" + boundary.encode()


def _parts(body: IO[bytes], boundary: bytes) -> Iterator[Part]:
    ends = list(_places(body, boundary))
    for start, end in pairwise(ends):
        body.seek(start + len(boundary))
        head, blank, _ = body.read(min(end - body.tell(), HEAD_BYTES)).partition(b"\r\n\r\n")
        if not blank or not head.startswith(b"\r\n"):
            raise _no_form()
        value = start + len(boundary) + len(head) + len(blank)
        # Browsers write names as they are, in the encoding of the page.
        yield Part(HeaderParser().parsestr(head[2:].decode("utf-8", "replace")), value, end)
    body.seek(ends[-1] + len(boundary) if ends else 0)
    if not ends or body.read(2) != b"--":
        raise _no_form()


def _places(body: IO[bytes], boundary: bytes) -> Iterator[int]:
    """Where the boundary stands, its line break included; the first part has none before it."""
    # What a boundary may have begun with at the end of the last chunk is looked at again.
    kept, start, count = b"\r\n", -2, 0
    body.seek(0)
    while chunk := body.read(CHUNK_BYTES):
        window = kept + chunk
        at = window.find(boundary)
        while at >= 0:
            count += 1
            if count > FIELDS_LIMIT:
                raise _no_form()
            yield start + at
            at = window.find(boundary, at + len(boundary))
        kept = window[-len(boundary) + 1 :]
        start += len(window) - len(kept)


def _value(body: IO[bytes], part: Part) -> str:
    if part.end - part.start > FIELD_BYTES:
        raise InvalidInput(f"{part.name}: at most {FIELD_BYTES} bytes", field=part.name)
    body.seek(part.start)
    try:
        value = body.read(part.end - part.start).decode("utf-8")
    except UnicodeDecodeError:
        raise _no_form() from None
    return value.replace("\r\n", "\n")


def _slice(body: IO[bytes], part: Part) -> BinaryIO:
    return cast(BinaryIO, io.BufferedReader(_Slice(body, part.start, part.end), CHUNK_BYTES))


def _no_form() -> InvalidInput:
    return InvalidInput("body: is no form with a file", field="body")


class _Slice(io.RawIOBase):
    """A piece of the body as a stream."""

    def __init__(self, body: IO[bytes], start: int, end: int) -> None:
        self._body = body
        self._position, self._end = start, end

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._body.seek(self._position)
        content = self._body.read(min(len(buffer), self._end - self._position))
        buffer[: len(content)] = content
        self._position += len(content)
        return len(content)
