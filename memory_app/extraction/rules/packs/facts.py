"""Read the facts that a turn states, by the rules of a pack. Pure; whatever is doubtful gives nothing.

`clauses` cuts the turn, and leaves out what its author does not state; `clause_facts` reads each clause.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import partial
from itertools import chain

from memory_app.extraction.rules.packs import corrections, requests
from memory_app.extraction.rules.packs.clause_facts import (
    Author,
    in_passing,
    named_in,
    of_clause,
    of_cut_clause,
)
from memory_app.extraction.rules.packs.clauses import (
    Part,
    joined_parts,
    own_text,
    stated_parts,
    without_opening,
)
from memory_app.extraction.rules.packs.conversation import ALONE, Conversation, History
from memory_app.extraction.rules.packs.corrections import Correction
from memory_app.extraction.rules.packs.fact import Fact
from memory_app.extraction.rules.packs.laughter import is_no_joke, told_sentences
from memory_app.extraction.rules.packs.omissions import with_short_verbs, with_subject, without_asides
from memory_app.extraction.rules.packs.pack import Pack
from memory_app.extraction.rules.packs.persons import (
    Persons,
    begins_with_shared_verb,
    is_about_speaker,
    spelled_out,
    subject_of,
)

NOBODY = Persons()

NAME_WORDS = 3
"""Most words of a name with which a clause begins."""

_ROLE_PLAY = re.compile(r"\*[^*\n]{0,200}\w \w[^*\n]{0,200}\*")
_PRONOUN_I = re.compile(r"\bI\b")
_UPSIDE_DOWN = "\U0001f643"
"""The face of those who mean the opposite."""


@dataclass(frozen=True, slots=True)
class SentenceRead:
    """The facts of a sentence, and what it states besides that no rule read."""

    facts: Sequence[Fact]
    unread: str = ""
    persons: Persons = NOBODY
    mistake: str | None = None
    """The object that the sentence says was wrong."""
    is_laughed: bool = False


def read(
    pack: Pack,
    text: str,
    *,
    today: date,
    is_left_out: Callable[[str], bool],
    conversation: Conversation = ALONE,
) -> Iterator[Fact]:
    """The facts that ``text`` states, in order; a text that is not needed to its end is not read to its end.

    The other arguments are those of `read_sentences`.
    """
    sentences_read = read_sentences(
        pack, text, own_text(pack, text), today=today, is_left_out=is_left_out, conversation=conversation
    )
    return chain.from_iterable(sentence.facts for sentence in sentences_read)


def read_sentences(
    pack: Pack,
    text: str,
    own: str,
    *,
    today: date,
    is_left_out: Callable[[str], bool],
    conversation: Conversation = ALONE,
) -> Iterator[SentenceRead]:
    """The sentences of ``text``, whose `own_text` is ``own``, with the facts that each states.

    ``today`` is the day on which it was said, where its author is. A sentence for which ``is_left_out`` is true
    states nothing.
    """
    if _UPSIDE_DOWN in text:
        return
    own = with_subject(pack, with_short_verbs(pack, own))
    if _ROLE_PLAY.search(own):
        return
    if pack.stop_turn.search(own):
        return
    # Of the text as it was written: a pack may read "im" as "I am".
    author = Author(pack, today, is_loose=not _writes_capitals(text), conversation=conversation)
    stated: list[Fact] = []
    persons = NOBODY
    is_announced = False

    def history() -> list[Fact]:
        return [*conversation.before(), *stated]

    for told in told_sentences(pack, own):
        sentence = told.text
        if is_left_out(sentence):
            continue
        correction = corrections.correction_in(pack, sentence)
        correction = replace(correction, is_announced=correction.is_announced or is_announced)
        result = _of_correction(author, correction, history, persons)
        if told.is_laughed:
            result = replace(result, facts=[*filter(is_no_joke, result.facts)], is_laughed=True)
        persons = result.persons
        # "No, wait. I live in Mainz.": the announcement is a sentence of its own.
        is_announced = correction.is_announced and not correction.text.strip(" .!\u2026")
        stated += result.facts
        yield result


def _writes_capitals(text: str) -> bool:
    """Whether a word but "I" has a capital: "I live in athens" is written without."""
    return any(map(str.isupper, _PRONOUN_I.sub("", text)))


def _of_correction(
    author: Author, correction: Correction, history: History, persons: Persons
) -> SentenceRead:
    """What a sentence states, which may correct what was said before. ``persons`` were named before it."""
    result = _of_request(author, correction.text, persons)
    if result.facts:
        facts = corrections.corrected(correction, result.facts, history) if correction else result.facts
        return replace(result, facts=facts)
    again = corrections.said_again(
        author.pack,
        correction,
        history,
        read=partial(of_clause, author),
        is_answer=author.conversation.is_asked,
    )
    return replace(result, facts=again, unread="" if again else result.unread, mistake=correction.mistake)


def _of_request(author: Author, sentence: str, persons: Persons) -> SentenceRead:
    """What a sentence states, which may ask for that to be remembered."""
    match = requests.request_in(author.pack, sentence)
    if match is None:
        return _of_sentence(author, sentence, persons)
    result = _of_sentence(author, requests.requested(author.pack, match), persons)
    if result.facts:
        return replace(result, facts=[replace(fact, is_request=True) for fact in result.facts])
    result = _of_sentence(author, sentence, persons)
    # Said to a friend, "remember that things get better" asks nobody to keep anything.
    is_request = not result.facts and not author.conversation.has_company
    in_words = list(requests.facts_in_words(author.pack, match)) if is_request else []
    return replace(result, facts=in_words, unread="") if in_words else result


def _of_sentence(author: Author, sentence: str, persons: Persons) -> SentenceRead:
    sentence, asides = without_asides(author.pack, sentence)
    parts = stated_parts(author.pack, sentence)
    # A sentence that states nothing says nothing in passing.
    parts = [*parts, *asides] if parts else []
    facts: list[Fact] = []
    unread: list[str] = []
    subject = ""
    is_own = True
    place = 0
    while place < len(parts):
        # "My nephew is 12 and likes Lego": in some languages "likes" may be the speaker's as well.
        may_be_own = is_own or not begins_with_shared_verb(author.pack, parts[place].text)
        count, hits = _of_first_parts(author, parts[place:]) if may_be_own else (1, [])
        if not hits:
            hits = _of_unnamed(author, parts[place].text, subject=subject, persons=persons)
            hits = hits or _of_known(author, parts[place].text)
        facts += hits
        subject = subject_of(author.pack, parts[place].text) or (subject if _goes_on(hits) else "")
        is_own = is_about_speaker(author.pack, parts[place].text) or (bool(hits) and not subject)
        if not hits:
            # Across a dash or a bracket nothing is joined again.
            unread.append((parts[place].separator or ". ") + parts[place].text)
        place += count
        if author.pack.file.people.pronouns:
            text = " ".join(part.text for part in parts[:place])
            persons = persons.named_in(author.pack, text, facts)
    # Without capitals nothing shows who is named in passing, but for the clauses that a pattern fits.
    if not author.is_loose:
        facts += chain.from_iterable(in_passing(author.pack, part.text) for part in parts)
    return SentenceRead(facts, "".join(unread).strip(" ,."), persons)


def _goes_on(facts: Sequence[Fact]) -> bool:
    """Whether facts are about somebody of the speaker's, of whom a clause without a subject may tell more."""
    return any(fact.kin or fact.called for fact in facts)


