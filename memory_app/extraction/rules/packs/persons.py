"""Tell whom a clause is about that does not name them: "he is a beagle", "and works as a nurse". Pure.

A word such as "he" means somebody only where the turn named no one else before; a clause without a subject goes on
about the subject of the part before it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from memory_app.extraction.rules.packs import slot_values
from memory_app.extraction.rules.packs.clauses import with_own, without_opening
from memory_app.extraction.rules.packs.fact import Fact
from memory_app.extraction.rules.packs.pack import Pack

HAS_PET = "has_pet"
"""The relation whose object names an animal."""

_WORD = re.compile(r"[\w']+")


@dataclass(frozen=True, slots=True)
class Persons:
    """Who was named so far in a turn: the words for each ("my dog Pip") by what they are to the speaker.

    ``others``: somebody else was named, or may have been.
    """

    words: tuple[tuple[str, str], ...] = ()
    others: bool = False

    def named_in(self, pack: Pack, text: str, facts: Sequence[Fact]) -> Persons:
        """With those whom ``text`` names. The objects of its ``facts`` are nobody else."""
        matches = list(pack.they.finditer(text))
        words = dict(self.words)
        for match in matches:
            term = (match["kin"] or match["pet"]).lower()
            # The longest says most: "my dog" and then "my dog Pip".
            words[term] = max(words.get(term, ""), _words(pack, match), key=len)
            words[term] = _with_name(pack, term, words[term], facts)
        # "My brother's boss" is a second one.
        has_possessive = any(text[match.end() :].startswith("'") for match in matches)
        rest = pack.they.sub(lambda match: match[0].removeprefix(_words(pack, match)), text)
        others = self.others or has_possessive or _names_somebody(rest, [fact.object for fact in facts])
        return Persons(tuple(words.items()), others)

    def meant_by(self, pack: Pack, pronoun: str) -> str:
        """The words for whom ``pronoun`` means; empty where that is not certain."""
        if self.others or len(self.words) != 1:
            return ""
        ((term, words),) = self.words
        kin = pack.kin.get(term)
        foreign = (other for other in pack.file.people.pronouns if other != pronoun.lower())
        is_foreign = any(kin in pack.file.people.pronouns[other] for other in foreign)
        return "" if is_foreign else words


def _with_name(pack: Pack, term: str, words: str, facts: Sequence[Fact]) -> str:
    """The words for somebody with the name that a fact gives them: "my daughter is called Ida"."""
    relation = pack.kin.get(term, HAS_PET)
    names = {fact.object for fact in facts if fact.relation == relation and not fact.kin and not fact.called}
    # Of two daughters nothing tells which is meant.
    if len(names) != 1:
        return words
    (name,) = names
    is_named = slot_values.name(pack, name, is_loose=False) is not None
    return f"{words} {name}" if is_named and name not in words else words


def _names_somebody(text: str, known: Iterable[str]) -> bool:
    """Whether a word inside the sentence has a capital and belongs to no object of a fact."""
    explained = {word for value in known for word in _WORD.findall(value)}
    names = (word for word in _WORD.findall(text)[1:] if word[0].isupper() and len(word) > 1)
    return any(name not in explained for name in names)


def subject_of(pack: Pack, text: str) -> str:
    """The words with which a clause names somebody of the speaker's as its subject; empty where it does not."""
    match = pack.they.match(with_own(pack, without_opening(pack, text)))
    return _words(pack, match) if match else ""


def begins_with_shared_verb(pack: Pack, text: str) -> bool:
    """Whether a clause has no subject, and a verb that does not tell whether it is the speaker."""
    has_shared_verbs = bool(pack.file.clause.shared_verbs)
    return has_shared_verbs and pack.shared_verb.match(without_opening(pack, text)) is not None


def is_about_speaker(pack: Pack, text: str) -> bool:
    """Whether a word of a clause tells that the speaker is its subject."""
    return pack.speaker_word.search(text) is not None


def _words(pack: Pack, match: re.Match[str]) -> str:
    """The words for somebody, up to the end of their name: of "my dog Pip barks" the first three."""
    called = match["called"]
    if not called:
        return match[0].strip(" ,")
    before = match.string[match.start() : match.start("called")]
    return f"{before}{slot_values.first_name(pack, called) or ''}".strip(" ,")


def spelled_out(pack: Pack, text: str, *, subject: str, persons: Persons) -> Sequence[str]:
    """``text`` with its subject in words, in place of a pronoun or before a verb that has none."""
    opened = without_opening(pack, text)
    pronoun = pack.pronoun.match(opened)
    if pronoun is None:
        return [f"{subject} {opened}"] if subject else []
    meant = persons.meant_by(pack, pronoun[0])
    return [meant + opened[pronoun.end() :]] if meant else []
