"""Find the patterns of a pack that may fit a clause, in the order of the pack, by the words that they need."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

from memory_app.extraction.rules.packs.format import DateRule, PackRule
from memory_app.extraction.rules.packs.pattern_compiler import any_case
from memory_app.extraction.rules.packs.required_words import WORD, Words


@dataclass(frozen=True)
class RulePattern:
    """A pattern of the rule with the number ``place``; ``is_other``: it is about somebody of the speaker's.

    ``needs_capitals``: it reads only authors who write names with capitals.
    """

    place: int
    rule: PackRule
    expression: str
    needs: Words
    is_other: bool = False
    needs_capitals: bool = False
    unless: frozenset[str] = frozenset()

    # Compiled when a clause has one of its words: most chats need few of the hundreds of a pack.
    @cached_property
    def pattern(self) -> re.Pattern[str]:
        return any_case(self.expression)


@dataclass(frozen=True)
class DatePattern:
    """The pattern of a rule for a time."""

    rule: DateRule
    expression: str
    needs: Words

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        return any_case(self.expression)


class PatternIndex:
    """The patterns of all rules, looked up by the words of a clause."""

    def __init__(self, patterns: Iterable[RulePattern]) -> None:
        self._patterns = tuple(patterns)
        self._anywhere: list[int] = []
        by_word: dict[str, list[int]] = defaultdict(list)
        for number, pattern in enumerate(self._patterns):
            if pattern.needs is None:
                self._anywhere.append(number)
            for word in pattern.needs or ():
                by_word[word].append(number)
        self._by_word = dict(by_word)

    def __iter__(self) -> Iterator[RulePattern]:
        return iter(self._patterns)

    def candidates(self, text: str) -> Iterator[tuple[PackRule, Sequence[RulePattern]]]:
        """The rules that may read ``text``, each with those of its patterns that may fit."""
        numbers = set(self._anywhere)
        for word in set(WORD.findall(text.lower())):
            numbers.update(self._by_word.get(word, ()))
        hits = [self._patterns[number] for number in sorted(numbers)]
        for _, group in groupby(hits, key=lambda hit: hit.place):
            patterns = list(group)
            yield patterns[0].rule, patterns
