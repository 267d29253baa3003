"""Marks that stand in a text for what is not text: a picture, a recording, a file, a call of a tool.

A mark says what it stands for, and its caption if it has one: ``[image: a dog on a beach]``. Nobody said it.
"""

from __future__ import annotations

import re
from enum import StrEnum

CAPTION_LIMIT = 200
"""Longest caption in a mark, in characters."""


class MarkKind(StrEnum):
    """What a mark stands for."""

    IMAGE = "image"
    AUDIO = "audio"
    VIDEO = "video"
    FILE = "file"
    PART = "part"
    TOOL_CALL = "tool call"
    TOOL_RESULT = "tool result"
    EMPTY = "empty message"


_MARK = re.compile(rf"\[(?:{'|'.join(MarkKind)})(?:: [^\[\]\n]{{1,{CAPTION_LIMIT}}})?\]")
_BRACKETS = str.maketrans("[]", "()")


def mark(kind: MarkKind, caption: str = "") -> str:
    """Return the mark in one line; a long caption is cut."""
    # Cut before anything else reads it: a caption may be a mistake, and of any length.
    short = " ".join(caption[:CAPTION_LIMIT].translate(_BRACKETS).split())
    return f"[{kind}: {short}]" if short else f"[{kind}]"


def without_marks(text: str) -> str:
    """Return ``text`` with a space in the place of each mark."""
    return _MARK.sub(" ", text)
