# ruff: noqa: E501 (a pattern stays in one piece)
"""Entity candidates of a text: precision first, and never a word that only opens a sentence.

A candidate is a capitalised name in mid-sentence of two words or more, a name after a cue ("with", "work at",
"moved to"), or a known label. The type is a guess from cues; a name without one stays ``thing``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

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
        *(month.lower() for month in MONTHS),
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
_PERSON_AFTER = re.compile(r" and me\b|'s (?:birthday|wedding|house|place|apartment|mom|dad|wife|husband)\b")
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


def mentions_of(text: str, *, people: Iterable[str] = (), known: Sequence[str] = ()) -> tuple[Mention, ...]:
    """Entities ``text`` talks about, each once, in the order they appear.

    ``people`` are names of the speakers. ``known`` are labels of the scope's entities, as ``label`` or
    ``type:label``; they are found whatever their place in the sentence.
    """
    known_types = {label.lower(): (kind, label) for kind, label in map(_known, known)}
    speakers = {name.lower() for name in people}
    found: dict[str, Mention] = {}
    for match in _RUN.finditer(text):
        for label, start in _labels(text, match):
            mention = _mention(text, label, start, speakers, known_types)
            if mention is not None:
                found.setdefault(mention.label.lower(), mention)
    lowered = text.lower()
    for key, (kind, label) in known_types.items():
        if key not in found and key in lowered and re.search(rf"(?<!\w){re.escape(key)}(?!\w)", lowered):
            found[key] = Mention(kind or "thing", label)
    return tuple(found.values())


def _known(label: str) -> tuple[str, str]:
    kind, colon, rest = label.partition(":")
    return (kind, rest) if colon and kind in ENTITY_TYPES else ("", label)


def _labels(text: str, match: re.Match[str]) -> Iterable[tuple[str, int]]:
    """The run without words that are no names; cut at "and", which joins two names."""
    start = match.start()
    for part in match[0].split(" and "):
        tokens, offset = part.split(" "), start
        start += len(part) + len(" and ")
        while tokens and (tokens[0].lower().removesuffix("'s") in _NOT_NAMES or tokens[0].islower()):
            offset += len(tokens.pop(0)) + 1
        while tokens and (tokens[-1].lower().removesuffix("'s") in _NOT_NAMES or tokens[-1].islower()):
            tokens.pop()
        if tokens and len(tokens[0]) > 1 and tokens[0][0].isupper():
            yield " ".join(tokens).removesuffix("'s").rstrip("'-"), offset


def _mention(
    text: str, label: str, start: int, speakers: set[str], known: dict[str, tuple[str, str]]
) -> Mention | None:
    key = label.lower()
    if key in known:
        kind, shown = known[key]
        return Mention(kind or guess_type(text, label, start) or "thing", shown)
    if key in speakers:
        return Mention("person", label)
    if _opens_sentence(text, start) or (label.isupper() and len(label) > 5):
        return None
    kind = guess_type(text, label, start)
    if not kind and " " in label:
        kind = "thing"
    return Mention(kind, label) if kind else None


def _opens_sentence(text: str, start: int) -> bool:
    before = text[max(0, start - 4) : start].rstrip(" \"'(*-_")
    return (
        not before
        or before[-1] in ".!?:;\n\u2026>"
        or (not before[-1].isascii() and not before[-1].isalnum())
    )


def guess_type(text: str, label: str, start: int) -> str:
    """person, place or org by the words in and around the name at ``start``; "" when nothing tells."""
    before, after = text[max(0, start - 40) : start], text[start + len(label) : start + len(label) + 16]
    if _ORG_WORD.search(label):
        return "org"
    if _PLACE_WORD.search(label):
        return "place"
    if _TITLED.search(before) or _PERSON_BEFORE.search(before) or _PERSON_AFTER.match(after):
        return "person"
    if _ORG_BEFORE.search(before):
        return "org"
    return "place" if _PLACE_BEFORE.search(before) else ""


def is_name(word: str) -> bool:
    """Whether a capitalised word can be a name: not a weekday, language, title or word that opens sentences."""
    return len(word) > 1 and word[0].isupper() and word.lower() not in _NOT_NAMES
