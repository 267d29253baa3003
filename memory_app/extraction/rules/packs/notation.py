"""Translate the patterns of a pack, which a translator writes, into regular expressions.

``(a|b)`` is either, ``[a]`` may be left out, ``<place>`` is a slot or a list of words of the pack, ``*`` stands for
the rest of a word. Everything else stands for itself; case does not count. There is no way to write a repetition, so
that what a pattern costs depends on the slots alone, which are bounded.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_SLOT_NAME = re.compile(r"<([a-z_]+)(\d?)>")
_GROUP = re.compile(r"\(\?P<(\w+)>")
_PLAIN = re.compile(r"[^()\[\]|<* ]+")
_REST_OF_WORD = r"[^\W\d_]{0,20}"
_GROUP_OPENS = "(?:"
_BLANK = re.escape(" ")


class BrokenPattern(ValueError):
    """A pattern that cannot be translated; the message says why."""


def translate(pattern: str, slots: Mapping[str, str]) -> str:
    """Return ``pattern`` as a regular expression without anchors.

    ``slots`` are regular expressions by name; ``<place>`` and ``<place2>`` become groups of these names. Raises
    `BrokenPattern`.
    """
    return _Translation(pattern, slots).translated()


class _Translation:
    """One pass over a pattern. ``parts`` are pieces of the regular expression, ``open`` the brackets not yet closed."""

    def __init__(self, pattern: str, slots: Mapping[str, str]) -> None:
        self.pattern = pattern
        self.slots = slots
        self.parts: list[str] = []
        self.open: list[tuple[str, int, str]] = []
        self.place = 0
        self.names: set[str] = set()
        # Where a group begins, an optional word takes the blank after it instead of the one before.
        self.begins = True

    def translated(self) -> str:
        while self.place < len(self.pattern):
            self._step(self.pattern[self.place])
        if self.open:
            raise BrokenPattern(f"{self.open[-1][0]} is not closed")
        return "".join(self.parts)

    def _step(self, sign: str) -> None:
        self.place += 1
        if sign in "([":
            self._open(sign)
        elif sign in ")]":
            self._close(sign)
        elif sign == "|":
            self.parts.append("|")
            self.begins = True
        elif sign == "<":
            self._slot()
        elif sign == "*":
            self._add(_REST_OF_WORD)
        elif plain := _PLAIN.match(self.pattern, self.place - 1):
            self._add(re.escape(plain[0]))
            self.place = plain.end()
        else:
            # A blank is a part by itself, which an optional word may take along.
            self._add(_BLANK)

    def _add(self, part: str) -> None:
        self.parts.append(part)
        self.begins = False

    def _open(self, sign: str) -> None:
        side = "none"
        if sign == "[":
            side = self._blank_side()
        self.open.append((sign, len(self.parts), side))
        self.begins = True

    def _blank_side(self) -> str:
        """On which side of an optional part its blank stands: it goes where the part goes."""
        if self.begins:
            return "after"
        if self.parts and self.parts[-1] == _BLANK:
            self.parts.pop()
            return "before"
        # "Lehrer[in]": a part of a word.
        return "none"

    def _close(self, sign: str) -> None:
        opens = "(" if sign == ")" else "["
        if not self.open or self.open[-1][0] != opens:
            raise BrokenPattern(f"{sign} closes nothing")
        _, start, side = self.open.pop()
        content = "".join(self.parts[start:])
        del self.parts[start:]
        if not content:
            raise BrokenPattern(f"{opens}{sign} is empty")
        group = f"{_GROUP_OPENS}{content})"
        self.begins = False
        if sign == "]":
            if side == "before":
                group = f"(?: {group})?"
            elif side == "after" and self.pattern[self.place : self.place + 1] == " ":
                self.place += 1
                group = f"(?:{group} )?"
                self.begins = True
            else:
                group += "?"
        self.parts.append(group)

    def _slot(self) -> None:
        match = _SLOT_NAME.match(self.pattern, self.place - 1)
        if match is None:
            raise BrokenPattern("< does not begin a name in small letters, such as <place>")
        name = match[1]
        if name not in self.slots:
            raise BrokenPattern(f"<{name}> is neither a slot nor a list of words of this pack")
        names = {name + match[2], *_GROUP.findall(self.slots[name])}
        twice = names & self.names
        if twice:
            raise BrokenPattern(f"<{twice.pop()}> stands twice; a second one is called <{name}2>")
        self.names |= names
        self.parts.append(f"(?P<{name}{match[2]}>{self.slots[name]})")
        self.place = match.end()
        self.begins = False
