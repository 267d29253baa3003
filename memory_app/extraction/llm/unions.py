"""Hold a sentence that stands for several memories against them. Pure.

Whoever unites memories takes their words away: what the sentence leaves out is lost, what it adds was never said. So
it may neither add nor drop a name, a number or a negation, adds no word of meaning, and keeps most of each memory's.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from memory_app.extraction.llm.guards import SAMPLE
from memory_app.extraction.llm.numbers import changes_numbers
from memory_app.extraction.llm.prompt_echo import repeats_prompt
from memory_app.memories.guards import NEGATION, conflicting, content_words, missing_names, words_only_in

PINNED = "pinned memories"
NUMBERS = "numbers the memories do not have"
NEGATIONS = "denies what a memory says"
NAMES = "names the memories do not have"
WORDS = "words the memories do not have"
LOSS = "loses what a memory says"
LENGTH = "longer than the memories together"

LOSS_ALLOWED = 0.34
"""Share of a memory's words that may be said in those of another: of three or four words one."""

_NAME = re.compile(r"\b[^\W\d_a-z][\w'’-]*")
"""A word with a capital letter, at the beginning of a sentence too."""

_WORD = re.compile(r"[\w'’-]+")
_POSSESSIVE = re.compile(r"['’]s?$")


def fault_of_union(text: str, sources: Sequence[str]) -> str | None:
    """Return why ``text`` may not stand for all ``sources``, in words that may be stored, or None."""
    if repeats_prompt(text, sources):
        return SAMPLE
    if len(text) > sum(map(len, sources)):
        return LENGTH
    if changes_numbers(text, sources):
        return NUMBERS
    # Numbers are compared above: one that a source lacks may be in another, which is no conflict.
    if any(conflicting(text, source) == NEGATION for source in sources):
        return NEGATIONS
    if has_new_names(text, sources):
        return NAMES
    if words_only_in(text, " ".join(sources)):
        return WORDS
    if any(_loses(text, source) for source in sources):
        return LOSS
    return None


def has_new_names(text: str, sources: Sequence[str]) -> bool:
    """Whether a word of ``text`` with a capital letter stands in no source."""
    # The first word of a sentence looks like a name: any word of a source will do, whatever its case.
    words = {_bare(word) for source in sources for word in _WORD.findall(source)}
    return any(_bare(name) not in words for name in _NAME.findall(text))


def names_in(text: str, sources: Sequence[str]) -> tuple[str, ...]:
    """The words of ``text`` with a capital letter that no source writes with a small one."""
    small = {word for source in sources for word in _WORD.findall(source) if word[0].islower()}
    return tuple(name for name in _NAME.findall(text) if name.casefold() not in small)


def _bare(word: str) -> str:
    """The word in lower case and without the ending of a possessive."""
    return _POSSESSIVE.sub("", word).casefold()


def _loses(text: str, source: str) -> bool:
    """Whether ``text`` lacks a name of ``source``, or too many of its words."""
    if missing_names(source, text):
        return True
    lost = words_only_in(source, text)
    return len(lost) > LOSS_ALLOWED * len(content_words(source))
