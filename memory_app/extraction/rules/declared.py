"""Read which fact a statement in a caller's words is: "Mira lives in Porto." is a home, and another one ends it.

Only a statement that is one fact from end to end is read; of anything else a later fact would end too much.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import datetime
from zoneinfo import ZoneInfo

from memory_app.extraction.rules.clause_reading import read_clause, split_predicates
from memory_app.extraction.rules.clauses import own_words, sentences
from memory_app.extraction.rules.names import NAME, is_name
from memory_app.extraction.rules.people import about_relative
from memory_app.extraction.rules.rule_matching import match_clause
from memory_app.language.words import COMMON, UNREAL, stem_of
from memory_app.memories.relations import normalise_relation
from memory_app.records.records import Origin, Statement

_KIND = "fact"
_STILL = re.compile(r"^(?:now|currently|still|already|also|really) ", re.IGNORECASE)
_USER = re.compile(r"^(?:I(?= )|(?:The )?[Uu]ser(?= ))")
_SOMEBODY = re.compile(rf"^{NAME}(?: {NAME}){{0,3}}(?= [a-z])")
_EXPERIENCE = re.compile(
    r"^(?:have|has) (?P<years>\d{1,2}|[a-z]+)(?: years?(?: of)?| years?') (?:work )?experience$",
    re.IGNORECASE,
)
_TAIL = re.compile(r"(?: years? old| now| for good| these days)?")
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
    clause = _only_clause(statement.text)
    if clause is None:
        return statement
    somebody = _subject(clause, user)
    if somebody is None:
        return statement
    subject, words = somebody
    words = _STILL.sub("", words)
    claim = _experience(words) or _by_rules(words, at=at, zone=zone, of_self=clause.startswith("I "))
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


def _only_clause(text: str) -> str | None:
    """The one clause of a text that has no other; None where it says more."""
    plain = " ".join(text.split()).rstrip(" .!")
    found = list(sentences(own_words(plain)))
    is_one = len(found) == 1 and not re.search(r"[.!?;:,]\s", plain)
    return plain if is_one and len(split_predicates(plain)) == 1 else None


def _subject(clause: str, user: str | None) -> tuple[str, str] | None:
    """Whom the clause is about, and what follows."""
    own = _USER.match(clause)
    if own is not None:
        return None if user is None else (user, clause[own.end() :].strip())
    match = _SOMEBODY.match(clause)
    if match is None or not all(map(_is_part_of_name, match[0].split())):
        return None
    return match[0], clause[match.end() :].strip()


def _is_part_of_name(word: str) -> bool:
    # "Maybe Mira lives in Porto" states nothing.
    return is_name(word) and word.lower() not in COMMON and stem_of(word.lower()) not in UNREAL


def _experience(words: str) -> _Claim | None:
    match = _EXPERIENCE.match(words)
    return None if match is None else _Claim("years_of_experience", match["years"].lower())


def _by_rules(words: str, *, at: datetime, zone: ZoneInfo, of_self: bool) -> _Claim | None:
    # The rules read what somebody says of themselves and of their relatives, so the subject stands in as a relative.
    clause = read_clause(f"I {words}" if of_self else f"My friend {words}", at, zone=zone)
    if clause is None or clause.when or clause.company:
        return None
    if not of_self:
        relative = about_relative(clause.text)
        if relative is None or relative.name is not None:
            return None
        clause = clause.said_by(relative.verb, relative.rest)
    matches = match_clause(clause, of_relative=not of_self, today=at.astimezone(zone).date())
    if len(matches) != 1 or not _says_all(words, matches[0].object):
        return None
    return _Claim(normalise_relation(matches[0].relation), matches[0].object)


def _says_all(words: str, value: str) -> bool:
    """Whether nothing follows the object: what does would end together with the fact."""
    _, found, behind = words.lower().rpartition(value.lower())
    return bool(found) and _TAIL.fullmatch(behind) is not None
