"""Texts as models and their servers take them."""

from __future__ import annotations


def well_formed(text: str) -> str:
    """``text`` with the replacement character for halves of characters, which tokenizers and servers refuse."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def sendable(text: str) -> str:
    """A well-formed text without null characters and without space around it; it may be empty."""
    return well_formed(text).replace("\0", " ").strip()
