"""Decide why two similar texts must not become one: the small words that turn a meaning round.

A cosine hardly sees a number, a negation or a name, and one that only counts words does not see their order, so
these are compared word for word. In doubt the texts are kept apart: a row too many is harmless, a wrong merge
loses what somebody said. The word tables are in `language.words`; they need not be complete, because whatever word
was put in place of another counts as a conflict unless the two are known to mean the same.
"""

from __future__ import annotations

from bisect import insort
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from difflib import SequenceMatcher

from memory_app.language.words import COMMON, DIRECTIONS, JOINERS, SYNONYMS, stem_of
from memory_app.memories.comparison import Amount, Reading, read

NEGATION = "negation"
NUMBER = "number"
DATE = "date"
TIME = "time"
QUALIFIER = "qualifier"
TENSE = "tense"
MODALITY = "modality"
FAMILY_MEMBER = "family member"
NAME = "name"
ORDER = "order"
SUBSTITUTION = "substitution"
"""The weakest reason: a word or two stand in the place of others. Where subject, relation and object are known
to be the same, it does not count."""

SUBSTITUTION_LIMIT = 2
"""Up to so many other words on each side are a substitution ("pizza" for "sushi"); more are another wording."""


_OPPOSITES = ("un", "dis", "in", "im", "ir", "non", "anti")

_VARIANT_LENGTHS = frozenset(range(5, 41))
"""Letters of words that may be variants of each other: shorter ones differ by one letter, longer ones are no words."""

_VARIANT_RATIO = 0.85
"""`SequenceMatcher.ratio` from which two words of one beginning are one word: "organis" and "organiz" have 0.86."""


def conflicting(a: str, b: str) -> str | None:
    """Return why ``a`` and ``b`` say different things although they look alike, or None. Symmetric.

    Of several reasons the strongest is returned; `NEGATION` comes first and `SUBSTITUTION` last.
    """
    first, second = read(a), read(b)
    for reason, differ in _CHECKS:
        # Most checks ask what the first has that the second has not, so each is asked both ways.
        if differ(first, second) or differ(second, first):
            return reason
    return None


def exchanged(a: str, b: str) -> bool:
    """Whether each of the texts says something in place of what the other says, in however many words.

    If so, neither holds the other. Stricter than `conflicting`, which takes many other words for another wording:
    for whoever unites memories that nobody said again.
    """
    first, second = read(a), read(b)
    only_first, only_second = _own_words(first, second)
    counts_first = Counter(map(_meaning, first.content))
    counts_second = Counter(map(_meaning, second.content))
    # A word said twice may stand in place of another: bridges in the harbour, bridges under the bridge.
    shared = counts_first.keys() & counts_second.keys()
    only_first |= shared & (counts_first - counts_second).keys()
    only_second |= shared & (counts_second - counts_first).keys()
    return bool(only_first and only_second)


def content_words(text: str) -> frozenset[str]:
    """Return the words of meaning in ``text``: stems, of words that mean the same the same one."""
    return frozenset(map(_meaning, read(text).content))


def words_only_in(a: str, b: str) -> frozenset[str]:
    """Return the words of meaning in ``a`` that ``b`` has in no form."""
    only_first, _ = _own_words(read(a), read(b))
    return frozenset(only_first)


def missing_names(a: str, b: str) -> frozenset[str]:
    """Return the names in ``a`` that do not stand in ``b``."""
    return frozenset(_names_missing(read(a), read(b)))


def _negations_differ(first: Reading, second: Reading) -> bool:
    if Counter(first.negation_kinds) != Counter(second.negation_kinds):
        return True
    # What one negates, the other states: "not tea but coffee", "not coffee but tea".
    stated_in_second = set(second.content) - second.negated_words
    return not first.negated_words.isdisjoint(stated_in_second)


def _amounts_differ(first: Reading, second: Reading) -> bool:
    if Counter(_with_units(first.amounts)) != Counter(_with_units(second.amounts)):
        return True
    # "2 dogs and 3 cats" has the numbers of "3 dogs and 2 cats"; what is counted tells them apart.
    by_thing, by_thing_second = _by_counted(first.amounts), _by_counted(second.amounts)
    shared = by_thing.keys() & by_thing_second.keys()
    if any(by_thing[thing] != by_thing_second[thing] for thing in shared):
        return True
    # The same numbers in another order are another statement, unless each is known to count the same thing.
    is_reordered = _values(first.amounts) != _values(second.amounts)
    return is_reordered and by_thing.keys() != by_thing_second.keys()


def _with_units(amounts: Iterable[Amount]) -> list[tuple[str, str | None]]:
    return [(amount.value, amount.unit) for amount in amounts]


def _values(amounts: Iterable[Amount]) -> list[str]:
    return [amount.value for amount in amounts]


def _by_counted(amounts: Iterable[Amount]) -> dict[str | None, list[str]]:
    """What is counted to its numbers, in order of size as text."""
    values: dict[str | None, list[str]] = {}
    for amount in amounts:
        insort(values.setdefault(amount.counted, []), amount.value)
    return values


