"""What the file of a language pack holds. Unknown fields are refused, so that a misspelt one is never without effect.

A pack is TOML. Its patterns are written in the notation of `notation`. The file of German explains the fields where it
uses them; `docs/languages.md` is the guide for translators.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from memory_app.extraction.rules.patterns import When


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class Stops(_Part):
    """Words after which nothing is read: of the whole turn, of the sentence, or of the sentence from there on."""

    turn: tuple[str, ...] = ()
    laughs: tuple[str, ...] = ()
    """How people write that they laugh: of such a sentence only what nobody jokes about is read."""
    private: tuple[str, ...] = ()
    """At the beginning of a sentence: the person asks that what the turn says is not kept."""
    sentence: tuple[str, ...] = ()
    rest: tuple[str, ...] = ()
    tail: tuple[str, ...] = ()
    """At the end of a sentence, of which nothing is read then: ", he said"."""
    passing: tuple[str, ...] = ()
    """In a clause with one of these, nobody is read in passing: "my cat Lumpi died"."""


class ShortVerbWords(_Part):
    """A verb that is written as "'s" behind somebody: of "mum's 62" the "is"."""

    who: str
    verb: str
    before: tuple[str, ...] = ()
    """What follows the verb, and shows that the letter is no possession: called, allergic."""
    last: tuple[str, ...] = ()
    """What shows it only as the end of a clause: a number."""


class AsideWords(_Part):
    """What stands in commas or brackets behind somebody, and is read as a sentence: "my daughter Ella, 9, …"."""

    who: str
    what: str
    says: str
    """The sentence, with {who} and the slots."""
    is_clause: bool = False
    """No comma or bracket has to stand before it: "who is 13"."""
    behind: str | None = None
    """Somebody in the plural whom each of a list belongs to, the kin of whom stands in a slot: "three kids"."""


class LeftOutWords(_Part):
    """A subject that is left out at the beginning of a turn: before "been at Acme" it is "I have"."""

    subject: str
    before: tuple[str, ...]


class ClauseWords(_Part):
    """How sentences are cut into clauses, and what is taken off a clause before its patterns are tried."""

    joins: tuple[str, ...]
    """Words between two clauses: and, but, because."""
    starts: tuple[str, ...]
    """With what a clause begins that stands behind one of ``joins``."""
    questions: tuple[str, ...]
    """How a question begins; of a sentence with a question mark, what stands before it is read."""
    asks: tuple[str, ...] = ()
    """How a clause begins that asks only where the sentence has a question mark."""
    breaks: tuple[str, ...] = ()
    """How a question begins that follows a statement without a sign between them."""
    cuts: tuple[str, ...] = ()
    """Words behind which a name, a place or a number is whole, whatever follows: with, who, where."""
    openings: tuple[str, ...] = ()
    fillers: tuple[str, ...] = ()
    """Words that change nothing, wherever they stand."""
    tails: tuple[str, ...] = ()
    """What may stand behind a whole statement and is left out."""
    beside: tuple[str, ...] = ()
    """Words that say that something holds beside others of its kind: "part-time", "also"."""
    day_parts: tuple[str, ...] = ()
    """Parts of the day or week behind a statement, which say the same: "in the mornings"."""
    changes: tuple[str, ...] = ()
    """What says that something takes the place of what was before, whatever else is said: "now", "instead"."""
    ends: tuple[str, ...] = ()
    """Words behind which any object is whole: so, because."""
    shared_verbs: tuple[str, ...] = ()
    """Verbs that are the same of the speaker and of somebody else, as a clause without a subject begins: "mag"."""
    speaker_words: tuple[str, ...] = ()
    """Words of a clause about the speaker, who goes on in a clause that begins with one of ``shared_verbs``."""
    inverted: tuple[str, ...] = ()
    """Subjects that change places with the verb before them ("wohne ich" is read as "ich wohne")."""
    short_verbs: tuple[ShortVerbWords, ...] = ()
    asides: tuple[AsideWords, ...] = ()
    left_out: tuple[LeftOutWords, ...] = ()
    abbreviations: tuple[str, ...] = ()
    acronyms: tuple[str, ...] = ()
    """Rows of words that everybody writes in capitals, so that they shout nothing: "I have ADHD"."""
    labels: tuple[str, ...] = ()
    """What may stand before a colon at the beginning of a line without being the speaker of a transcript."""


class Corrections(_Part):
    """How an author takes back what they said."""

    announced: tuple[str, ...]
    """Words before a correction: no wait, I meant."""
    instead: str
    """What stands behind one and names the mistake, in the slot <wrong>: ", not Acme"."""
    right: tuple[str, ...]
    """A correction that is no sentence, with the slot <right> and perhaps <wrong>: "it's Apex", "not Acme but Apex"."""
    alone: tuple[str, ...] = ()
    """One that nothing has to announce, because of a word in it: "46 actually"."""


class Requests(_Part):
    """How an author asks for something to be remembered, before what that is: "remember that"."""

    openings: tuple[str, ...] = ()
    that: str | None = None
    """The word before what is to be remembered: that."""
    verbs: tuple[str, ...] = ()
    """Words that show a sentence: "remember the key is under the pot", and not "remember the milk"."""
    not_about: tuple[str, ...] = ()
    """Words with which a request points at the talk: you, what."""
    says: str | None = None
    """How a request is kept that no rule reads, with {text}; without it such a request is not kept."""


class DateTexts(_Part):
    """How a date is written in a memory: {day} is an ISO date, {month} its month in words, {year} its year.

    Of a week {day} is its Monday. {until} is the last of several days.
    """

    day: str
    days: str
    week: str
    month: str
    year: str
    since_day: str
    since_days: str
    since_week: str
    since_month: str
    since_year: str


class DateRule(_Part):
    """Words for a time: a date in the slots of ``text``, or what lies ``days`` or ``step`` units away."""

    text: str
    days: int | None = None
    unit: Literal["day", "week", "month", "year"] | None = None
    step: int | None = None
    since: bool = False
    """It tells since when something is so; other dates tell when something was."""


class Units(_Part):
    """Words for units of time."""

    day: tuple[str, ...] = ()
    week: tuple[str, ...] = ()
    month: tuple[str, ...] = ()
    year: tuple[str, ...] = ()


class DateWords(_Part):
    months: tuple[str, ...] = Field(min_length=12, max_length=12)
    """Twelve rows of spellings, January first."""
    weekdays: tuple[str, ...] = Field((), max_length=7)
    units: Units = Units()
    rules: tuple[DateRule, ...] = Field((), alias="rule")
    in_words: DateTexts | None = None
    """Without it a date stands in brackets, as `says_since` and `says_on` write it."""
    says_since: str
    """How a date is written in a memory that has held since then, with {date}."""
    says_on: str


class People(_Part):
    """Who belongs to the speaker."""

    kin: dict[str, tuple[str, ...]]
    """The relation, which is in English, to the words for it: {sister = ["schwester"]}."""
    pets: tuple[str, ...]
    bare: tuple[str, ...] = ()
    """Words for somebody of the speaker's that need no "my": mum, grandad."""
    own: str = ""
    """The word before those that need one: my."""
    subject: str
    """The pattern of "my sister Anna", with the slots <kin> and <called>; rules use it as <they>."""
    stand_in: str | None = None
    """Somebody with {name} of whom {words} are said, as a clause that the rules read: "My friend {name} {words}"."""
    name_behind: tuple[str, ...] = ()
    """Verbs behind which the name of somebody known may stand: "murió Toby"."""
    pronouns: dict[str, tuple[str, ...]] = {}
    """Words for somebody told of just before, and the relations that only this one may mean: {she = ["sister"]}."""
    of_user: str
    """How somebody without a name is written, with {term} and {user}."""


