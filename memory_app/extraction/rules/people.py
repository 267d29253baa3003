# ruff: noqa: E501 (a pattern stays in one piece)
"""Take a clause of English about somebody of the speaker's apart: "My sister Sara went to Lyon"."""

from __future__ import annotations

import re
from dataclasses import dataclass

from memory_app.extraction.rules import words
from memory_app.extraction.rules.names import NAME, is_name

# The longest first, or "son" would be read in "sons".
_KIN = "|".join(sorted({*words.KIN, *words.PLURAL_KIN, *words.PETS}, key=len, reverse=True))
_QUALITY = rf"(?:(?P<quality>{words.KIN_QUALITIES}) )?"
_SUBJECT = re.compile(
    rf"^[Mm]y (?P<ex>ex[- ])?{_QUALITY}(?P<kin>{_KIN}),? (?:(?P<name>{NAME}),? )?(?:(?:also|just|really|still|always) )?"
    r"(?P<verb>is|was|has|had|lives|works|likes|loves|hates|enjoys|plays|studies|speaks|moved|started|got|prefers|"
    r"turned|went|collects|bought|does|owns|runs|grew|graduated|used|adopted|passed|won|visited|became|wants|plans|teaches)\b"
    r"(?P<rest>.*)$"
)


@dataclass(frozen=True, slots=True)
class AboutRelative:
    """A clause whose subject is a relative: ``term`` and ``name`` are the subject, ``rest`` follows ``verb``."""

    term: str
    name: str | None
    verb: str
    rest: str


def _term(match: re.Match[str], kin: str) -> str:
    """Kin with what stands before it: "ex wife", "older brother"."""
    parts = ((match["ex"] or "").strip(" -"), match["quality"], kin)
    return " ".join(filter(None, parts))


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
