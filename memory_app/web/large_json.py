"""Read a large JSON object piece by piece, so that other threads go on meanwhile.

`json.loads` is one call into C and holds the GIL: while it reads 256 MB, no other thread of the process runs, nor does
the event loop. Here each entry, and each element of a list that is an entry, is a call of its own.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from typing import Any, NoReturn

# The largest that an import takes, a turn with its metadata, is far below.
PIECE_CHARS = 4_000_000
"""Longest entry or element."""

_DELIMITERS = frozenset(" \t\n\r,:]}")
_SPACE = re.compile(r"[ \t\n\r]*")


class Pieces:
    """Reads JSON from ``chunks`` of UTF-8, value by value. Raises what `json.loads` raises, and `UnicodeDecodeError`.

    A value of more than ``piece_chars`` characters is refused as too long.
    """

    def __init__(
        self, chunks: Iterator[bytes], decoder: json.JSONDecoder, *, piece_chars: int = PIECE_CHARS
    ) -> None:
        self._chunks = chunks
        self._decoder = decoder
        self._piece_chars = piece_chars
        self._utf8 = codecs.getincrementaldecoder("utf-8")()
        self._text = ""
        self._at = 0
        self._before = 0
        self._is_whole = False

    @property
    def position(self) -> int:
        """Characters that were read."""
        return self._before + self._at

    def elements(self) -> Iterator[Any]:
        """The elements of the list that comes next, one after the other."""
        self.skip("[")
        is_first = True
        while self.peek() != "]":
            if not is_first:
                self.skip(",")
            is_first = False
            yield self.piece()
        self.skip("]")

    def keys(self) -> Iterator[str]:
        """The keys of the object that comes next; whoever gets one reads its value before the next."""
        self.skip("{")
        is_first = True
        while self.peek() != "}":
            if not is_first:
                self.skip(",")
            is_first = False
            key = self.piece()
            if not isinstance(key, str):
                self.refuse("a key is not a string")
            self.skip(":")
            yield key
        self.skip("}")

    def piece(self) -> Any:
        """The next value, as a whole."""
        self.peek()
        while True:
            try:
                value, end = self._decoder.raw_decode(self._text, self._at)
            except json.JSONDecodeError:
                # Perhaps only the rest of the value is missing.
                if self._is_whole:
                    raise
            else:
                # Without a delimiter behind it a number may go on in the next chunk.
                if self._is_whole or self._text[end : end + 1] in _DELIMITERS:
                    self._at = end
                    return value
            if len(self._text) - self._at > self._piece_chars:
                self.refuse("a part is malformed or too long")
            # Twice as much as before: a piece is decoded from its beginning each time, so it must be tried few times.
            self._fill(2 * (len(self._text) - self._at))

    def peek(self) -> str:
        """The next character that is no space, or nothing at the end."""
        while True:
            match = _SPACE.match(self._text, self._at)
            self._at = match.end() if match else self._at
            if self._at < len(self._text) or self._is_whole:
                return self._text[self._at : self._at + 1]
            self._fill(1)

    def skip(self, expected: str) -> None:
        """Read that character, or refuse what stands in its place."""
        if self.peek() != expected:
            self.refuse(f"{expected} is missing")
        self._at += 1

    def refuse(self, reason: str) -> NoReturn:
        raise json.JSONDecodeError(reason, self._text, self._at)

    def _fill(self, size: int) -> None:
        """Forget what was read, and have more than ``size`` characters or all there are."""
        self._before += self._at
        parts = [self._text[self._at :]]
        length = len(parts[0])
        while length <= size and not self._is_whole:
            chunk = next(self._chunks, b"")
            self._is_whole = not chunk
            # Incremental: a chunk may end within a character.
            parts.append(self._utf8.decode(chunk, final=not chunk))
            length += len(parts[-1])
        self._text, self._at = "".join(parts), 0


class Reader(Pieces):
    """Reads one object from ``chunks`` of UTF-8. Raises what `json.loads` raises, and `UnicodeDecodeError`."""

    def read(self) -> Any:
        """The object; an empty list for any other JSON."""
        # Whoever asked refuses what is no object, so a large list need not be read first.
        if self.peek() != "{":
            return []
        entries: dict[str, Any] = {}
        for key in self.keys():
            entries[key] = list(self.elements()) if self.peek() == "[" else self.piece()
        if self.peek():
            self.refuse("something follows the object")
        return entries
