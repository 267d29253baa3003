"""Index the words by which two statements are compared, of all languages: negations, numbers, units, opposites.

Built once from the rows of `table.LANGUAGES`. A word that is missing is still told apart by its letters; a word that is
here is recognised in its other spelling, or as the opposite of one with which it shares nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache

from memory_app.language.language import Language, row_numbers
from memory_app.language.table import LANGUAGES, rows_of_all, words_of_all
from memory_app.language.text import STOP_WORDS, terms


@lru_cache(maxsize=16_384)
def stem_of(word: str) -> str:
    """The form under which the tables know a word: its stem, or the word itself where it has none."""
    return next(iter(terms(word)), word)


def _stems(words: Iterable[str]) -> frozenset[str]:
    return frozenset(map(stem_of, words))


def _numbered(part: Callable[[Language], tuple[str, ...]]) -> dict[str, int]:
    """Each word of a row to the row's number, from 1."""
    numbers: dict[str, int] = {}
    for language in LANGUAGES:
        numbers |= row_numbers(part(language))
    return numbers


def _by_first_word(part: Callable[[Language], Iterable[str]]) -> dict[str, str]:
    """Each word of a row to the first one, which names the meaning in English."""
    meanings: dict[str, str] = {}
    for row in rows_of_all(part):
        words = row.split()
        meanings |= dict.fromkeys(words, words[0])
    return meanings


def _by_stem(meanings: Mapping[str, str]) -> dict[str, str]:
    return {stem_of(word): meaning for word, meaning in meanings.items()}


# --- negation -----------------------------------------------------------------------------------------------

NEGATIONS: dict[str, str] = {
    **dict.fromkeys(words_of_all(lambda language: language.negations), "not"),
    **dict.fromkeys(words_of_all(lambda language: language.never), "never"),
    "ended": "ended",
}
"""Word → what it does. ``ended`` stands for every phrase of `Language.ended_patterns`."""

CONTRACTED_NEGATIONS = words_of_all(lambda language: language.contracted_negations)
NEGATION_SIGNS = words_of_all(lambda language: language.negation_signs)

# --- numbers and dates --------------------------------------------------------------------------------------

NUMBER_WORDS: dict[str, float] = {}
# From the last language to the first, so that English wins where two write a number alike.
for _language in reversed(LANGUAGES):
    NUMBER_WORDS |= _language.numbers
NUMBER_SIGNS = words_of_all(lambda language: language.number_signs)
UNITS = _by_first_word(lambda language: language.units)
"""Spelling → unit. A number is the same only with the same unit."""

MONTH_NUMBERS = _numbered(lambda language: language.months)
WEEKDAYS = _numbered(lambda language: language.weekdays)
AMBIGUOUS_MONTHS = words_of_all(lambda language: language.ambiguous_months)
RELATIVE_DAYS = words_of_all(lambda language: language.relative_days)

# --- who and what -------------------------------------------------------------------------------------------

FAMILY = _by_stem(_by_first_word(lambda language: language.family))
"""Stem → person. A text about somebody's mother is not one about somebody."""

UNREAL = _stems(words_of_all(lambda language: language.unreal))


def _places() -> Iterator[tuple[tuple[int, int], list[str]]]:
    """Each side of the opposites as its place (group, side) and its words.

    A side joins the side of a language before it that begins with the same word. Within a language it does not: "left"
    is a direction, and also what somebody did who had joined.
    """
    place_of: dict[str, tuple[int, int]] = {}
    group = 0
    for language in LANGUAGES:
        # A copy: only the sides of the languages before this one are joined.
        before = dict(place_of)
        for row in language.opposites:
            for side, text in enumerate(row.split("|")):
                words = text.split()
                place = before.get(words[0], (group, side))
                place_of.setdefault(words[0], place)
                yield place, words
            # A group keeps its number even where all of its sides joined others, so that no two rows share one.
            group += 1


def _sides() -> dict[str, list[tuple[int, int]]]:
    sides: dict[str, list[tuple[int, int]]] = {}
    for place, words in _places():
        for word in words:
            # A word may stand in several groups: "left" is a direction, and the opposite of "joined".
            places = sides.setdefault(stem_of(word), [])
            if place not in places:
                places.append(place)
    return sides


SIDES = _sides()
"""Stem → (group, side). Texts that take different sides in one group say different things."""


def _synonyms() -> dict[str, str]:
    rows = [words for _, words in _places()]
    rows += map(str.split, rows_of_all(lambda language: language.synonyms))
    meanings: dict[str, str] = {}
    for words in rows:
        first, *others = map(stem_of, words)
        # The first word may be a synonym itself: then all rows lead to the same one.
        meaning = meanings.get(first, first)
        for other in others:
            meanings.setdefault(other, meaning)
    # Units and family last: they are compared by themselves, so that a synonym must not rename them.
    return meanings | _by_stem(UNITS) | FAMILY


SYNONYMS = _synonyms()
"""Stem → the stem that stands for all of the same meaning."""

COMMON = STOP_WORDS | words_of_all(lambda language: language.common)
"""Words whose presence alone changes nothing: not compared as content, never taken for names."""

DIRECTIONS = words_of_all(lambda language: language.directions)
JOINERS = words_of_all(lambda language: language.joiners)
