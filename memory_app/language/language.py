"""What the data module of a language holds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field


def words_in(text: str) -> frozenset[str]:
    """The words of ``text``, which blanks set apart; so that a table reads like a text."""
    return frozenset(text.split())


def first_words(rows: Iterable[str]) -> tuple[str, ...]:
    """The first word of each row."""
    return tuple(row.split()[0] for row in rows)


def row_numbers(rows: Iterable[str]) -> dict[str, int]:
    """Each word of a row, in lower case, to the row's number, from 1."""
    numbers: dict[str, int] = {}
    for number, row in enumerate(rows, 1):
        numbers |= dict.fromkeys(row.lower().split(), number)
    return numbers


def numbered(words: Iterable[str], *, first: int, step: float = 1.0) -> dict[str, float]:
    """Each word to its value: ``first`` times ``step``, then one ``step`` more for each."""
    return {word: step * number for number, word in enumerate(words, first)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Language:
    """The words of one language, in lower case unless a field says otherwise. A field left out adds nothing.

    A row is a text of words with the same meaning. The fields that end in ``_patterns`` hold alternatives of a regular
    expression; `table.alternatives` joins those of all languages.
    """

    name: str

    # --- words that carry little meaning

    stop_words: frozenset[str] = frozenset()
    """Words that say nothing about the subject. Names, months and countries that look alike do not belong here."""
    first_person: frozenset[str] = frozenset()
    second_person: frozenset[str] = frozenset()
    common: frozenset[str] = frozenset()
    """Words besides the stop words whose presence alone does not make two statements differ."""
    directions: frozenset[str] = frozenset()
    """Words that give the order of the others a meaning: tea over coffee, from Rome to Oslo."""
    joiners: frozenset[str] = frozenset()
    """Words and signs between which the order is free: tea and coffee."""

    # --- dates

    months: tuple[str, ...] = ()
    """Twelve rows: the full name as it is written, then other spellings and forms."""
    ambiguous_months: frozenset[str] = frozenset()
    """Names of months that are also verbs or nouns: alone and in lower case they name no date."""
    weekdays: tuple[str, ...] = ()
    """Seven rows from Monday: the full name as it is written, then other forms."""
    weekday_abbreviations: Mapping[str, int] = field(default_factory=dict)
    """Abbreviation to number of the weekday, 0 for Monday. Only the extraction rules read them."""
    seasons: Mapping[str, int] = field(default_factory=dict)
    """Name to first month, on the northern half of the earth."""
    relative_days: frozenset[str] = frozenset()
    """Words for a day or a time of day that are compared as they stand: yesterday, noon."""

    # --- numbers

    numbers: Mapping[str, float] = field(default_factory=dict)
    """Number words to their value, ordinals and multiples ("dozen", "twice") included."""
    number_signs: frozenset[str] = frozenset()
    """Characters that are numbers, of scripts that do not set words apart."""
    quantities: tuple[str, ...] = ()
    """Number words that show that a text states a quantity. "One" and ordinals show nothing."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """What may stand before a unit of time to its number, "a couple of" included."""
    units: tuple[str, ...] = ()
    """Rows of spellings of one unit; the first word or sign stands for the unit."""

    # --- words that turn a meaning round

    negations: frozenset[str] = frozenset()
    never: frozenset[str] = frozenset()
    ended_patterns: tuple[str, ...] = ()
    """Phrases that say that something was so and is over."""
    contracted_negations: frozenset[str] = frozenset()
    """Contractions written without their apostrophe."""
    negation_signs: frozenset[str] = frozenset()
    """Negations of scripts that do not set words apart; found anywhere in a text."""
    unreal: frozenset[str] = frozenset()
    """Words of what is not, or not yet, so."""
    family: tuple[str, ...] = ()
    """Rows of words for one relation between people."""
    opposites: tuple[str, ...] = ()
    """Groups of rows, separated by ``|``, that exclude each other. Words of one row mean the same."""
    synonyms: tuple[str, ...] = ()
    """Rows of words that mean the same and are in no other table."""

    # --- conversation

    acknowledgements: frozenset[str] = frozenset()
    """Words of a turn that says nothing: ok, thanks."""
    affirmations: frozenset[str] = frozenset()
    """Words with which somebody says yes."""
    question_patterns: tuple[str, ...] = ()
    """How a sentence without a question mark begins that asks something."""
    frame_openings: tuple[str, ...] = ()
    """Phrases before a statement that say nothing: "by the way"."""
    frame_endings: tuple[str, ...] = ()
    """Phrases after a statement, behind a comma, that say nothing: "you know"."""

    # --- what a text says, and what a query is after

    standing_patterns: tuple[str, ...] = ()
    """How somebody says how things are to be done from now on."""
    preference_patterns: tuple[str, ...] = ()
    health_patterns: tuple[str, ...] = ()
    """How words begin that tell of somebody's health, as alternatives behind the start of a word."""
    moment_patterns: tuple[str, ...] = ()
    """Whole words and phrases that name a time."""
    wants_quantity_patterns: tuple[str, ...] = ()
    wants_moment_patterns: tuple[str, ...] = ()
    wants_advice_patterns: tuple[str, ...] = ()
    wants_assistant_patterns: tuple[str, ...] = ()

    # --- secrets

    secret_names: tuple[str, ...] = ()
    """What is never remembered, by name: "api key". A sentence with one of them is left alone."""
    secret_places: tuple[str, ...] = ()
    """What follows such a name where only its place is told: "is under the"."""
