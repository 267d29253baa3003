"""Read which fact a statement in a caller's words is: "Mira lives in Porto." is a home, and another one ends it.

Only a statement that is one fact from end to end is read; of anything else a later fact would end too much.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date, datetime
from zoneinfo import ZoneInfo

from memory_app.extraction.rules.clauses import own_words
from memory_app.extraction.rules.names import NAME, is_name
from memory_app.extraction.rules.packs.fact import Fact
from memory_app.extraction.rules.packs.facts import read
from memory_app.extraction.rules.packs.pack import LANGUAGES, Pack, pack_of
from memory_app.extraction.rules.packs.turn_language import ENGLISH
from memory_app.language.detection import guesses
from memory_app.language.words import COMMON, UNREAL, stem_of
from memory_app.memories.relations import normalise_relation
from memory_app.records.records import Origin, Statement

_KIND = "fact"
_USER = re.compile(r"^(?:The )?[Uu]ser(?= )")
_SOMEBODY = re.compile(rf"^{NAME}(?: {NAME}){{0,3}}(?= [^\W\d_A-ZÀ-ÖØ-Þ])")
_EXPERIENCE = re.compile(
    r"^(?:have|has) (?P<years>\d{1,2}|[a-z]+)(?: years?(?: of)?| years?') (?:work )?experience$",
    re.IGNORECASE,
)
_SEVERAL_SENTENCES = re.compile(r"[.!?;:,]\s")
_STAND_IN = "Anna"
"""A name that every pack reads as one, in place of that of the subject."""
LIKELY_LANGUAGES = 3
"""Languages in which a text is tried; no sentence is one fact from end to end in two of them."""
_TAIL_CHARS = 12
"""What may follow the object: "years old", "now"."""
_MOST_CHARS = 200
"""A longer statement is more than one fact."""


@dataclass(frozen=True, slots=True)
class _Claim:
    """What is said of the subject."""

    relation: str
    object: str


def read_declared(statement: Statement, *, user: str | None, at: datetime, zone: ZoneInfo) -> Statement:
    """The statement with subject, relation and object where its text says which fact it is; else as it is.

    ``user`` is whom "I" and "the user" mean. Pure.
    """
    if not _may_be_read(statement):
        return statement
    text = _only_sentence(statement.text)
    if text is None:
        return statement
    today = at.astimezone(zone).date()
    somebody = _somebody(text, user)
    if somebody is not None:
        subject, words = somebody
        claim = _experience(words) or _claim_about(words, text, today)
    elif user is not None:
        subject, claim = user, _claim_of_speaker(text, today)
    else:
        return statement
    if claim is None:
        return statement
    # Without new entities: a caller who means to make them adds a fact, or names them.
    return replace(statement, subject=subject, relation=claim.relation, object=claim.object)


def _may_be_read(statement: Statement) -> bool:
    return (
        statement.kind == _KIND
        and isinstance(statement.text, str)
        and statement.origin is Origin.DECLARED
        # Whoever names a part of a fact means it so.
        and (statement.subject, statement.relation, statement.object) == (None, None, None)
        and len(statement.text) <= _MOST_CHARS
    )


def _only_sentence(text: str) -> str | None:
    """The one sentence of a text that has no other; None where it says more, or quotes or asks."""
    plain = " ".join(text.split()).rstrip(" .!")
    if not plain or plain.endswith("?") or _SEVERAL_SENTENCES.search(plain):
        return None
    return plain if own_words(plain) == plain else None


def _somebody(text: str, user: str | None) -> tuple[str, str] | None:
    """Whom the sentence is about by a name, and what follows; None for what somebody says of themselves."""
    of_user = _USER.match(text)
    if of_user is not None:
        return None if user is None else (user, text[of_user.end() :].strip())
    match = _SOMEBODY.match(text)
    if match is None or not all(map(_is_part_of_name, match[0].split())):
        return None
    return match[0], text[match.end() :].strip()


def _is_part_of_name(word: str) -> bool:
    # "Maybe Mira lives in Porto" states nothing.
    return is_name(word) and word.lower() not in COMMON and stem_of(word.lower()) not in UNREAL


def _experience(words: str) -> _Claim | None:
    match = _EXPERIENCE.match(words)
    return None if match is None else _Claim("years_of_experience", match["years"].lower())


def _claim_about(words: str, text: str, today: date) -> _Claim | None:
    """What ``words`` say of somebody; the rules read what is said of a relative, so the subject stands in as one."""
    for pack in _packs(text):
        stand_in = pack.file.people.stand_in
        if stand_in is None:
            continue
        facts = _facts(pack, stand_in.format(name=_STAND_IN, words=words), today)
        about = [fact for fact in facts if fact.called == _STAND_IN]
        claim = _only_claim(about, words)
        if claim is not None:
            return claim
    return None


def _claim_of_speaker(text: str, today: date) -> _Claim | None:
    for pack in _packs(text):
        claim = _only_claim(_facts(pack, text, today), text)
        if claim is not None:
            return claim
    return None


def _packs(text: str) -> Iterator[Pack]:
    """The packs of the languages in which a text may be, and that of English: short ones are often mistaken."""
    likely = [guess.language for guess in guesses(text) if guess.language in LANGUAGES]
    for language in dict.fromkeys([*likely[:LIKELY_LANGUAGES], ENGLISH]):
        pack = pack_of(language)
        if pack is not None:
            yield pack


def _facts(pack: Pack, text: str, today: date) -> list[Fact]:
    return list(read(pack, text, today=today, is_left_out=lambda sentence: False))


def _only_claim(facts: list[Fact], words: str) -> _Claim | None:
    """The claim of the one fact that ``words`` state from end to end."""
    if len(facts) != 1:
        return None
    (fact,) = facts
    # A date, or what follows the object, would end together with the fact.
    if fact.when is not None or fact.corrects is not None or not _says_all(words, fact.object):
        return None
    return _Claim(normalise_relation(fact.relation), fact.object)


def _says_all(words: str, value: str) -> bool:
    _, found, behind = words.lower().rpartition(value.lower())
    return bool(found) and len(behind) <= _TAIL_CHARS
