"""Traits: what sort of thing a text says, told from its words, and which sort a query is after.

Similar words are not an answer: "how many" is answered by a number, "when" by a time, and how somebody wants things
done is told once and meant for every question after it. All of it is pure, and knows the words of
`language.table`; a text in another language has the traits that digits and question marks show.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import IntFlag
from functools import cache

from memory_app.language.table import alternatives
from memory_app.language.text import asks, prose

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

_STANDING = re.compile(alternatives(lambda language: language.standing_patterns), re.IGNORECASE)
_PREFERENCE = re.compile(alternatives(lambda language: language.preference_patterns), re.IGNORECASE)
_QUANTITY = re.compile(rf"\d|\b(?:{alternatives(lambda language: language.quantities)})\b", re.IGNORECASE)
_MOMENT = re.compile(
    rf"\b(?:{alternatives(lambda language: language.moment_patterns)}|(?:19|20)\d\d)\b|\b\d{{1,2}}:\d\d",
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

_WANTS_QUANTITY = re.compile(alternatives(lambda language: language.wants_quantity_patterns), re.IGNORECASE)
_WANTS_MOMENT = re.compile(alternatives(lambda language: language.wants_moment_patterns), re.IGNORECASE)
_WANTS_ADVICE = re.compile(alternatives(lambda language: language.wants_advice_patterns), re.IGNORECASE)


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
