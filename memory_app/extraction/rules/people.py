# ruff: noqa: E501 (a pattern stays in one piece)
"""Find the people and animals of the speaker: "my wife Sara", "Sara is my wife", "my dog's name is Rex"."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import chain

from memory_app.extraction.rules import words
from memory_app.extraction.rules.names import NAME, is_name

_ONE_OF_KIN = {**words.PLURAL_KIN, **words.KIN}
"""Word for a relative, or for several, to the relation of one of them."""

_MAY_BE_SEVERAL = words.PLURAL_KIN.keys() | words.PETS

# The longest first, or "son" would be read in "sons".
_KIN = "|".join(sorted({*words.KIN, *words.PLURAL_KIN, *words.PETS}, key=len, reverse=True))
_ABOUT_OWN = re.compile("[Mm]y ")
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
    """A person or pet of the speaker: ``term`` as in the text ("older brother"), ``relation`` and ``name``."""

    term: str
    relation: str
    name: str
    is_pet: bool


@dataclass(frozen=True, slots=True)
class AboutRelative:
    """A clause whose subject is a relative: ``term`` and ``name`` are the subject, ``rest`` follows ``verb``."""

    term: str
    name: str | None
    verb: str
    rest: str


def relatives_of(sentence: str, *, not_named: Collection[str] = ()) -> Iterator[Relative]:
    """Yield the named relatives and pets in ``sentence``.

    ``not_named`` are names in lower case of those who take part: "my friend, Ann" may speak to Ann.
    """
    # Most sentences speak of nobody's relatives, and the patterns are long.
    if not _ABOUT_OWN.search(sentence):
        return
    for match in chain(_NAMED.finditer(sentence), _NAME_FIRST.finditer(sentence)):
        for name in _names(match):
            if is_name(name) and name.lower() not in not_named:
                yield _relative(match, name)


def _names(match: re.Match[str]) -> Iterator[str]:
    """The names in a match of `_NAMED` or `_NAME_FIRST`."""
    names = [match["name"]]
    # In "my wife Sara and Tom" the second is somebody else; in "my brothers Sam and Tom" he is not.
    if match["kin"] in _MAY_BE_SEVERAL:
        # `_NAME_FIRST` has no such group.
        names.append(match.groupdict(default="").get("other", ""))
    for name in names:
        yield name.removesuffix("'s").strip("'-")


def _relative(match: re.Match[str], name: str) -> Relative:
    kin = match["kin"].lower()
    is_pet = kin in words.PETS
    relation = "has_pet" if is_pet else _ONE_OF_KIN[kin]
    # A relation of its own: who has an ex-wife is not married to her.
    if match["ex"]:
        relation = f"ex_{relation}"
    return Relative(
        term=_term(match, _singular(kin)),
        relation=relation,
        name=name,
        is_pet=is_pet,
    )


def _term(match: re.Match[str], kin: str) -> str:
    """Kin with what stands before it: "ex wife", "older brother"."""
    parts = ((match["ex"] or "").strip(" -"), match["quality"], kin)
    return " ".join(filter(None, parts))


def _singular(kin: str) -> str:
    if kin in words.KIN:
        return kin
    if kin in words.PLURAL_KIN:
        return words.PLURAL_KIN[kin]
    # The others are animals, of which several are written in the plural: "puppies", "dogs".
    if kin.endswith("ies"):
        return kin[:-3] + "y"
    return kin.removesuffix("s")


def about_relative(clause: str) -> AboutRelative | None:
    """Take "My sister Sara lives in Lyon" apart; None when the clause is about no relative of the speaker."""
    match = _SUBJECT.match(clause)
    # "My kids" are several, and a statement has one subject.
    if match is None or match["kin"] in words.PLURAL_KIN:
        return None
    # "My sister Monday has …": a capital alone makes no name.
    name = match["name"] or ""
    return AboutRelative(
        term=_term(match, match["kin"]),
        name=name if is_name(name) else None,
        verb=match["verb"],
        rest=match["rest"].strip(),
    )
