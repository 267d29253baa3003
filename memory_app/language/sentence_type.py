"""Find the traits of a text by its words, and the traits that an answer to a query should have.

Similar words are not an answer: "how many" is answered by a number, "when" by a time, and an instruction of the user
is given once and meant for every later question. All of it is pure, and knows the words of
`language.table`; a text in another language has the traits that digits and question marks show.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import IntFlag
from functools import cache

from memory_app.language.table import alternatives
from memory_app.language.text import FIRST_PERSON, SECOND_PERSON, asks, prose

EXAMINED_CHARS = 1_500
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
"""Name of each trait among the signals of a candidate."""

ON_DEMAND = (Trait.PREFERENCE, Trait.QUANTITY, Trait.MOMENT)
"""What weighs only where the query is after it, and all that a memory may have: it never asks, and says what holds, not
what is to be done."""

# --- of a text ----------------------------------------------------------------------------------------------

_OF_USER = {
    Trait.STANDING: re.compile(alternatives(lambda language: language.standing_patterns), re.IGNORECASE),
    Trait.PREFERENCE: re.compile(alternatives(lambda language: language.preference_patterns), re.IGNORECASE),
}
_QUANTITY = re.compile(rf"\d|\b(?:{alternatives(lambda language: language.quantities)})\b", re.IGNORECASE)
_MOMENT = re.compile(
    rf"\b(?:{alternatives(lambda language: language.moment_patterns)}|(?:19|20)\d\d)\b|\b\d{{1,2}}:\d\d",
    re.IGNORECASE,
)
_OF_ANYBODY = {Trait.QUANTITY: _QUANTITY, Trait.MOMENT: _MOMENT}


def traits_of(text: str, *, by_user: bool) -> Trait:
    """Return the traits of ``text``; only what the user says is an instruction or a preference of theirs."""
    # Blocks of code within a message say nothing about what its author wants.
    words = prose(text)
    traits = Trait.ASKS if asks(text) else NONE
    # An assistant that says "I would prefer" or "always check" speaks for nobody.
    if by_user:
        traits |= _matching(_OF_USER, words)
    return traits | _matching(_OF_ANYBODY, words[:EXAMINED_CHARS])


def _matching(patterns: Mapping[Trait, re.Pattern[str]], text: str) -> Trait:
    traits = NONE
    for trait, pattern in patterns.items():
        if pattern.search(text):
            traits |= trait
    return traits


ADDRESS_CHARS = 500
"""Characters in which it is looked who a text speaks of: this is done for every row of an answer."""

_PERSONS = re.compile(rf"\b(?:({'|'.join(sorted(SECOND_PERSON))})|{'|'.join(sorted(FIRST_PERSON))})\b")


def addressing(text: str) -> float:
    """How much ``text`` speaks of who is spoken to, rather than of who speaks: from 0 to below 1, in words of a known
    language. Praise, thanks and wishes do, and seldom tell anything."""
    # A word of the first person leaves the group empty.
    persons = _PERSONS.findall(text[:ADDRESS_CHARS].casefold())
    return (len(persons) - persons.count("")) / (len(persons) + 1)


@cache
def trait_signals(traits: int) -> Mapping[str, float]:
    """Return the signals of a row with these bits, 1 for each trait. Cached: the caller must not change the result."""
    return {signal: 1.0 for trait, signal in SIGNALS.items() if traits & trait}


# --- of a query ---------------------------------------------------------------------------------------------

_WANTS_QUANTITY = re.compile(alternatives(lambda language: language.wants_quantity_patterns), re.IGNORECASE)
_WANTS_MOMENT = re.compile(alternatives(lambda language: language.wants_moment_patterns), re.IGNORECASE)
_WANTS_ADVICE = re.compile(alternatives(lambda language: language.wants_advice_patterns), re.IGNORECASE)
_OF_QUERY = {
    Trait.QUANTITY: _WANTS_QUANTITY,
    Trait.MOMENT: _WANTS_MOMENT,
    # What suits somebody is answered by what they prefer.
    Trait.PREFERENCE: _WANTS_ADVICE,
}


def expected_traits(query: str) -> Trait:
    """The traits that an answer to ``query`` is likely to have: of quantity, moment and, for advice, preference."""
    return _matching(_OF_QUERY, query)


_WANTS_ASSISTANT = re.compile(alternatives(lambda language: language.wants_assistant_patterns), re.IGNORECASE)


def asks_assistant(query: str) -> bool:
    """Return whether ``query`` is after something that the assistant said ("what did you recommend")."""
    return _WANTS_ASSISTANT.search(prose(query)) is not None
