"""Read JSON of any size in bounded memory: lists element by element, lines one by one. Says where a file was cut."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import BinaryIO, NamedTuple, NoReturn, TypeVar

from memory_app.errors import InvalidInput
from memory_app.transfer.importers.records import Source
from memory_app.web.large_json import Pieces
from memory_app.web.strict_json import DECODER

T = TypeVar("T")

CHUNK_BYTES = 262_144

# A conversation is read as a whole: branches of its tree may stand anywhere in it. Parsed it takes several times this.
PIECE_CHARS = 16_000_000
"""Longest element of a list, or line."""

FIRST_LINE_CHARS = 4_000_000
"""Longest first line of a file by which its lines are told from one object."""

# An escape of four digits that was cut, or a literal.
CUT_CHARS = 6
"""A fault so near to the end of a file is the end itself."""


class Element(NamedTuple):
    """A value of a file, where it stands, and the key of its list where the file is an object."""

    place: str
    value: object
    key: str = ""


def elements(source: Source, *, keys: Collection[str] = ()) -> Iterator[Element]:
    """The elements of the list that the file is, or of those of its lists that stand under ``keys``.

    An object without such a list is one element itself. Raises `InvalidInput` naming the place.
    """
    with source.open() as file:
        reader = _Reader(file)
        if reader.peek() == "[":
            yield from reader.list("")
        elif reader.peek() == "{":
            yield from _entries(reader, keys)
        else:
            reader.fail("begins with neither a list nor an object")
        if reader.peek():
            reader.fail("something follows the JSON")


def _entries(reader: _Reader, keys: Collection[str]) -> Iterator[Element]:
    rest: dict[str, object] = {}
    has_list = False
    for key in reader.names():
        if key in keys and reader.peek() == "[":
            has_list = True
            yield from reader.list(key)
        else:
            rest[key] = reader.value(key)
    if not has_list:
        yield Element("the object", rest)


def entries(source: Source) -> Iterator[tuple[str, object]]:
    """The entries of the object that the file is, in their order; of a list the first element stands for all of it."""
    with source.open() as file:
        reader = _Reader(file)
        for key in reader.names():
            if reader.peek() != "[":
                yield key, reader.value(key)
                continue
            is_first = True
            for element in reader.list(key):
                if is_first:
                    yield key, [element.value]
                is_first = False
            if is_first:
                yield key, []


def lines(source: Source, *, longest: int = PIECE_CHARS) -> Iterator[Element]:
    """The objects of a file that has one on each line. Raises `InvalidInput` naming the line, also of one too long."""
    with source.open() as file, io.TextIOWrapper(file, encoding="utf-8-sig") as text:
        number = 0
        while line := _line(text, number + 1, longest):
            number += 1
            if not line.strip():
                continue
            place = f"line {number}"
            is_last = not line.endswith("\n")
            try:
                value = DECODER.decode(line)
            except (ValueError, RecursionError) as error:
                what = "ends in the middle; the file was cut" if is_last else "is not JSON"
                raise _wrong(place, what) from error
            yield Element(place, value)


def has_lines(source: Source) -> bool:
    """Whether each line is a value of its own: an object ends where the first line does, and another begins."""
    try:
        # Not as long as a line may be: the one line of a file may be all of it.
        first_lines = lines(source, longest=FIRST_LINE_CHARS)
        is_object = isinstance(next(first_lines).value, Mapping)
        next(first_lines)
    except (InvalidInput, StopIteration):
        return False
    return is_object


def _line(text: io.TextIOWrapper, number: int, longest: int) -> str:
    try:
        line = text.readline(longest)
    except UnicodeDecodeError as error:
        raise _wrong(f"line {number}", "is not UTF-8") from error
    if len(line) == longest:
        raise _wrong(f"line {number}", f"has {longest} characters or more")
    return line


def text_lines(source: Source) -> Iterator[tuple[int, str]]:
    """The lines of a text with their numbers, without their ends. Raises `InvalidInput` naming the line."""
    with source.open() as file, io.TextIOWrapper(file, encoding="utf-8-sig") as text:
        number = 0
        while line := _line(text, number + 1, PIECE_CHARS):
            number += 1
            yield number, line.rstrip("\r\n")


class _Reader:
    """Pieces of a file, whose faults are named by their place."""

    def __init__(self, file: BinaryIO) -> None:
        self._chunks = _Chunks(file)
        self._pieces = Pieces(iter(self._chunks.read, b""), DECODER, piece_chars=PIECE_CHARS)
        self._place = "the file"

    def peek(self) -> str:
        return self._named(self._pieces.peek)

    def list(self, name: str) -> Iterator[Element]:
        # The place is noted before each step, so that a fault names the element in which it is.
        iterator = self._pieces.elements()
        number = 0
        while True:
            self._place = f"{name}[{number}]"
            element = self._named(lambda: next(iterator, _END))
            if element is _END:
                return
            yield Element(self._place, element, name)
            number += 1

    def names(self) -> Iterator[str]:
        """The keys of the object."""
        iterator = self._pieces.keys()
        while True:
            key = self._named(lambda: next(iterator, None))
            if key is None:
                return
            yield key

    def value(self, name: str) -> object:
        # A key may be anything, and of any length.
        self._place = name if name.isidentifier() and len(name) <= 64 else "an entry"
        return self._named(self._pieces.piece)

    def fail(self, what: str) -> NoReturn:
        raise _wrong("the file", what)

    def _named(self, step: Callable[[], T]) -> T:
        try:
            return step()
        except UnicodeDecodeError as error:
            raise _wrong(self._place, "is not UTF-8") from error
        except json.JSONDecodeError as error:
            raise self._malformed(error) from error
        except (ValueError, RecursionError) as error:
            raise _wrong(self._place, "is not JSON that can be read") from error

    def _malformed(self, error: json.JSONDecodeError) -> InvalidInput:
        is_cut = error.msg.startswith("Unterminated string") or error.pos >= len(error.doc) - CUT_CHARS
        where = f"around character {self._pieces.position}"
        if self._chunks.is_whole and is_cut:
            return _wrong(self._place, f"ends in the middle, {where}; the file was cut")
        return _wrong(self._place, f"is not JSON, {where}: {error.msg}")


class _Chunks:
    """The bytes of a file without the mark of their order, piece by piece."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._is_first = True
        self.is_whole = False

    def read(self) -> bytes:
        chunk = self._file.read(CHUNK_BYTES)
        if self._is_first:
            chunk = chunk.removeprefix(b"\xef\xbb\xbf")
        self._is_first = False
        self.is_whole = not chunk
        return chunk


_END = object()


def _wrong(place: str, what: str) -> InvalidInput:
    return InvalidInput(f"{place}: {what}; nothing was imported", field="file")
