"""Why two similar texts must not become one: the small words that turn a meaning round.

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

SUBSTITUTED_MOST = 2
"""Up to so many other words on each side are a substitution ("pizza" for "sushi"); more are another wording."""


def conflicting(a: str, b: str) -> str | None:
    """The reason why ``a`` and ``b`` say different things although they look alike, or None. Symmetric.

    The strongest reason is given when there are several; `NEGATION` comes first and `SUBSTITUTION` last.
    """
    one, other = read(a), read(b)
    return next((reason for reason, differ in _CHECKS if differ(one, other) or differ(other, one)), None)


def _negations_differ(one: Reading, other: Reading) -> bool:
    if Counter(kind for kind, _ in one.negations) != Counter(kind for kind, _ in other.negations):
        return True
    negated = frozenset[str]().union(*(follows for _, follows in other.negations))
    return any(
        word in other.content and word not in negated for _, follows in one.negations for word in follows
    )


def _amounts_differ(one: Reading, other: Reading) -> bool:
    if Counter((x.value, x.unit) for x in one.amounts) != Counter((x.value, x.unit) for x in other.amounts):
        return True
    counted, others = _by_counted(one.amounts), _by_counted(other.amounts)
    if any(counted[thing] != others[thing] for thing in counted.keys() & others.keys()):
        return True
    reordered = [x.value for x in one.amounts] != [x.value for x in other.amounts]
    return reordered and counted.keys() != others.keys()


def _by_counted(amounts: Iterable[Amount]) -> dict[str | None, list[str]]:
    values: dict[str | None, list[str]] = {}
    for amount in amounts:
        insort(values.setdefault(amount.counted, []), amount.value)
    return values


def _sides_differ(one: Reading, other: Reading) -> bool:
    groups = {group for group, _ in one.sides} & {group for group, _ in other.sides}
    if {side for side in one.sides if side[0] in groups} != {
        side for side in other.sides if side[0] in groups
    }:
        return True
    return any(prefix + word in other.words for word in one.words - other.words for prefix in _OPPOSITES)


_OPPOSITES = ("un", "dis", "in", "im", "ir", "non", "anti")


def _tenses_differ(one: Reading, other: Reading) -> bool:
    """lived and lives: what was is not what is. Irregular verbs are sides of a group."""
    return bool((one.past - one.present) & (other.present - other.past))


def _names_differ(one: Reading, other: Reading) -> bool:
    if one.caseless - other.caseless and other.caseless - one.caseless:
        return True
    return bool(_names_missing(one, other) and _names_missing(other, one))


def _names_missing(one: Reading, other: Reading) -> set[str]:
    return {name for name in one.names if name not in other.words and not _is_common(name, one, other)}


def _is_common(name: str, one: Reading, other: Reading) -> bool:
    """A capital at the start of a sentence says little: the word may be an ordinary one."""
    return name in one.initials and (
        name in COMMON or _meaning(stem_of(name)) in {_meaning(word) for word in other.content}
    )


def _order_differs(one: Reading, other: Reading) -> bool:
    if _reordered(one.names, other.names):
        return True
    if not _reordered(one.content, other.content):
        return False
    both_sides = len({group for group, _ in one.sides}) < len(one.sides)
    if both_sides or one.negations or not DIRECTIONS.isdisjoint(one.bag):
        return True
    return Counter(one.bag) == Counter(other.bag) and JOINERS.isdisjoint(one.bag)


def _reordered(one: Sequence[str], other: Sequence[str]) -> bool:
    shared = set(one) & set(other)
    return list(dict.fromkeys(w for w in one if w in shared)) != list(
        dict.fromkeys(w for w in other if w in shared)
    )


def exchanged(a: str, b: str) -> bool:
    """Does each of the texts say something in place of what the other says, in however many words?

    Where it does, neither holds the other. Stricter than `conflicting`, which takes many other words for another
    wording: for whoever unites memories that nobody said again.
    """
    one, other = read(a), read(b)
    left, right = _only_in_one(one, other)
    mine, others = Counter(map(_meaning, one.content)), Counter(map(_meaning, other.content))
    # A word said twice may stand in place of another: bridges in the harbour, bridges under the bridge.
    shared = set(mine) & set(others)
    return bool((left or shared & set(mine - others)) and (right or shared & set(others - mine)))


def _substituted(one: Reading, other: Reading) -> bool:
    left, right = _only_in_one(one, other)
    return 0 < len(left) <= SUBSTITUTED_MOST and 0 < len(right) <= SUBSTITUTED_MOST


def _only_in_one(one: Reading, other: Reading) -> tuple[set[str], set[str]]:
    """Content words of each that the other has in no form."""
    mine, others = set(map(_meaning, one.content)), set(map(_meaning, other.content))
    left, right = mine - others, others - mine
    if max(len(left), len(right)) > 10 * SUBSTITUTED_MOST:
        return left, right
    for word in sorted(left):
        twin = next((w for w in sorted(right) if _is_variant(word, w)), None)
        if twin is not None:
            left.discard(word)
            right.discard(twin)
    return left, right


def _meaning(word: str) -> str:
    return SYNONYMS.get(word, word)


def _is_variant(word: str, other: str) -> bool:
    """allergi and allerg, organis and organiz: one word in two forms."""
    if min(len(word), len(other)) < 5 or max(len(word), len(other)) > 40 or word[:5] != other[:5]:
        return False
    return SequenceMatcher(None, word, other, autojunk=False).ratio() >= 0.85


_CHECKS: tuple[tuple[str, Callable[[Reading, Reading], bool]], ...] = (
    (NEGATION, _negations_differ),
    (NUMBER, _amounts_differ),
    (DATE, lambda one, other: one.dates != other.dates),
    (TIME, lambda one, other: one.times != other.times),
    (FAMILY_MEMBER, lambda one, other: one.family != other.family),
    (MODALITY, lambda one, other: one.is_unreal != other.is_unreal),
    (QUALIFIER, _sides_differ),
    (TENSE, _tenses_differ),
    (NAME, _names_differ),
    (ORDER, _order_differs),
    (SUBSTITUTION, _substituted),
)
