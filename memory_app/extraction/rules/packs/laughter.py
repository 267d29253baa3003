"""Tell which sentences are told with a laugh, and which of their facts are kept all the same. Pure.

Whoever laughs may mean the opposite: "I'm 12 lol", "my boyfriend is a pizza haha". What happened, a new puppy or what
one plays is no joke for it. So a laugh counts for its own sentence, and for what people joke about.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from memory_app.extraction.rules.packs.fact import Fact
from memory_app.extraction.rules.packs.pack import Pack
from memory_app.extraction.rules.patterns import When
from memory_app.memories.relations import FAVOURITE

_PLAIN = """
    has_pet pet_kind has_family child son daughter brother sister cousin niece nephew birthday moves_to plays attends
    hobby collects drives owns phone_model volunteers_at learns studies studies_at studied studied_at member_of
"""
_NO_JOKES = frozenset(_PLAIN.split())


@dataclass(frozen=True, slots=True)
class ToldSentence:
    """A sentence without the words of laughing; ``is_laughed``: there were some in it, or right behind it."""

    text: str
    is_laughed: bool


def told_sentences(pack: Pack, sentences: Iterable[str]) -> Sequence[ToldSentence]:
    """The sentences, without those that only laugh: about the one before, or at the beginning about the next."""
    told: list[ToldSentence] = []
    is_opening = False
    for sentence in sentences:
        text = pack.laugh.sub(" ", sentence)
        is_laughed = text != sentence
        text = " ".join(text.split()) if is_laughed else sentence
        if is_laughed and not any(map(str.isalnum, text)):
            is_opening = not told
            told[-1:] = [ToldSentence(last.text, is_laughed=True) for last in told[-1:]]
            continue
        told.append(ToldSentence(text, is_laughed=is_laughed or is_opening))
        is_opening = False
    return told


def is_no_joke(fact: Fact) -> bool:
    """Whether a fact that was told with a laugh is meant all the same."""
    if fact.corrects is not None:
        return True
    rule = fact.rule
    if rule.when is When.EVENT or rule.past:
        return True
    return fact.relation in _NO_JOKES or fact.relation.startswith(FAVOURITE)