def _sides_differ(first: Reading, second: Reading) -> bool:
    # A side that only one text takes is an addition; where both take one in a group, it has to be the same.
    shared = _groups(first.sides) & _groups(second.sides)
    if _sides_in(first, shared) != _sides_in(second, shared):
        return True
    # "happy" against "unhappy": the tables need not name every opposite that a prefix makes.
    opposites = (prefix + word for word in first.words - second.words for prefix in _OPPOSITES)
    return not second.words.isdisjoint(opposites)


def _groups(sides: Iterable[tuple[int, int]]) -> set[int]:
    return {group for group, _ in sides}


def _sides_in(reading: Reading, groups: set[int]) -> set[tuple[int, int]]:
    return {(group, side) for group, side in reading.sides if group in groups}


def _tenses_differ(first: Reading, second: Reading) -> bool:
    """lived and lives: what was is not what is. Irregular verbs are sides of a group."""
    return bool((first.past - first.present) & (second.present - second.past))


def _names_differ(first: Reading, second: Reading) -> bool:
    # Where no capital marks a name, any word that stands in place of another may be one.
    if first.caseless - second.caseless and second.caseless - first.caseless:
        return True
    # Both have to lack a name: "the shelter in Berlin" only adds one to "the shelter".
    return bool(_names_missing(first, second) and _names_missing(second, first))


def _names_missing(reading: Reading, other: Reading) -> set[str]:
    """Names of ``reading`` that do not stand in ``other``."""
    missing = set(reading.names) - other.words
    return {name for name in missing if not _is_common(name, reading, other)}


def _is_common(name: str, reading: Reading, other: Reading) -> bool:
    if name not in reading.initials:
        return False
    # A capital at the start of a sentence says little: the word may be an ordinary one.
    return name in COMMON or _meaning(stem_of(name)) in map(_meaning, other.content)


def _order_differs(first: Reading, second: Reading) -> bool:
    # "Anna loves Bob": who does it to whom is in the order alone.
    if _is_reordered(first.names, second.names):
        return True
    if not _is_reordered(first.content, second.content):
        return False
    # In another order "left before right" or "not tea but coffee" is another statement.
    has_both_sides = len(_groups(first.sides)) < len(first.sides)
    has_direction = not DIRECTIONS.isdisjoint(first.bag)
    if has_both_sides or has_direction or first.negations:
        return True
    # Around "and" two things may change places; the same words in another order without it may not.
    return Counter(first.bag) == Counter(second.bag) and JOINERS.isdisjoint(first.bag)


def _is_reordered(first: Sequence[str], second: Sequence[str]) -> bool:
    shared = set(first) & set(second)
    return _in_order(first, shared) != _in_order(second, shared)


def _in_order(words: Iterable[str], chosen: set[str]) -> list[str]:
    """The ``chosen`` of ``words``, each once, where it first stands."""
    return [word for word in dict.fromkeys(words) if word in chosen]


def _is_substituted(first: Reading, second: Reading) -> bool:
    only_first, only_second = _own_words(first, second)
    counts = len(only_first), len(only_second)
    # Words on one side only are an addition; nothing stands in their place.
    return min(counts) > 0 and max(counts) <= SUBSTITUTION_LIMIT


def _own_words(first: Reading, second: Reading) -> tuple[set[str], set[str]]:
    """Content words of each that the other has in no form."""
    meanings_first, meanings_second = set(map(_meaning, first.content)), set(map(_meaning, second.content))
    only_first, only_second = meanings_first - meanings_second, meanings_second - meanings_first
    # Comparing letter by letter takes long, and so many words cannot all be variants.
    if max(len(only_first), len(only_second)) > 10 * SUBSTITUTION_LIMIT:
        return only_first, only_second
    # In order of the alphabet, since each variant is used up: the result must not depend on how a set is walked.
    for word in sorted(only_first):
        variant = next((other for other in sorted(only_second) if _is_variant(word, other)), None)
        if variant is not None:
            only_first.discard(word)
            only_second.discard(variant)
    return only_first, only_second


def _meaning(word: str) -> str:
    return SYNONYMS.get(word, word)


def _is_variant(word: str, other: str) -> bool:
    """allergi and allerg, organis and organiz: one word in two forms."""
    if not {len(word), len(other)} <= _VARIANT_LENGTHS:
        return False
    # Most pairs end here, before the slow comparison.
    if word[:5] != other[:5]:
        return False
    # Without `autojunk`, which leaves letters out of long words.
    return SequenceMatcher(None, word, other, autojunk=False).ratio() >= _VARIANT_RATIO


# From the strongest reason to the weakest: the first that applies is the one that callers see.
_CHECKS: tuple[tuple[str, Callable[[Reading, Reading], bool]], ...] = (
    (NEGATION, _negations_differ),
    (NUMBER, _amounts_differ),
    (DATE, lambda first, second: first.dates != second.dates),
    (TIME, lambda first, second: first.times != second.times),
    (FAMILY_MEMBER, lambda first, second: first.family != second.family),
    (MODALITY, lambda first, second: first.is_unreal != second.is_unreal),
    (QUALIFIER, _sides_differ),
    (TENSE, _tenses_differ),
    (NAME, _names_differ),
    (ORDER, _order_differs),
    (SUBSTITUTION, _is_substituted),
)
