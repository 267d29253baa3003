"""Runs of digits as people write long numbers: in groups, with spaces, dashes or dots between them."""

from __future__ import annotations

import re
from collections.abc import Iterator

SEPARATORS = r" \u00a0\u2009\u202f.\u2010-\u2015\u2212\-"
"""Characters between groups of digits, as part of a character class: spaces, a dot, dashes."""

INVISIBLE = "\u00ad\u200b-\u200d\u2060\ufeff"
_RUN = re.compile(rf"\d(?:[{SEPARATORS}{INVISIBLE}]{{0,3}}\d)*")
_GROUP = re.compile(r"\d+")
_OTHER_DIGIT = re.compile(r"[^\D0-9]")
_WORD = re.compile(r"[A-Za-z0-9_]")


def with_plain_digits(text: str) -> str:
    """The text with digits of other scripts as those of ASCII, each at its place."""
    if text.isascii():
        return text
    return _OTHER_DIGIT.sub(lambda digit: str(int(digit[0])), text)


def runs(text: str) -> Iterator[list[re.Match[str]]]:
    """Yield the groups of digits of each run that no Latin letter touches, which code and hashes have.

    Other scripts put no space between a word and a number.
    """
    for run in _RUN.finditer(text):
        before = text[run.start() - 1 : run.start()]
        after = text[run.end() : run.end() + 1]
        groups = list(_GROUP.finditer(text, run.start(), run.end()))
        # A letter touches the group beside it and says nothing about the others.
        if _WORD.match(after):
            groups = groups[:-1]
        if groups and _WORD.match(before):
            groups = groups[1:]
        if groups:
            yield groups


def is_fraction(text: str, start: int) -> bool:
    """Whether the digits at ``start`` are the decimals of a number."""
    return start >= 2 and text[start - 1] in ".," and text[start - 2].isdigit()
