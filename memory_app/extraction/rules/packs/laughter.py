"""Tell which sentences are told with a laugh, and which of their facts are kept all the same. Pure.

Whoever laughs may mean the opposite: "I'm 12 lol", "my boyfriend is a pizza haha". What happened, a new puppy or what
one plays is no joke for it. So a laugh counts for its own sentence, and for what people joke about.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from memory_app.extraction.rules.packs.clauses import sentences
from memory_app.extraction.rules.packs.fact import Fact
from memory_app.extraction.rules.packs.pack import Pack
from memory_app.extraction.rules.patterns import When
from memory_app.memories.relations import FAVOURITE

_PLAIN = """
    has_pet pet_kind has_family child son daughter brother sister cousin niece nephew birthday moves_to plays attends
    hobby collects drives owns phone_model volunteers_at learns studies studies_at studied studied_at member_of
"""
_NO_JOKES = frozenset(_PLAIN.split())


_AROUND = re.compile(r"[ ,]*  [ ,]*([.!?\u2026]?)")


@dataclass(frozen=True, slots=True)
class ToldSentence:
    """A sentence without the words of laughing; ``is_laughed``: there were some in it, or right behind it."""

    text: str
    is_laughed: bool


def told_sentences(pack: Pack, text: str) -> Iterable[ToldSentence]:
    """The sentences of `own_text`, without those that only laugh.

    Such a laugh is about the sentence before, at the beginning about the next.
    """
    # One look at the whole: most turns have no laugh in them.
    if pack.laugh.search(text) is None:
        return (ToldSentence(sentence, is_laughed=False) for sentence in sentences(text))
    return _with_laughs(pack, sentences(text))


def _with_laughs(pack: Pack, laughed: Iterable[str]) -> Sequence[ToldSentence]:
    told: list[ToldSentence] = []
    is_opening = False
    for sentence in laughed:
        text = pack.laugh.sub(" ", sentence)
        is_laughed = text != sentence
        if is_laughed and not any(map(str.isalnum, text)):
            is_opening = not told
            told[-1:] = [ToldSentence(last.text, is_laughed=True) for last in told[-1:]]
            continue
        told.append(ToldSentence(_joined(text), is_laughed=is_laughed or is_opening))
        is_opening = False
    return told


def _joined(text: str) -> str:
    """``text`` without the blanks and commas that stood around a laugh."""
    text = _AROUND.sub(lambda match: match[1] or " ", text)
    return text.strip(" ,")


def is_no_joke(fact: Fact) -> bool:
    """Whether a fact that was told with a laugh is meant all the same."""
    if fact.corrects is not None:
        return True
    rule = fact.rule
    if rule.when is When.EVENT or rule.past:
        return True
    return fact.relation in _NO_JOKES or fact.relation.startswith(FAVOURITE)
