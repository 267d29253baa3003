"""The frame around a statement: "by the way, …", "as I said, …", "…, you know". It says nothing, but looks different.

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

FRAMES_MOST = 3
"""So many frames around each other are taken off: "Oh, by the way, as I said, …"."""


def unframed(text: str) -> str:
    """``text`` without what frames it; unchanged when nothing, or only a frame, would be left."""
    said = text
    for _ in range(FRAMES_MOST):
        inner = _ENDING.sub(r"\g<stop>", _OPENING.sub("", said, count=1), count=1).strip()
        if inner == said or not any(c.isalnum() for c in inner):
            break
        said = inner
    return said