class PackRule(_Part):
    """One kind of statement: its patterns, and the fact they give.

    ``patterns`` are about the speaker, ``others`` about somebody of theirs (with the slot <they>). ``says`` is the
    statement without its subject; ``object`` that of the fact, a slot by default. ``when`` tells how a date counts.
    """

    relation: str
    patterns: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    with_capitals: tuple[str, ...] = ()
    """``patterns`` for authors who write names with capitals: elsewhere "I am starving" would be a name."""
    anywhere: tuple[str, ...] = ()
    """Patterns that are looked for in any clause, such as a relative named in passing."""
    says: str
    object: str = "{object}"
    kind: str = "fact"
    subtype: str | None = "fact"
    importance: int | None = Field(None, ge=1, le=10)
    confidence: float = Field(0.8, ge=0, le=1)
    entity: str | None = None
    when: When = When.STATE
    about: Literal["user", "called"] = "user"
    """Of whom ``patterns`` and ``anywhere`` tell: with "called", of who stands in the slot <called>."""
    also: bool = False
    """Read besides a rule that has read the clause already: "I work at Acme as a nurse" are two facts."""
    beside: bool = False
    """Though its relation holds one object at a time, it holds beside others where the clause says so."""
    unless: tuple[str, ...] = ()
    """Rows of words of which none may stand in the clause: "I am a terrible cook" tells no occupation."""
    needs_date: bool = False
    starts: bool = False
    """A date in the clause is when it began."""
    says_since: str | None = None
    """``says`` where the text tells since when: "has lived in {place}"."""
    past: bool = False
    """``says`` tells what happened at the date, and not what has been so since."""


