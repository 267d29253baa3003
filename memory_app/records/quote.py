"""Text from outside, rendered as one line of data that can neither open nor close a block.

What people and tools said is shown to a model between headings and tags of ours. Quoting spells out the few
characters that could be taken for such a mark, as entities, so that the text stays readable. Nothing here
judges whether a text is malicious: every text gets the same treatment.
"""

from __future__ import annotations

import re
import unicodedata

from memory_app.language.characters import INVISIBLE
from memory_app.records.layout import LAYOUT

LINE_BREAK = " / "
"""Stands for a line break, as when verse is quoted in prose; one token with most models."""

LABEL_LIMIT = 80
"""Longest name of a speaker, session or entity shown, in characters."""

ELLIPSIS = "…"

_BREAKS = str.maketrans(dict.fromkeys("\r\x0b\x0c\x85\u2028\u2029", "\n"))
_SPACE = re.compile(r"[^\S\n]+")
_BLANK_LINES = re.compile(r" ?\n\s*")
_HIDDEN_JOINER = re.compile("(?<=[\x20-\x7e])[\u034f\u200c\u200d\ufe00-\ufe0f]+(?=[\x20-\x7e])")
_OWN_ENTITY = re.compile(r"&(?=(?:amp|lt|gt|#91|#93|#58|#96|#126);)", re.IGNORECASE)
_ANGLE = str.maketrans(dict.fromkeys("<＜﹤", "&lt;") | dict.fromkeys(">＞﹥", "&gt;"))
_BRACKETED = re.compile(r"[\[［【〔]([^\[\]［］【】〔〕\n]{1,80})[\]］】〕]")
_HEADINGS = tuple(place.title.replace(" ", "") for place in LAYOUT)
_FENCE = re.compile(r"`{3,}|~{3,}")
_LABEL_MARKS = re.compile(r'[\[\]［］【】〔〕{}"：:]+')
_ROLE = re.compile(
    r"^((?:[^\w\n]|_){0,40}(?:system|developer|assistant|user|human|ai|model|tool|function|instructions?)"
    r"(?: prompt| message)?(?:[^\w\n]|_){0,3}?)[:：]",
    re.IGNORECASE | re.MULTILINE,
)


def quoted(text: str) -> str:
    """``text`` on one line, with everything that could pass for a mark of ours spelled out.

    Line breaks become `LINE_BREAK`; control, direction and other invisible characters are removed; angle
    brackets, headings in square brackets, code fences and a role at the start of a line become entities.
    """
    escaped = _OWN_ENTITY.sub("&amp;", _visible(text)).translate(_ANGLE)
    escaped = _BRACKETED.sub(_escape_heading, escaped)
    escaped = _FENCE.sub(_escape_fence, escaped)
    return _ROLE.sub(r"\1&#58;", escaped).replace("\n", LINE_BREAK)


def quoted_label(text: str) -> str:
    """A name: `quoted`, without brackets, double quotes and colons, at most `LABEL_LIMIT` characters."""
    plain = " ".join(_LABEL_MARKS.sub(" ", INVISIBLE.sub("", text)).split())
    return quoted(shortened(plain, LABEL_LIMIT))


def shortened(text: str, limit: int) -> str:
    """``text`` in at most ``limit`` characters, cut at a space where one is near; not yet quoted."""
    if len(text) <= limit:
        return text
    head = text[: max(limit - 1, 0)]
    space = head.rfind(" ", len(head) * 3 // 4)
    return (head[:space] if space > 0 else head).rstrip() + ELLIPSIS


def _visible(text: str) -> str:
    """What a reader sees, each line on its own: every space one space, no line empty.

    Joiners stay where scripts and emoji need them and go between plain letters, where they only hide a word.
    """
    seen = INVISIBLE.sub("", text.translate(_BREAKS))
    spaced = _BLANK_LINES.sub("\n", _SPACE.sub(" ", seen)).strip()
    return _HIDDEN_JOINER.sub("", spaced)


def _escape_heading(bracketed: re.Match[str]) -> str:
    letters = "".join(c for c in unicodedata.normalize("NFKC", bracketed[1]) if c.isalpha())
    shouted = len(letters) >= 3 and letters.isupper()
    if not shouted and not any(heading in letters.upper() for heading in _HEADINGS):
        return bracketed[0]
    return f"&#91;{bracketed[1]}&#93;"


def _escape_fence(run: re.Match[str]) -> str:
    code = f"&#{ord(run[0][0])};"
    return "".join(code if place % 3 == 0 else mark for place, mark in enumerate(run[0]))
