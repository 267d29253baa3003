# ruff: noqa: E501 (a pattern stays in one piece)
"""Find the entities that a text names; precision first, and never a word that only opens a sentence.

A candidate is a capitalised name in mid-sentence of two words or more, a name after a cue ("with", "work at",
"moved to"), or a known label. The type is a guess from cues; a name without one stays ``thing``.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping, Sequence
from itertools import chain, dropwhile

from memory_app.extraction.rules import words
from memory_app.language.calendar import MONTHS, WEEKDAY_NUMBERS
from memory_app.language.replies import ACKNOWLEDGEMENTS
from memory_app.records.records import ENTITY_TYPES, Mention

NAME = r"(?-i:[^\W\d_a-zß-öø-ÿ][\w'-]{0,30})"
"""One capitalised word of a name, also inside a pattern that ignores case."""

_RUN = re.compile(rf"(?<![\w'@#/]){NAME}(?: (?:(?:of|de|da|van|von|der|the|and) )?{NAME}){{0,4}}")
_NEVER_NAMES = (
    "i i'm i've i'll i'd im ive god lol omg btw fyi tv pc usa uk eu pm am ok mr mrs ms dr prof the this that "
    "it my we you he she they mom dad mum grandma grandpa christmas easter thanksgiving halloween internet "
    "xmas hanukkah ramadan covid lgbtq diy pov asap faq pdf api url ceo cto hr "
    "ai ml nlp vs rip wow yay ugh aww oh ah well and but so or if when what where who why how not no yes "
    "there here also just keep let love can can't do don't is are was were will would have has our your "
    "monday's in on at to for with from of by as an a"
)
_NOT_NAMES = frozenset(
    {
        *WEEKDAY_NUMBERS,
        *(f"{day}s" for day in WEEKDAY_NUMBERS),
        *map(str.lower, MONTHS),
        *words.DEMONYMS.split("|"),
        *words.LANGUAGES.split("|"),
        *ACKNOWLEDGEMENTS,
        *_NEVER_NAMES.split(),
    }
)
_PLACE_BEFORE = re.compile(
    r"\b(?:live|lives|lived|living|moved|moving|travel|travell?ed|travell?ing|going|go|flew|fly|flying|trip|based|born|went|been|visit(?:ed|ing)?|"
    r"vacation|holiday|grew up|come|came|stay(?:ed|ing)?)(?: (?:back|over|down|up))? (?:in|to|from|near|around)? ?(?:the )?$|"
    r"\b(?:am|originally|is) from $|\bcity of $|\bvisit(?:ed|ing)? $",
    re.IGNORECASE,
)
_ORG_BEFORE = re.compile(
    r"\b(?:work(?:s|ed|ing)? (?:at|for|with)|job at|interned at|intern at|hired by|employed (?:by|at)|position at|offer from|"
    r"joined|joining|"
    r"(?:engineer|developer|manager|nurse|designer|analyst|consultant|teacher|researcher|scientist) (?:at|for)) $",
    re.IGNORECASE,
)
_PERSON_BEFORE = re.compile(
    r"\b(?:with|met|told|called|named|name is|marry|married to|engaged to|dating|"
    r"my (?:[\w-]+ )?(?:" + "|".join(words.KIN) + r"),? (?:is )?)(?: )?$",
    re.IGNORECASE,
)
_PERSON_AFTER = re.compile(
    r"^(?: and me\b|'s (?:birthday|wedding|house|place|apartment|mom|dad|wife|husband)\b)"
)
_ORG_WORD = re.compile(
    r"\b(?:University|College|School|Academy|Institute|Inc|Corp|Corporation|Company|Ltd|GmbH|LLC|Bank|Hospital|Clinic|"
    r"Foundation|Association|Society|Club|Church|Agency|Ministry|Committee|Group|Studios?|Labs?|Airlines?|Orchestra)\b"
)
_PLACE_WORD = re.compile(
    r"\b(?:Street|Avenue|Road|Park|Lake|Mount|Mountains?|Beach|City|River|Island|Islands|Valley|Forest|Bay|Canyon|Square|"
    r"Bridge|Castle|Museum|Airport|Station|Falls|Desert|Coast|County|Village|Town|North|South|West|East|New York|San \w+|"
    r"Los \w+|Santa \w+|Saint \w+)\b"
)
_TITLED = re.compile(r"\b(?:Mr|Mrs|Ms|Dr|Prof|Uncle|Aunt|Grandma|Grandpa)\.? $")

# In this order: a word of the name itself says more than what stands before it.
_CUES = (
    ("org", "name", _ORG_WORD),
    ("place", "name", _PLACE_WORD),
    ("person", "before", _TITLED),
    ("person", "before", _PERSON_BEFORE),
    ("person", "after", _PERSON_AFTER),
    ("org", "before", _ORG_BEFORE),
    ("place", "before", _PLACE_BEFORE),
)
"""Type of an entity, where its cue stands, and the cue."""

_CHARACTERS_BEFORE = 40
_CHARACTERS_AFTER = 16
"""How far from a name its cues stand: the longest phrase of `_PLACE_BEFORE`, and of `_PERSON_AFTER`."""

_LONGEST_ACRONYM = 5
"""Longer words in capitals are shouted."""

_SENTENCE_ENDS = ".!?:;\n\u2026>"

TypedLabels = Mapping[str, tuple[str, str]]
"""Label in lower case to its type ("" for none) and its spelling."""


def mentions_of(text: str, *, people: Iterable[str] = (), labels: Sequence[str] = ()) -> tuple[Mention, ...]:
    """Return the entities that ``text`` names, each once, in the order they appear.

    ``people`` are names of the speakers. ``labels`` are those of the scope's entities, as ``label`` or
    ``type:label``; they are recognised whatever their place in the sentence.
    """
    typed_labels = dict(map(_typed_label, labels))
    speakers = {name.lower() for name in people}
    mentions: dict[str, Mention] = {}
    # The names as they stand in the text first: they come in its order, and with cues for their types.
    for label, start in chain.from_iterable(map(_labels, _RUN.finditer(text))):
        mention = _mention(
            text,
            label,
            start=start,
            speakers=speakers,
            typed_labels=typed_labels,
        )
        if mention is not None:
            mentions.setdefault(mention.label.lower(), mention)
    lowered = text.lower()
    for key, (kind, label) in typed_labels.items():
        if key not in mentions and _holds_word(lowered, key):
            mentions[key] = Mention(kind or "thing", label)
    return tuple(mentions.values())


def _typed_label(text: str) -> tuple[str, tuple[str, str]]:
    kind, colon, label = text.partition(":")
    # "Mission: Impossible" is a label with a colon, and "Mission" is no type.
    if colon and kind in ENTITY_TYPES:
        return label.lower(), (kind, label)
    return text.lower(), ("", text)


def _holds_word(text: str, word: str) -> bool:
    # The plain search first: a scope may have hundreds of labels, and a pattern for each would be compiled.
    if word not in text:
        return False
    return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text) is not None


def _labels(match: re.Match[str]) -> Iterable[tuple[str, int]]:
    """The names in a run of capitalised words, each with its start; "and" joins two names."""
    start = match.start()
    for part in match[0].split(" and "):
        tail = _from_name_on(part.split(" "))
        tokens = _from_name_on(tail[::-1])[::-1]
        if tokens and _begins_name(tokens[0]):
            # With its start, since the type of a name is guessed from the words before it.
            skipped = len(part) - len(" ".join(tail))
            yield " ".join(tokens).removesuffix("'s").rstrip("'-"), start + skipped
        start += len(part) + len(" and ")


def _from_name_on(tokens: Iterable[str]) -> list[str]:
    return list(dropwhile(_is_no_part_of_name, tokens))


def _is_no_part_of_name(token: str) -> bool:
    return token.islower() or token.lower().removesuffix("'s") in _NOT_NAMES


def _begins_name(token: str) -> bool:
    # Letters without case, as in Chinese, pass the pattern of names but are no capitals.
    return len(token) > 1 and token[0].isupper()


def _mention(
    text: str, label: str, *, start: int, speakers: Container[str], typed_labels: TypedLabels
) -> Mention | None:
    key = label.lower()
    # A known label comes before all doubts: it may open a sentence.
    if key in typed_labels:
        kind, spelling = typed_labels[key]
        return Mention(kind or guess_type(text, label, start=start, default="thing"), spelling)
    if key in speakers:
        return Mention("person", label)
    is_shouted = label.isupper() and len(label) > _LONGEST_ACRONYM
    # Every word has a capital at the start of a sentence, so that there it says nothing.
    if is_shouted or _opens_sentence(text, start):
        return None
    # Two capitalised words in mid-sentence are a name even where no cue tells of what.
    kind = guess_type(text, label, start=start, default="thing" if " " in label else "")
    return Mention(kind, label) if kind else None


def _opens_sentence(text: str, start: int) -> bool:
    # Behind the end of the sentence before may stand a quote, a bullet or a bracket.
    before = text[max(0, start - 4) : start].rstrip(" \"'(*-_")
    if not before or before[-1] in _SENTENCE_ENDS:
        return True
    # Signs of other scripts, and emoji, end a sentence as well.
    return not before[-1].isascii() and not before[-1].isalnum()


def guess_type(text: str, label: str, *, start: int, default: str) -> str:
    """Return person, place or org by the words in and around the name at ``start``, or else ``default``."""
    end = start + len(label)
    surroundings = {
        "name": label,
        "before": text[max(0, start - _CHARACTERS_BEFORE) : start],
        "after": text[end : end + _CHARACTERS_AFTER],
    }
    kinds = (kind for kind, where, cue in _CUES if cue.search(surroundings[where]))
    return next(kinds, default)


def is_name(word: str) -> bool:
    """Whether a capitalised word can be a name: not a weekday, language, title or word that opens sentences."""
    return _begins_name(word) and word.lower() not in _NOT_NAMES
