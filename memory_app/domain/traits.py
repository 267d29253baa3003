"""Traits: what sort of thing a text says, told from its words, and which sort a query is after.

Similar words are not an answer: "how many" is answered by a number, "when" by a time, and how somebody wants things
done is told once and meant for every question after it. All of it is pure, and knows English words; a text in another
language has the traits that digits and question marks show.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import IntFlag
from functools import cache

from memory_app.domain.text import asks, prose

TOLD_CHARS = 1_500
"""Characters in which a quantity or a time is looked for: some number stands in every long text."""


class Trait(IntFlag):
    """Bits of the column ``traits``; a value is part of the database and must not change."""

    ASKS = 1
    """It ends by asking something."""
    STANDING = 2
    """The user says how things are to be done from now on ("always name the version when I ask")."""
    PREFERENCE = 4
    """The user says what they prefer."""
    QUANTITY = 8
    """It states a number."""
    MOMENT = 16
    """It names a time: a date, a weekday, "last week"."""


NONE = Trait(0)

SIGNALS = {
    Trait.ASKS: "asks",
    Trait.STANDING: "standing",
    Trait.PREFERENCE: "preference",
    Trait.QUANTITY: "quantity",
    Trait.MOMENT: "moment",
}
"""What a trait is called among the signals of a candidate."""

ON_DEMAND = (Trait.PREFERENCE, Trait.QUANTITY, Trait.MOMENT)
"""What weighs only where the query is after it, and all that a memory may have: it never asks, and says what holds, not
what is to be done."""

# --- of a text ----------------------------------------------------------------------------------------------

_ORDERS = (
    "add|address|adjust|answer|ask|assume|avoid|begin|call|check|cite|combine|compare|confirm|convert|describe|draw|end|"
    "ensure|explain|follow|format|give|highlight|include|keep|label|limit|list|make sure|mention|name|note|offer|omit|"
    "point out|present|provide|put|quote|recommend|refer|remind|reply|report|respond|return|round|separate|show|sign|"
    "skip|speak|spell|state|suggest|summari[sz]e|tell|translate|use|warn|write"
)
"""What somebody can be told to do for another in a conversation. "Never give up" is said to cheer."""

# Runs of blanks are bounded: a text of nothing but line ends must not be looked through once for each of them.
_STANDING = re.compile(
    r"(?:^|[.!?:;\n][ \t]{0,3}|\b(?:please|to),?[ \t]{1,3})(?:always|never|don['’]t ever) (?:please )?"
    rf"(?:{_ORDERS})\b(?! up\b)"
    r"|\b(?:from now on|in (?:the )?future|going forward|whenever i ask|every time i ask|each time i ask)\b"
    rf"[^.!?\n]{{0,60}}?,?[ \t]{{0,3}}(?:please|{_ORDERS}|i want you)\b",
    re.IGNORECASE,
)
_PREFERENCE = re.compile(
    r"\bi(?:['’]d| would)?(?: really| much)? prefer\b|\bmy preference\b|\bi(?:['’]d| would) rather\b",
    re.IGNORECASE,
)
_QUANTITY = re.compile(
    r"\d|\b(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|dozen|hundred|thousand|twice|half)\b",
    re.IGNORECASE,
)
_WEEKDAY = r"(?:mon|tues|wednes|thurs|fri|satur|sun)day"
_SEASON = "summer|winter|spring|fall|autumn"
_MOMENT = re.compile(
    rf"\b(?:yesterday|today|tonight|tomorrow|ago|weekend|recently|since|{_WEEKDAY}"
    rf"|(?:last|next) (?:\w+ )?(?:night|week|month|year|{_SEASON})"
    rf"|this (?:week|month|year|morning|{_SEASON})"
    r"|january|february|march|april|june|july|august|september|october|november|december"
    r"|for (?:\w+ )?(?:years|months|weeks|days)|(?:19|20)\d\d)\b|\b\d{1,2}:\d\d",
    re.IGNORECASE,
)


def traits_of(text: str, *, by_user: bool) -> Trait:
    """The traits of ``text``; only what the user says is an instruction or a preference of theirs."""
    told = prose(text)
    beginning = told[:TOLD_CHARS]
    found = NONE
    if asks(text):
        found |= Trait.ASKS
    if by_user and _STANDING.search(told):
        found |= Trait.STANDING
    if by_user and _PREFERENCE.search(told):
        found |= Trait.PREFERENCE
    if _QUANTITY.search(beginning):
        found |= Trait.QUANTITY
    if _MOMENT.search(beginning):
        found |= Trait.MOMENT
    return found


@cache
def shown(traits: int) -> Mapping[str, float]:
    """The signals of a row with these bits, 1 for each trait it has. Not to be changed: it is kept."""
    return {signal: 1.0 for trait, signal in SIGNALS.items() if traits & trait}


# --- of a query ---------------------------------------------------------------------------------------------

_WANTS_QUANTITY = re.compile(
    r"\bhow (?:many|much|long|often|old|far|big|fast|tall)\b"
    r"|\bwhat(?:['’]s| is| was| are| were)? (?:the |my |your |his |her |their )?(?:\w+ ){0,3}"
    r"(?:number|percentage|percent|average|total|quota|rate|score|price|cost|amount|budget|version|age|size|limit|ratio|"
    r"coverage|count)\b",
    re.IGNORECASE,
)
_WANTS_MOMENT = re.compile(
    r"\bwhen\b|\b(?:what|which) (?:day|date|month|year|time|week)\b|\bhow long\b|\bdeadline\b|\bbirthday\b"
    r"|\bhow (?:many|much) (?:days|weeks|months|years|hours|time)\b",
    re.IGNORECASE,
)
_WANTS_ADVICE = re.compile(
    r"\b(?:recommend|suggest|advise|advice|help me|should i|(?:can|could) (?:i|you)|would you|"
    r"how (?:can|should|could|would|do) i|walk me|guide me|what['’]s the best|ideas for|tips)\b",
    re.IGNORECASE,
)


def wanted(query: str) -> Trait:
    """The traits that an answer to ``query`` is likely to have: of quantity, moment and, for advice, preference."""
    found = NONE
    if _WANTS_QUANTITY.search(query):
        found |= Trait.QUANTITY
    if _WANTS_MOMENT.search(query):
        found |= Trait.MOMENT
    if _WANTS_ADVICE.search(query):
        found |= Trait.PREFERENCE
    return found
