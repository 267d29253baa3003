# ruff: noqa: E501 (a pattern stays in one piece)
"""The people and animals around the speaker: "my wife Sara", "Sara is my wife", "my dog's name is Rex"."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from memory_app.extraction.rules import words
from memory_app.extraction.rules.names import NAME, is_name

_KIN = "|".join(sorted({*words.KIN, *words.PLURAL_KIN, *words.PETS}, key=len, reverse=True))
_QUALITY = rf"(?:(?P<quality>{words.KIN_QUALITIES}) )?"
_MY = rf"\b[Mm]y (?P<ex>ex[- ])?{_QUALITY}(?P<kin>{_KIN})"

_NAMED = re.compile(
    rf"{_MY}(?:(?: is|,)? (?:named|called) | is name is |'s? name is |s' names are | names are |, (?={NAME},)| )"
    rf"(?P<name>{NAME})(?P<second>(?:,? (?:and|&) )(?P<other>{NAME}))?(?! and I\b)"
)
_NAME_FIRST = re.compile(rf"^(?P<name>{NAME}) (?:is|was) my (?P<ex>ex[- ])?{_QUALITY}(?P<kin>{_KIN})\b")
_SUBJECT = re.compile(
    rf"^[Mm]y (?P<ex>ex[- ])?{_QUALITY}(?P<kin>{_KIN}),? (?:(?P<name>{NAME}),? )?(?:(?:also|just|really|still|always) )?"
    r"(?P<verb>is|was|has|had|lives|works|likes|loves|hates|enjoys|plays|studies|speaks|moved|started|got|prefers|"
    r"turned|went|collects|bought|does|owns|runs|grew|graduated|used|adopted|passed|won|visited|became|wants|plans|teaches)\b"
    r"(?P<rest>.*)$"
)


@dataclass(frozen=True, slots=True)
class Relative:
    """Somebody of the speaker's: ``term`` as said ("older brother"), their ``relation`` and ``name``."""

    term: str
    relation: str
    name: str
    is_pet: bool


@dataclass(frozen=True, slots=True)
class AboutRelative:
    """A clause whose subject is a relative: ``clause`` says it in the first person, for the same rules."""

    term: str
    name: str | None
    verb: str
    rest: str


def relatives_of(sentence: str, *, not_named: Collection[str] = ()) -> Iterator[Relative]:
    """The named relatives and pets in ``sentence``; ``not_named`` are names of those who are spoken to."""
    if "my " not in sentence and "My " not in sentence:
        return
    for pattern in (_NAMED, _NAME_FIRST):
        for match in pattern.finditer(sentence):
            names = [match["name"], match["other"] if "other" in pattern.groupindex else None]
            if match["kin"] not in words.PLURAL_KIN and match["kin"] not in words.PETS:
                names = names[:1]
            for name in names:
                cleaned = (name or "").removesuffix("'s").strip("'-")
                if is_name(cleaned) and cleaned.lower() not in not_named:
                    yield _relative(match, cleaned)


def _relative(match: re.Match[str], name: str) -> Relative:
    kin = match["kin"].lower()
    is_pet = kin in words.PETS
    relation = "has_pet" if is_pet else words.KIN.get(kin) or words.PLURAL_KIN[kin]
    if match["ex"]:
        relation = f"ex_{relation}"
    quality = match["quality"] or ""
    singular = kin if kin in words.KIN else words.PLURAL_KIN.get(kin, _singular(kin))
    return Relative(
        " ".join(filter(None, [(match["ex"] or "").strip(" -"), quality, singular])), relation, name, is_pet
    )


def _singular(pet: str) -> str:
    if pet.endswith("ies"):
        return pet[:-3] + "y"
    return pet[:-1] if pet.endswith("s") else pet


def about_relative(clause: str) -> AboutRelative | None:
    """ "My sister Sara lives in Lyon" taken apart; None when the clause is about nobody of the speaker's."""
    match = _SUBJECT.match(clause)
    if match is None or match["kin"] in words.PLURAL_KIN:
        return None
    name = match["name"] if match["name"] and is_name(match["name"]) else None
    term = " ".join(filter(None, [(match["ex"] or "").strip(" -"), match["quality"], match["kin"]]))
    return AboutRelative(term, name, match["verb"], match["rest"].strip())
