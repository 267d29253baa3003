"""Read a large JSON object piece by piece, so that other threads go on meanwhile.

`json.loads` is one call into C and holds the GIL: while it reads 256 MB, no other thread of the process runs, nor does
the event loop. Here each entry, and each element of a list that is an entry, is a call of its own.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from typing import Any

# The largest that an import takes, a turn with its metadata, is far below.
PIECE_CHARS = 4_000_000
"""Longest entry or element."""

_DELIMITERS = frozenset(" \t\n\r,:]}")
_SPACE = re.compile(r"[ \t\n\r]*")


class Reader:
    """Reads one object from ``chunks`` of UTF-8. Raises what `json.loads` raises, and `UnicodeDecodeError`."""

    def __init__(self, chunks: Iterator[bytes], decoder: json.JSONDecoder) -> None:
        self._chunks = chunks
        self._decoder = decoder
        self._utf8 = codecs.getincrementaldecoder("utf-8")()
        self._text = ""
        self._at = 0
        self._is_whole = False

    def read(self) -> Any:
        """The object; an empty list for any other JSON."""
        # Whoever asked refuses what is no object, so a large list need not be read first.
        if self._peek() != "{":
            return []
        self._skip("{")
        entries: dict[str, Any] = {}
        while self._peek() != "}":
            if entries:
                self._skip(",")
            key = self._piece()
            if not isinstance(key, str):
                self._refuse("a key is not a string")
            self._skip(":")
            entries[key] = self._list() if self._peek() == "[" else self._piece()
        self._skip("}")
        if self._peek():
            self._refuse("something follows the object")
        return entries

    def _list(self) -> list[Any]:
        self._skip("[")
        elements: list[Any] = []
        while self._peek() != "]":
            if elements:
                self._skip(",")
            elements.append(self._piece())
        self._skip("]")
        return elements

    def _piece(self) -> Any:
        """The next value, as a whole."""
        self._peek()
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
            if len(self._text) - self._at > PIECE_CHARS:
                self._refuse("a part is malformed or too long")
            # Twice as much as before: a piece is decoded from its beginning each time, so it must be tried few times.
            self._fill(2 * (len(self._text) - self._at))

    def _peek(self) -> str:
        """The next character that is no space, or nothing at the end."""
        while True:
            match = _SPACE.match(self._text, self._at)
            self._at = match.end() if match else self._at
            if self._at < len(self._text) or self._is_whole:
                return self._text[self._at : self._at + 1]
            self._fill(1)

    def _skip(self, expected: str) -> None:
        if self._peek() != expected:
            self._refuse(f"{expected} is missing")
        self._at += 1

    def _fill(self, size: int) -> None:
        """Forget what was read, and have more than ``size`` characters or all there are."""
        parts = [self._text[self._at :]]
        length = len(parts[0])
        while length <= size and not self._is_whole:
            chunk = next(self._chunks, b"")
            self._is_whole = not chunk
            # Incremental: a chunk may end within a character.
            parts.append(self._utf8.decode(chunk, final=not chunk))
            length += len(parts[-1])
        self._text, self._at = "".join(parts), 0

    def _refuse(self, reason: str) -> None:
        raise json.JSONDecodeError(reason, "", 0)
