"""Read the chunks of an answer out of a stream of server-sent events. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator


class Events:
    """Cuts the bytes of a stream into events, wherever the pieces end."""

    def __init__(self) -> None:
        self._rest = b""

    def of(self, piece: bytes) -> Iterator[object]:
        """The JSON of each ``data`` line that the piece completes; other lines are passed over."""
        *lines, self._rest = (self._rest + piece).split(b"\n")
        for line in lines:
            name, _, value = line.rstrip(b"\r").partition(b":")
            if name == b"data":
                yield json_of(value)


def json_of(value: bytes) -> object:
    """The JSON, or None: the end of a stream, ``[DONE]``, is none."""
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return None
