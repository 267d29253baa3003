"""Text from outside, rendered as data that can neither open nor close a block: on one line, or on lines of its own.

What people and tools said is shown to a model between headings and tags of ours. Quoting spells out the few
characters that could be taken for such a mark, as entities, so that the text stays readable. Nothing here
judges whether a text is malicious: every text gets the same treatment.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise

from memory_app.language.characters import INVISIBLE, SHAPES, shape_of
from memory_app.records.layout import LAYOUT

LINE_BREAK = " / "
"""Stands for a line break, as when verse is quoted in prose; one token with most models."""

CONTINUED = "| "
"""Begins each further line of a text whose layout is kept. Headings and tags of ours begin at the margin, so that no
line of such a text stands where one of them could."""

LABEL_LIMIT = 80
"""Longest name of a speaker, session or entity shown, in characters."""

ELLIPSIS = "…"

_BREAKS = str.maketrans(dict.fromkeys("\r\x0b\x0c\x85\u2028\u2029", "\n"))
_SPACE = re.compile(r"[^\S\n]+")
_BLANK_LINES = re.compile(r" ?\n\s*")
_ODD_SPACE = re.compile(r"[^\S\n\t ]")
_LINE_ENDS = re.compile(r"[\t ]+$", re.MULTILINE)
_INDENTED = re.compile(r"(?: {2}|\t)[\t ]*\S")
_COLUMNS = re.compile(r"\S(?: {3,}|\t)\S")
_CODE = re.compile(r" {0,3}(?:`{3}|~{3})|@@ |diff --git ")
_HIDDEN_JOINER = re.compile("(?<=[\x20-\x7e])[\u034f\u200c\u200d\ufe00-\ufe0f]+(?=[\x20-\x7e])")
_OWN_ENTITY = re.compile(r"&(?=(?:amp|lt|gt|#91|#93|#58|#96|#126);)", re.IGNORECASE)
# Angles of other scripts and of mathematics are quotation marks to many people; before the name of a tag they are none.
_TAG = re.compile(
    r"[‹⟨〈《❮˂ᐸ⧼❬⦑«≺≪](?=\s*[/\u2044\u2215\u29f8]?\s*(?:memory|memories|turn|context|system|developer|assistant|user|"
    r"human|tool|function|instructions?|prompt)\b)",
    re.IGNORECASE,
)
_ANGLE = str.maketrans(dict.fromkeys("<＜﹤", "&lt;") | dict.fromkeys(">＞﹥", "&gt;"))
# Spaces do not count in any of the following, since a text that keeps its layout may have any number of them.
_BRACKETED = re.compile(r"[\[［【〔]((?:[^\S\n]*+[^\[\]［］【】〔〕\s]){1,80}[^\S\n]*+)[\]］】〕]")
_CORNERED = re.compile(
    r"[「『⟦⁅❲〖〘〚⦋﹝]((?:[^\S\n]*+[^「」『』⟦⟧⁅⁆❲❳〖〗〘〙〚〛⦋⦌﹝﹞\s]){1,80}[^\S\n]*+)[」』⟧⁆❳〗〙〛⦌﹞]"
)
_HEADINGS = tuple(place.title.replace(" ", "") for place in LAYOUT)
_FENCE = re.compile(r"`{3,}|~{3,}")
_LABEL_MARKS = re.compile(r'[\[\]［］【】〔〕{}"：:]+')
_PLAIN = re.compile(r"[!-%'-9;=?-Z^_a-z|}](?: ?[!-%'-9;=?-Z^_a-z|}])*")
"""Most of what people write: nothing to be spelled out, and no space that would be another one."""
_ROLE = re.compile(
    r"^((?:[^\S\n]*+(?:[^\w\s]|_)){0,40}+[^\S\n]*+"
    r"(?:system|developer|assistant|user|human|ai|model|tool|function|instructions?)"
    r"(?:[^\S\n]++(?:prompt|message))?(?:[^\S\n]*+(?:[^\w\s:：]|_)){0,3}+[^\S\n]*+)[:：]",
    re.IGNORECASE | re.MULTILINE,
)


def quoted(text: str) -> str:
    """``text`` on one line, with everything that could pass for a mark of ours spelled out.

    Line breaks become `LINE_BREAK`; control, direction and other invisible characters are removed; angle
    brackets, headings in square brackets, code fences and a role at the start of a line become entities.
    """
    if _PLAIN.fullmatch(text):
        return text
    # Roles are looked for at the start of each line, so the lines are joined last.
    return _spelled_out(_visible(text)).replace("\n", LINE_BREAK)


def quoted_lines(text: str) -> str:
    """``text`` as `quoted`; on lines of its own where its layout says something: code, a diff, a table, verse.

    Each line after the first begins with `CONTINUED`, indentation and columns stay, of empty lines one. A text that
    begins indented has its first line empty.
    """
    if "\n" not in text and "\r" not in text:
        return quoted(text)
    laid_out = _laid_out(text)
    if not _has_layout(laid_out):
        return quoted(text)
    first, *others = _spelled_out(laid_out).split("\n")
    return "\n".join([first, *(f"{CONTINUED}{line}".rstrip() for line in others)])


def quoted_label(text: str) -> str:
    """A name: `quoted`, without brackets, double quotes and colons, at most `LABEL_LIMIT` characters."""
    # A colon would let a name pass for a role, a bracket for a heading.
    plain = " ".join(_LABEL_MARKS.sub(" ", INVISIBLE.sub("", text)).split())
    return quoted(shortened(plain, LABEL_LIMIT))


def shortened(text: str, limit: int) -> str:
    """``text`` in at most ``limit`` characters, cut at a space where one is near; not yet quoted."""
    if len(text) <= limit:
        return text
    # One less, for the ellipsis.
    head = text[: max(limit - 1, 0)]
    # Only in the last quarter: a long word, or a script without spaces, is cut rather than left out.
    space = head.rfind(" ", len(head) * 3 // 4)
    if space > 0:
        head = head[:space]
    return head.rstrip() + ELLIPSIS


def _spelled_out(visible: str) -> str:
    # First the entities that stand in the text already, or those put in below would be escaped as well.
    escaped = _OWN_ENTITY.sub("&amp;", visible).translate(_ANGLE)
    escaped = _sub_by_shape(_TAG, escaped, lambda _: "&lt;")
    escaped = _BRACKETED.sub(_escape_heading, escaped)
    escaped = _CORNERED.sub(_escape_cornered, escaped)
    escaped = _sub_by_shape(_FENCE, escaped, _escape_fence)
    return _sub_by_shape(_ROLE, escaped, _escape_colon)


def _has_layout(text: str) -> bool:
    """Whether indentation, columns or marks of code show that the lines must not be joined."""
    lines = text.split("\n")
    if any(_INDENTED.match(line) or _CODE.match(line) for line in lines):
        return True
    # One line with a gap may be a slip of the finger; a table has several rows.
    return sum(bool(_COLUMNS.search(line) or line.startswith("|")) for line in lines) > 1


def _laid_out(text: str) -> str:
    """What a reader sees with its indentation and columns; without empty lines at the ends, and of others one."""
    broken = text.replace("\r\n", "\n").translate(_BREAKS)
    plain = _HIDDEN_JOINER.sub("", _ODD_SPACE.sub(" ", INVISIBLE.sub("", broken)))
    ended = _LINE_ENDS.sub("", plain)
    lines = [line for line, after in pairwise([*ended.split("\n"), ""]) if line or after]
    while lines and not lines[0]:
        del lines[0]
    # Beside the name of a speaker the first line would lose its indentation against the others.
    return "\n".join(["", *lines] if lines and lines[0][0] in " \t" else lines)


def _visible(text: str) -> str:
    """What a reader sees, each line on its own: every space one space, no line empty.

    Joiners stay where scripts and emoji need them and go between plain letters, where they only hide a word.
    """
    # Every kind of line break becomes one, since the patterns below know only that one.
    visible = INVISIBLE.sub("", text.translate(_BREAKS))
    spaced = _BLANK_LINES.sub("\n", _SPACE.sub(" ", visible)).strip()
    return _HIDDEN_JOINER.sub("", spaced)


def _sub_by_shape(pattern: re.Pattern[str], text: str, escape: Callable[[str], str]) -> str:
    """Replace what looks like the pattern to a reader; ``escape`` gets it as it stands in the text."""
    parts, at = [], 0
    # A shape has its characters at the places of those in the text.
    for match in pattern.finditer(shape_of(text)):
        start, end = match.span()
        parts += [text[at:start], escape(text[start:end])]
        at = end
    return "".join(parts) + text[at:]


def _escape_colon(role: str) -> str:
    return f"{role[:-1]}&#58;"


def _escape_cornered(cornered: re.Match[str]) -> str:
    """Corner brackets quote in Japanese and Chinese, abbreviations too, so only a heading of ours is spelled out."""
    letters = "".join(filter(str.isalpha, shape_of(cornered[1])))
    return f"&#91;{cornered[1]}&#93;" if _holds_heading(letters.upper()) else cornered[0]


def _escape_heading(bracketed: re.Match[str]) -> str:
    # Letters only and of full width made plain, so that "[C O R E]" is taken for the heading it looks like.
    plain = shape_of(bracketed[1])
    letters = "".join(filter(str.isalpha, plain))
    if _is_shouted(letters) or _holds_heading(letters.upper()):
        return f"&#91;{bracketed[1]}&#93;"
    return bracketed[0]


def _is_shouted(letters: str) -> bool:
    # From three: "[OK]" and "[A]" are ordinary text.
    return len(letters) >= 3 and letters.isupper()


def _holds_heading(letters: str) -> bool:
    return any(heading in letters for heading in _HEADINGS)


def _escape_fence(fence: str) -> str:
    code = f"&#{SHAPES[ord(fence[0])]};"
    # Every third is enough: what opens a block of code is three marks in a row.
    pieces = [fence[start : start + 3] for start in range(0, len(fence), 3)]
    return "".join(code + piece[1:] for piece in pieces)
