"""Decide whether what stands in a slot is whole, and bring it into the form in which it is stored.

Nothing is guessed: an object with a word that points at the talk, that belongs to another clause or after which it
would go on is refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from memory_app.extraction.rules.packs.dates import month_and_day
from memory_app.extraction.rules.packs.pack import Pack
from memory_app.extraction.rules.packs.slots import OBJECT_SLOTS

ITEM_WORDS = 6
"""Words of one item of a list."""

PHRASE_WORDS = 4
"""An item of so many words is a phrase, to which a single word behind "and" belongs."""

JOB_WORDS = 4

HIGHEST_NUMBER = 120
"""Nobody is older, and nobody has more children."""

_NAME_SLOTS = frozenset({"name", "names", "place", "org"})
_LIST_SLOTS = frozenset({"items", "names"})


def objects(pack: Pack, groups: Mapping[str, str], *, is_loose: bool) -> list[str] | None:
    """The objects in the slots of a match: one, each of a list, or an empty one where the rule has no slot for it.

    None where one of them is not whole.
    """
    second_slots = filter(_is_second_slot, groups)
    second_values = [_value(pack, second[:-1], groups[second], is_loose=is_loose) for second in second_slots]
    if None in second_values:
        return None
    slot = object_slot(groups)
    if slot is None:
        return [""]
    items = _items(pack, slot, groups[slot])
    if items is None:
        return None
    values = [_value(pack, slot, item, is_loose=is_loose) for item in items]
    return None if None in values else list(filter(None, values))


def object_slot(groups: Mapping[str, str]) -> str | None:
    """The slot of a match that holds the object of the fact."""
    return next((slot for slot in OBJECT_SLOTS if slot in groups), None)


def is_name(slot: str) -> bool:
    """Whether names stand in a slot."""
    return slot in _NAME_SLOTS


def _is_second_slot(slot: str) -> bool:
    """Whether this is a slot such as "thing2"."""
    first_slot, number = slot[:-1], slot[-1]
    return number.isdigit() and first_slot in OBJECT_SLOTS


def _items(pack: Pack, slot: str, text: str) -> list[str] | None:
    """What stands in a slot, item by item where that is a list; None for what may be a list and another clause."""
    if slot not in _LIST_SLOTS:
        return [text]
    # Behind a comma another clause may begin; only a joining word shows that it is a list.
    has_end = pack.list_end.search(text) is not None
    if ", " in text and not has_end:
        return None
    first, *others = pack.list_join.split(text)
    if others and _is_one(pack, first, others[-1]):
        return [text]
    return [first, *(_without_opening(pack, item) for item in others)]


def _is_one(pack: Pack, first: str, last: str) -> bool:
    """Whether the first and the last part of a list belong together, so that none of it is an item by itself."""
    words, words_of_last = first.lower().split(), last.lower().split()
    if len(words) == 1:
        # "Action and sci-fi movies": both are movies.
        return len(words_of_last) > 1 and words_of_last[-1] in pack.words.shared_heads
    if pack.file.verb_ending and words[0].endswith(pack.file.verb_ending):
        # "Improving schools and roads": both are improved.
        return not words_of_last[0].endswith(pack.file.verb_ending)
    # "Lost in plots and feelings".
    return len(words) >= PHRASE_WORDS and len(words_of_last) == 1


def _without_opening(pack: Pack, item: str) -> str:
    words = item.split(" ")
    while len(words) > 1 and words[0].lower() in pack.words.item_openings:
        words = words[1:]
    return " ".join(words)


def _value(pack: Pack, slot: str, text: str, *, is_loose: bool) -> str | None:
    """The form in which the text of a slot is stored; None where it is not whole."""
    if slot in _NAME_SLOTS:
        return name(pack, text, is_loose=is_loose)
    if slot == "job":
        return _job(pack, text, is_loose=is_loose)
    form = _FORMS[slot]
    return form(pack, text)


def first_name(pack: Pack, text: str) -> str | None:
    """The name with which ``text`` begins, where more words may follow: "Anna works"."""
    words = _without_article(pack, _without_possession(text.split()))
    first = words[0].lower().rstrip(".")
    # A title alone names nobody.
    fewest = 2 if first in pack.words.titles else 1
    for count in range(len(words), fewest - 1, -1):
        beginning = " ".join(words[:count])
        hit = name(pack, beginning, is_loose=False)
        if hit is not None:
            return hit
    return None


def _without_possession(words: Sequence[str]) -> Sequence[str]:
    """Up to the owner of what follows: of "Sara's birthday" that is "Sara"."""
    for place, word in enumerate(words):
        owner = word.removesuffix("'s")
        if owner and owner != word:
            return [*words[:place], owner]
    return words


def name(pack: Pack, text: str, *, is_loose: bool) -> str | None:
    """A name: words with capitals, and particles between them. Without capitals a single word."""
    words = _without_article(pack, text.split())
    if _is_no_name(pack, words):
        return None
    if is_loose:
        # "a workshop" is no name.
        has_article = len(words) < len(text.split())
        return None if has_article else _name_of_small_words(pack, words)
    return _name_of_capitals(pack, words)


def _is_no_name(pack: Pack, words: Sequence[str]) -> bool:
    """Whether a word tells that this is no name, with capitals or without: "Acme from 1977 to 2001"."""
    lowered = [word.lower() for word in words]
    if not pack.words.not_in_names.isdisjoint(lowered):
        return True
    if _is_doubtful(pack, lowered):
        return True
    return len(words) > 1 and any(map(_is_year, words))


def _is_year(word: str) -> bool:
    return len(word) == 4 and word.isdigit()


def _name_of_small_words(pack: Pack, words: Sequence[str]) -> str | None:
    """A name of an author who writes no capitals: "lyon", "san sebastián"."""
    *openings, last = [word.lower() for word in words]
    # Of two words the second may be anything, but behind those with which names begin.
    if not (pack.words.name_starts | pack.words.titles).issuperset(openings):
        return None
    if last in pack.words.not_last:
        return None
    if not all(map(_is_spelled_out, words)):
        return None
    return " ".join(map(str.capitalize, words))


def _is_spelled_out(word: str) -> bool:
    return len(word) > 1 and word[0].isalpha()


def _name_of_capitals(pack: Pack, words: Sequence[str]) -> str | None:
    """A name such as "Anna de Vries", "Dr. Lee" or "Studio 54"."""
    first, last = words[0], words[-1]
    # The first word is missing: "de Vries". With a capital, "De Vries" is whole.
    if first in pack.words.particles:
        return None
    if first[0].isdigit():
        return None
    # The last word is missing: "Anna de".
    if last.lower() in pack.words.particles:
        return None
    if not all(_may_stand_in_name(pack, word) for word in words):
        return None
    return " ".join(words)


def _may_stand_in_name(pack: Pack, word: str) -> bool:
    lowered = word.lower()
    is_small_word = lowered in pack.words.particles or lowered.rstrip(".") in pack.words.titles
    has_sign_of_name = word[0].isupper() or word[0].isdigit()
    return has_sign_of_name or is_small_word


def _job(pack: Pack, text: str, *, is_loose: bool) -> str | None:
    if pack.list_join.search(text):
        return None
    last = text.split()[-1]
    # Where nouns have capitals, one without is none.
    needs_capital = pack.file.capital_nouns and not is_loose
    if needs_capital and not last[0].isupper():
        return None
    return _phrase(pack, text, limit=JOB_WORDS)


def _item(pack: Pack, text: str) -> str | None:
    return _phrase(pack, text, limit=ITEM_WORDS)


def _thing(pack: Pack, text: str) -> str | None:
    # One thing is not several.
    if pack.list_join.search(text):
        return None
    return _phrase(pack, text)


def _phrase(pack: Pack, text: str, *, limit: float = math.inf) -> str | None:
    """Words that make a whole of at most ``limit`` words, without their article."""
    if _points_at_talk(pack, text):
        return None
    words = _without_article(pack, text.split())
    if len(words) > limit:
        return None
    # "& Sons" has lost its first word.
    if not text[0].isalnum():
        return None
    lowered = [word.lower().strip(",") for word in words]
    if _goes_on(pack, lowered):
        return None
    if _is_doubtful(pack, lowered):
        return None
    return reported(pack, " ".join(words))


def _points_at_talk(pack: Pack, text: str) -> bool:
    """Whether a phrase begins with a word such as "the". A title has capitals: "The Beach"."""
    first, *others = text.split()
    is_title = first[0].isupper() and bool(others) and others[0][0].isupper()
    return first.lower() in pack.words.not_first and not is_title


def within_sentence(pack: Pack, text: str) -> str:
    """``text``, which began a sentence, as it stands within one: "Staying fit" as "staying fit", "La danse" as "danse".

    Of other words than verbs nobody can tell whether the capital is that of a name.
    """
    first, _, rest = text.partition(" ")
    # A title has more capitals: "La Grande Vadrouille".
    if rest[:1].islower() and first.lower() in pack.words.articles:
        return rest
    ending = pack.file.verb_ending
    is_verb = bool(ending) and first.endswith(ending) and first.istitle()
    return text[0].lower() + text[1:] if is_verb else text


def reported(pack: Pack, text: str) -> str:
    """``text`` as another tells of its author: "my teeth" as "their teeth"."""
    return " ".join(pack.file.reported.get(word.lower(), word) for word in text.split(" "))


def whole(pack: Pack, text: str) -> str | None:
    """``text`` without its article where it is whole by itself."""
    return _phrase(pack, text, limit=ITEM_WORDS)


def _goes_on(pack: Pack, words: Sequence[str]) -> bool:
    """Whether the last of the words shows that the phrase is cut."""
    last = words[-1]
    if last in pack.words.not_last:
        return True
    # "In the 2" was cut at the dot of an ordinal number.
    is_ordinal = last.isdigit() and len(last) < 3
    return is_ordinal and len(words) > 1


def _number(pack: Pack, text: str) -> str | None:
    value = pack.number(text.lower())
    if value > HIGHEST_NUMBER:
        return None
    return str(value)


def _verbatim(_pack: Pack, text: str) -> str:
    return text


_FORMS: Mapping[str, Callable[[Pack, str], str | None]] = {
    "word": _phrase,
    "thing": _thing,
    "items": _item,
    "phrase": _phrase,
    "number": _number,
    "day": month_and_day,
    "year": _verbatim,
    "size": _verbatim,
}
"""What brings the text of a slot into its form, where capitals do not matter for it."""


def _is_doubtful(pack: Pack, words: Sequence[str]) -> bool:
    """Whether one of the words, in lower case, points at the talk or belongs to another clause."""
    # Of "j'apporte" the pronoun tells.
    heads = [word.partition("'")[0] + "'" for word in words if "'" in word]
    return not pack.words.not_in_objects.isdisjoint([*words, *heads])


def _without_article(pack: Pack, words: Sequence[str]) -> Sequence[str]:
    # With a capital it is part of a title: "La Grande Vadrouille".
    if len(words) > 1 and words[0] in pack.words.articles:
        words = words[1:]
    return _without_elided_article(pack, words)


def _without_elided_article(pack: Pack, words: Sequence[str]) -> Sequence[str]:
    """Without an article that has no blank behind it: "l'eczéma"."""
    head, apostrophe, rest = words[0].partition("'")
    article = head.lower() + apostrophe
    if rest and article in pack.words.articles:
        return [rest, *words[1:]]
    return words