class PackFile(_Part):
    language: str = Field(pattern=r"^[a-z]{2,3}$")
    name: str
    acknowledgements: tuple[str, ...]
    numbers: dict[int, tuple[str, ...]] = {}
    """Numbers to their words."""
    stop: Stops
    clause: ClauseWords
    contractions: dict[str, str] = {}
    """Words, in small letters, that are read as others: "i'm" as "I am"."""
    request: Requests = Requests()
    correction: Corrections
    people: People
    date: DateWords
    words: dict[str, tuple[str, ...]] = {}
    """Lists that patterns use as ``<name>``."""
    maps: dict[str, dict[str, tuple[str, ...]]] = {}
    """Lists whose words stand for something else in relation and object: {colour = ["farbe"]}."""
    capital_nouns: bool = False
    """Nouns begin with a capital, which is then no sign of a name."""
    list_joins: tuple[str, ...]
    """Words before the last item of a list: and, or."""
    verb_ending: str = ""
    """How words end that say what somebody does, where they may stand in a list: ing."""
    shared_heads: tuple[str, ...] = ()
    """Nouns of which a list has several kinds: of "action and horror movies" neither is said alone."""
    item_openings: tuple[str, ...] = ()
    """Prepositions that may be said again before a later item of a list: "to nuts and to milk"."""
    particles: tuple[str, ...] = ()
    """Words in small letters inside names: von, de la."""
    name_starts: tuple[str, ...] = ()
    """Words with which names of several words begin, for authors who write no capitals: san, new, bad."""
    titles: tuple[str, ...] = ()
    """Words before a surname: Mrs, Dr."""
    articles: tuple[str, ...] = ()
    """Left out at the beginning of an object."""
    not_in_names: tuple[str, ...] = ()
    not_in_objects: tuple[str, ...] = ()
    """Words that point at the talk or belong to another clause; an object with one of them is not whole."""
    reported: dict[str, str] = {}
    """Words, in small letters, for the speaker inside an object, and how another tells of them: my, their."""
    not_first: tuple[str, ...] = ()
    """Words that point at the talk where an object begins with them: "I love the colours"."""
    half: str | None = None
    """A pattern at the end of a part behind which a comma cuts an object: "a safe", of "a safe, quiet place"."""
    not_last: tuple[str, ...] = ()
    """Words after which an object goes on; one that ends with them is cut."""
    rules: tuple[PackRule, ...] = Field(alias="rule", min_length=1)