def _of_unnamed(author: Author, text: str, *, subject: str, persons: Persons) -> list[Fact]:
    """The facts of a clause about somebody whom it does not name."""
    for clause in spelled_out(author.pack, text, subject=subject, persons=persons):
        facts = of_clause(author, clause) or of_cut_clause(author, clause)
        if _goes_on(facts):
            return facts
    return []


def _of_known(author: Author, text: str) -> list[Fact]:
    """The facts of a clause about somebody who is known by name: "Amir lives in Dubai"."""
    people = author.pack.file.people
    for beginning, rest in _names_of(author.pack, text):
        name = author.conversation.known(beginning)
        if name is None or people.stand_in is None:
            continue
        clause = people.stand_in.format(name=name, words=rest)
        facts = of_clause(author, clause) or of_cut_clause(author, clause)
        # Who stands in is a sister or a friend, which was not said.
        about = [replace(fact, kin=None, term="") for fact in facts if fact.called == name]
        # What such a clause says of the author instead: whom they have lost.
        of_author = [fact for fact in facts if fact.object == name and fact.relation not in people.kin]
        return [*about, *of_author]
    return []


def _names_of(pack: Pack, text: str) -> Iterator[tuple[str, str]]:
    """What may be the name of a clause's subject, each with the rest of the clause."""
    opened = without_opening(pack, text)
    behind = pack.name_behind.match(opened)
    if behind is not None:
        for name, rest in _beginnings(behind["rest"]):
            yield name, " ".join(f"{behind['verb']} {rest} {behind['front']}".split())
    yield from ((name, rest) for name, rest in _beginnings(opened) if rest)


def _beginnings(text: str) -> Iterator[tuple[str, str]]:
    """The first words of a text, the most of a name first, each with those behind them."""
    words = text.split(" ")
    for count in range(min(NAME_WORDS, len(words)), 0, -1):
        yield " ".join(words[:count]), " ".join(words[count:])


def _of_first_parts(author: Author, parts: Sequence[Part]) -> tuple[int, list[Fact]]:
    """The facts of the most parts that are read as one clause, and how many parts are done with."""
    for count, text in joined_parts(parts):
        is_cut = count < len(parts) and parts[count].separator == ", " and bool(author.pack.half.search(text))
        facts = of_clause(author, text, is_cut=is_cut)
        if facts:
            return count, [*facts, *named_in(author, text, facts)]
    text = parts[0].text
    facts = of_cut_clause(author, text)
    return 1, [*facts, *named_in(author, text, facts)]
