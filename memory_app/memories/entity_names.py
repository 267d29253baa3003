"""Find the known entities that a text names: by label, by alias, with a possessive, or by a first name of one person.

Pure, and sure of itself: what may be an ordinary word, or more than one person, names nobody.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from memory_app.errors import InvalidInput
from memory_app.language.language import words_in
from memory_app.language.text import slug
from memory_app.language.words import COMMON, MONTH_NUMBERS, WEEKDAYS

_WORD = re.compile(r"[^\W_]+(?:['’\-.][^\W_]+)*")
_POSSESSIVE = re.compile(r"['’]s?$")
_DATES = MONTH_NUMBERS.keys() | WEEKDAYS.keys()
_ORDINARY = COMMON | words_in(
    """art bill chase dawn drew faith grace grant guy hope iris jack joy lily mark miles pat rich rob rose sky sue
    will"""
)
"""Words of which a capital at the beginning of a sentence does not make a name."""


_SIGNS_BEHIND = re.compile(r"[+#]+")
"""Signs behind a letter that belong to a name: C++."""

WORDS_LIMIT = 5_000
"""Different words of a text that are looked up at most."""

_BEGINNINGS_LIMIT = 40_000
"""Beginnings of a text that are looked at, with those that come again."""

_SIGNS_LIMIT = 8
"""Longest name, in characters, that is found inside a run of a script without blanks and capitals."""


@dataclass(frozen=True, slots=True)
class KnownEntity:
    """An entity as it may be named; ``aliases`` are further names of it."""

    key: str
    type: str
    label: str
    aliases: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        return (self.label, *self.aliases)


@dataclass(frozen=True, slots=True)
class _Word:
    text: str
    """In lower case, without a possessive."""
    has_capital: bool
    follows_closely: bool
    """Only blanks stand between it and the word before."""
    begins_sentence: bool


def named_in(text: str, known: Sequence[KnownEntity]) -> tuple[KnownEntity, ...]:
    """Return those of ``known`` that ``text`` names, each once; of one name the first that has it.

    The longest name counts, and "Anna Lind" names neither Anna nor Anna Berg.
    """
    words = list(_words(text))
    # Where nobody writes capitals, a small letter does not say that it is no name.
    is_small = not any(word.has_capital for word in words if word.text != "i")
    names = _by_first_word(known)
    persons = _by_first_name(known)
    found: dict[str, KnownEntity] = {}
    place = 0
    while place < len(words):
        length, entity = _longest(words, place, names, is_small=is_small)
        if entity is None:
            entity = _by_first(words, place, persons)
        if entity is not None:
            found.setdefault(entity.key, entity)
        place += max(length, 1)
    for entity in known:
        if _stands_in(entity, text):
            found.setdefault(entity.key, entity)
    return tuple(found.values())


def first_words(text: str) -> tuple[str, ...]:
    """The slugs with which the name of whomever ``text`` names may begin, each once, at most `WORDS_LIMIT`."""
    found: dict[str, None] = {}
    for beginning in dict.fromkeys(islice(_beginnings(text), _BEGINNINGS_LIMIT)):
        try:
            found[slug(beginning)] = None
        except InvalidInput:
            # Marks alone name nobody.
            continue
    return tuple(found)[:WORDS_LIMIT]


def _beginnings(text: str) -> Iterator[str]:
    for match in _WORD.finditer(text):
        word = _POSSESSIVE.sub("", match[0])
        yield word
        if behind := _SIGNS_BEHIND.match(text, match.end()):
            yield word + behind[0]
        if _has_no_case(word):
            yield from _parts(word)


def _parts(run: str) -> Iterator[str]:
    """What may be a name within a run of words that no blanks part."""
    for start in range(len(run)):
        for end in range(start + 2, min(start + _SIGNS_LIMIT, len(run)) + 1):
            yield run[start:end]


def _has_no_case(name: str) -> bool:
    """Whether it is of a script without capitals, most of which know no blanks either."""
    return not name.isascii() and name.lower() == name.upper()


def _words(text: str) -> Iterator[_Word]:
    end = 0
    for match in _WORD.finditer(text):
        plain = _POSSESSIVE.sub("", match[0])
        gap = text[end : match.start()]
        before = text[: match.start()].rstrip(" \"'“”‘’(")[-1:]
        yield _Word(
            plain.lower(),
            has_capital=plain[:1].isupper(),
            follows_closely=bool(end) and not gap.strip(" "),
            begins_sentence=before in ("", ".", "!", "?", ":", "\n"),
        )
        # Behind a possessive another thing begins: "Anna's Berlin" is no name of one.
        end = match.end() if plain == match[0] else 0


_Names = dict[str, list[tuple[tuple[str, ...], bool, KnownEntity]]]


def _by_first_word(known: Iterable[KnownEntity]) -> _Names:
    """Names as words, the longest first, and whether they are written with a capital."""
    names: _Names = defaultdict(list)
    for entity in known:
        for name in entity.names:
            words = tuple(word.text for word in _words(name))
            if words:
                names[words[0]].append((words, name[:1].isupper(), entity))
    for entries in names.values():
        entries.sort(key=lambda entry: -len(entry[0]))
    return names


def _longest(
    words: Sequence[_Word], place: int, names: _Names, *, is_small: bool
) -> tuple[int, KnownEntity | None]:
    """The longest name that begins at ``place``: how many words it has, and whose it is."""
    for name, has_capital, entity in names.get(words[place].text, ()):
        here = words[place : place + len(name)]
        if tuple(word.text for word in here) != name:
            continue
        if len(name) > 1 or _is_name(words, place, entity, has_capital=has_capital, is_small=is_small):
            return len(name), entity
    return 0, None


def _is_name(
    words: Sequence[_Word], place: int, entity: KnownEntity, *, has_capital: bool, is_small: bool
) -> bool:
    """Whether the one word at ``place``, which is a name of ``entity``, is meant as one."""
    word = words[place]
    if has_capital and not (is_small or word.has_capital):
        return False
    return not _is_ordinary(word) and not _is_part(words, place, entity)


def _is_ordinary(word: _Word) -> bool:
    if word.text in _DATES:
        return True
    return word.text in _ORDINARY and (word.begins_sentence or not word.has_capital)


def _is_part(words: Sequence[_Word], place: int, entity: KnownEntity) -> bool:
    """Whether a word with a capital goes on behind a first name, so that somebody else is named: "Anna Lind"."""
    after = words[place + 1] if place + 1 < len(words) else None
    goes_on = after is not None and after.follows_closely and after.has_capital
    return entity.type == "person" and goes_on and words[place].has_capital


def _by_first_name(known: Iterable[KnownEntity]) -> dict[str, set[KnownEntity]]:
    """Persons by the first word of any of their names."""
    persons: dict[str, set[KnownEntity]] = defaultdict(set)
    for entity in known:
        if entity.type == "person":
            for name in entity.names:
                first = next(_words(name), None)
                if first is not None:
                    persons[first.text].add(entity)
    return persons


def _by_first(words: Sequence[_Word], place: int, persons: dict[str, set[KnownEntity]]) -> KnownEntity | None:
    word = words[place]
    bearers = persons.get(word.text, set())
    # Two persons of one first name: nobody is meant for certain.
    if len(bearers) != 1 or not word.has_capital or _is_ordinary(word):
        return None
    (entity,) = bearers
    return None if _is_part(words, place, entity) else entity


def _stands_in(entity: KnownEntity, text: str) -> bool:
    """For scripts without capitals and blanks, in which words do not show where a name ends."""
    return any(len(name) > 1 and _has_no_case(name) and name in text for name in entity.names)
