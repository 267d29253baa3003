"""Take the frame off a statement: "by the way, …", "as I said, …", "…, you know".

It states nothing, but makes the same statement look different.

What is stored keeps its words. Only comparing goes without the frame, so that a day of small talk does not leave a
memory for each way of beginning a sentence. A frame that could change the meaning ("actually", "no", "maybe", "I
think") is none.
"""

from __future__ import annotations

import re

from memory_app.language.table import alternatives

_OPENING = re.compile(
    rf"^\s*(?:{alternatives(lambda language: language.frame_openings)})\s*[,:;–—-]\s*", re.IGNORECASE
)
_ENDING = re.compile(
    rf"\s*,\s*(?:{alternatives(lambda language: language.frame_endings)})\s*(?P<stop>[.!…]*)\s*$",
    re.IGNORECASE,
)

FRAMES_LIMIT = 3
"""So many frames around each other are taken off: "Oh, by the way, as I said, …"."""


def unframed(text: str) -> str:
    """Return ``text`` without what frames it; unchanged when nothing, or only a frame, would be left."""
    statement = text
    for _ in range(FRAMES_LIMIT):
        inner = _without_frame(statement)
        # "By the way, …" and nothing else: the frame is all that was said.
        is_empty = not any(map(str.isalnum, inner))
        if is_empty or inner == statement:
            break
        statement = inner
    return statement


def _without_frame(text: str) -> str:
    text = _OPENING.sub("", text, count=1)
    return _ENDING.sub(r"\g<stop>", text, count=1).strip()
