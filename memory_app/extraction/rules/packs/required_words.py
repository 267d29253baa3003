"""Tell which words a clause must have for a pattern to fit it, so that few patterns are tried on each clause.

A pack has thousands of patterns, and a clause has the words for a handful. What is found here is only a condition
that a clause must meet: where nothing is certain the answer is None, and the pattern is tried on every clause.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

WORD = re.compile(r"[\w']+")
"""A word of a clause, and of the text between the signs of a pattern."""

Words = frozenset[str] | None
"""In lower case; one of them must be there. None: nothing is known."""

_SLOT = re.compile(r"<([a-z_]+)\d?>")
_CLOSING = {"(": ")", "[": "]"}
_GLUE_BEFORE = re.compile(r"[\w'*>\])]")
_GLUE_BEHIND = re.compile(r"[\w'*<\[(]")
"""Signs that make one word with what they touch."""


@dataclass(slots=True)
class _Sequence:
    """What stands one after another: the best condition so far, and the text that is being read."""

    best: Words = None
    text: str = ""
    starts_whole: bool = True

    def end_text(self, *, ends_whole: bool) -> None:
        """Take the words of the text, but for those that go on before or behind it."""
        matches = list(WORD.finditer(self.text))
        for match in matches:
            is_cut_before = match.start() == 0 and not self.starts_whole
            is_cut_behind = match.end() == len(self.text) and not ends_whole
            if not (is_cut_before or is_cut_behind):
                self.need(frozenset({match[0].lower()}))
        self.text = ""

    def need(self, words: Words) -> None:
        self.best = _stricter(self.best, words)


def _stricter(first: Words, second: Words) -> Words:
    """The condition that fewer clauses meet: long words are rarer than short ones."""
    if first is None or second is None:
        return first or second
    return max(first, second, key=lambda words: (min(map(len, words)), -len(words)))


def words_of(text: str) -> frozenset[str]:
    """The words of a clause or a sentence, to which conditions are compared."""
    return frozenset(WORD.findall(text.lower()))


def may_fit(needs: Words, words: frozenset[str]) -> bool:
    """Whether a clause of these words may fit a pattern with the condition ``needs``."""
    return needs is None or not needs.isdisjoint(words)


def either(conditions: Iterable[Words]) -> Words:
    """The condition of alternatives: a word of any of them."""
    united: set[str] = set()
    for words in conditions:
        if words is None:
            return None
        united |= words
    return frozenset(united) or None


def required_words(pattern: str, slots: Mapping[str, Words]) -> Words:
    """The words of which a clause must have one to fit ``pattern``. ``slots`` are the conditions of slots by name."""
    return _alternatives(pattern, slots)


def _alternatives(pattern: str, slots: Mapping[str, Words]) -> Words:
    return either(_sequence(part, slots) for part in _split_alternatives(pattern))


def _split_alternatives(pattern: str) -> list[str]:
    """The alternatives of a pattern, without looking into its brackets."""
    parts = [""]
    depth = 0
    for sign in pattern:
        depth += (sign in "([") - (sign in ")]")
        if sign == "|" and depth == 0:
            parts.append("")
        else:
            parts[-1] += sign
    return parts


def _sequence(pattern: str, slots: Mapping[str, Words]) -> Words:
    sequence = _Sequence()
    place = 0
    while place < len(pattern):
        sign = pattern[place]
        if sign not in "([<*":
            sequence.text += sign
            place += 1
            continue
        end = _end_of_sign(pattern, place)
        # What touches a word on either side is a part of it: "Lehrer[in]", "<thing>-abo".
        before, behind = pattern[max(place - 1, 0) : place], pattern[end : end + 1]
        is_glued = bool(_GLUE_BEFORE.match(before) or _GLUE_BEHIND.match(behind))
        sequence.end_text(ends_whole=False if is_glued else sequence.text.endswith(" ") or sign == "[")
        if not is_glued:
            sequence.need(_condition(pattern[place:end], slots))
        sequence.starts_whole = not is_glued
        place = end
    sequence.end_text(ends_whole=True)
    return sequence.best


def _end_of_sign(pattern: str, place: int) -> int:
    """Where the slot, star or bracket that begins at ``place`` ends."""
    if pattern[place] == "*":
        return place + 1
    if pattern[place] == "<":
        return pattern.index(">", place) + 1
    depth = 0
    for end in range(place, len(pattern)):
        depth += (pattern[end] in "([") - (pattern[end] in ")]")
        if depth == 0:
            return end + 1
    return len(pattern)


def _condition(sign: str, slots: Mapping[str, Words]) -> Words:
    if sign.startswith("("):
        return _alternatives(sign[1:-1], slots)
    match = _SLOT.fullmatch(sign)
    # What may be left out needs no word.
    return slots.get(match[1]) if match else None
