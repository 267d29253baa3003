"""Texts as models and their servers take them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

import numpy as np

T = TypeVar("T")


def well_formed(text: str) -> str:
    """``text`` with the replacement character for halves of characters, which tokenizers and servers refuse."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def sendable(text: str) -> str:
    """A well-formed text without null characters and without space around it; it may be empty."""
    return well_formed(text).replace("\0", " ").strip()


def pieces(text: str, *, limit_bytes: int) -> Iterator[str]:
    """A sendable ``text`` in pieces of at most ``limit_bytes``, cut at spaces where there are some; none if empty."""
    rest = sendable(text)
    while rest:
        piece = _beginning(rest, limit_bytes)
        yield piece
        rest = rest[len(piece) :].lstrip()


def spread(items: Sequence[T], most: int) -> list[T]:
    """At most so many of ``items``, evenly spread from the first to the last."""
    if len(items) <= most:
        return list(items)
    return [items[place] for place in np.linspace(0, len(items) - 1, most).round().astype(int)]


def _beginning(text: str, limit_bytes: int) -> str:
    """At most ``limit_bytes`` of ``text``, cut at the last space of the second half."""
    # The cut may go through a character, of which the first bytes are dropped.
    head = text.encode()[:limit_bytes].decode(errors="ignore")
    if len(head) == len(text):
        return head
    # A space in the first half would leave a piece of a few words before a long one without spaces.
    space = head.rfind(" ", len(head) // 2)
    return head[:space] if space > 0 else head
