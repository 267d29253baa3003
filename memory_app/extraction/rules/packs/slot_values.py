"""Decide whether what stands in a slot is whole, and bring it into the form in which it is stored.

Nothing is guessed: an object with a word that points at the talk, that belongs to another clause or after which it
would go on is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from memory_app.extraction.rules.packs.dates import month_and_day
from memory_app.extraction.rules.packs.pack import Pack
from memory_app.extraction.rules.packs.slots import OBJECT_SLOTS

ITEM_WORDS = 6
"""Words of one item of a list."""

MOST_COUNTED = 120
"""Nobody is older, and nobody has more children."""

JOB_WORDS = 4


def objects(pack: Pack, groups: Mapping[str, str], *, is_loose: bool) -> list[str] | None:
    """The objects in the slots of a match: one, each of a list, or an empty one where the rule has no slot for it.

    None where one of them is not whole.
    """
    slot = object_slot(groups)
    if slot is None:
        return [""]
    text = groups[slot]
    parts = pack.list_join.split(text) if slot in ("items", "names") else [text]
    # Behind a comma another clause may begin; only a joining word shows that it is a list.
    if ", " in text and slot in ("items", "names") and not pack.list_end.search(text):
        return None
    parts = [parts[0], *(_without_opening(pack, part) for part in parts[1:])]
    items = [_object(pack, slot, part, is_loose=is_loose) for part in parts]
    # The other slots of the match must be whole as well.
    seconds = [
        _object(pack, name[:-1], words, is_loose=is_loose)
        for name, words in groups.items()
        if name[-1].isdigit() and name[:-1] in OBJECT_SLOTS
    ]
    return None if None in items or None in seconds else [item for item in items if item]


def _object(pack: Pack, slot: str, text: str, *, is_loose: bool) -> str | None:
    if slot in ("name", "names", "place", "org"):
        return name(pack, text, is_loose=is_loose)
    if slot == "number":
        number = text.lower()
        value = int(number) if number.isdigit() else pack.numbers[number]
        return str(value) if value <= MOST_COUNTED else None
    if slot == "day":
        return month_and_day(pack, text)
    if slot in ("size", "year"):
        return text
    if slot == "job":
        return _job(pack, text, is_loose=is_loose)
    limit = ITEM_WORDS if slot == "items" else len(text)
    # One thing is not several.
    if slot == "thing" and pack.list_join.search(text):
        return None
    return _phrase(pack, text, limit=limit)


def _without_opening(pack: Pack, item: str) -> str:
    first, _, rest = item.partition(" ")
    return rest if rest and first.lower() in pack.item_openings else item


def object_slot(groups: Mapping[str, str]) -> str | None:
    """The slot of a match that holds the object of the fact."""
    return next((slot for slot in OBJECT_SLOTS if slot in groups), None)


def first_name(pack: Pack, text: str) -> str | None:
    """The name with which ``text`` begins, where more words may follow: "Anna works"."""
    words = text.split()
    lowered = words[0].lower().rstrip(".")
    for count in range(len(words), 0, -1):
        hit = name(pack, " ".join(words[:count]), is_loose=False)
        if hit is not None and (count > 1 or lowered not in pack.titles):
            return hit
    return None


def name(pack: Pack, text: str, *, is_loose: bool) -> str | None:
    """A name: words with capitals, and particles between them. Without capitals a single word."""
    words = _without_article(pack, text.split())
    lowered = [word.lower() for word in words]
    if not words or not pack.not_in_names.isdisjoint(lowered) or _is_doubtful(pack, lowered):
        return None
    # "Acme from 1977 to 2001"
    if len(words) > 1 and any(len(word) == 4 and word.isdigit() for word in words):
        return None
    if is_loose:
        # "a workshop" is no name.
        has_article = len(words) < len(text.split())
        # "san sebastián", but not two words of which the second may be anything.
        is_run = pack.name_starts.issuperset(lowered[:-1])
        is_word = all(len(word) > 1 and word[0].isalpha() for word in words)
        is_name = is_run and is_word and not has_article and lowered[-1] not in pack.not_last
        return " ".join(map(str.capitalize, words)) if is_name else None
    if words[0][0].isdigit() or (lowered[0] in pack.particles and words[0].islower()):
        return None
    for word, lower in zip(words, lowered, strict=True):
        is_small = lower in pack.particles or lower.rstrip(".") in pack.titles
        if not (word[0].isupper() or word[0].isdigit() or is_small):
            return None
    return " ".join(words) if lowered[-1] not in pack.particles else None


def _job(pack: Pack, text: str, *, is_loose: bool) -> str | None:
    if pack.list_join.search(text):
        return None
    words = text.split()
    # Where nouns have capitals, one without is none.
    if pack.file.capital_nouns and not is_loose and not words[-1][0].isupper():
        return None
    return _phrase(pack, text, limit=JOB_WORDS)


def _phrase(pack: Pack, text: str, *, limit: int) -> str | None:
    words = _without_article(pack, text.split())
    lowered = [word.lower().strip(",") for word in words]
    if not words or len(words) > limit or _is_doubtful(pack, lowered):
        return None
    # "In the 2" was cut at the dot of an ordinal number.
    is_cut = lowered[-1] in pack.not_last or (
        len(words) > 1 and lowered[-1].isdigit() and len(lowered[-1]) < 3
    )
    return None if is_cut or not text[0].isalnum() else " ".join(words)


def _is_doubtful(pack: Pack, words: Sequence[str]) -> bool:
    # Of "j'apporte" the pronoun tells.
    heads = (word.partition("'")[0] + "'" for word in words if "'" in word)
    return not pack.not_in_objects.isdisjoint([*words, *heads])


def _without_article(pack: Pack, words: Sequence[str]) -> Sequence[str]:
    # With a capital it is part of a title: "La Grande Vadrouille".
    if len(words) > 1 and words[0].islower() and words[0] in pack.articles:
        words = words[1:]
    # "l'eczéma": an article without a blank.
    head, apostrophe, rest = words[0].partition("'")
    if rest and head.lower() + apostrophe in pack.articles:
        words = [rest, *words[1:]]
    return words
