"""The record of a rule, and the index by which a clause is given the rules that may fit it.

A rule reads a clause that begins with "I", with "my", or with an imperative, and says which triple it states.
The tables are in `statement_rules` and `activities`; another language is other tables of the same shape.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass
from enum import StrEnum

OBJECT = r"(?P<object>.+)"
TAIL = r"(?:,? (?:and|but|so|because|since|which|who|now|currently|these days|by the way).*|,.*)?"


class When(StrEnum):
    """How a date in the clause counts: since when it is true, when it happened, or when it is planned for."""

    STATE = "state"
    EVENT = "event"
    PLAN = "plan"


@dataclass(frozen=True, slots=True)
class Rule:
    """One row of a table.

    ``heads`` are the words that may follow "I", joined by "|" ("=my" and "=habit" are looked up otherwise);
    ``pattern`` matches what follows "I " to the end of the clause. ``relation``, ``says`` and ``value`` are
    templates over its groups, ``{verb}`` conjugated: ``value`` is the triple's object, ``says`` the statement
    without its subject. ``entity`` is the type of a named object. ``whole`` keeps the object uncut,
    ``needs_date`` takes only a dated clause, ``own_only`` is not applied to relatives, ``starts`` makes a
    date the beginning, ``each`` states every item of a list apart, ``brief`` ends the triple's object (not the
    statement) before a preposition.
    """

    heads: str
    pattern: str
    _: KW_ONLY
    relation: str
    says: str
    subtype: str = "fact"
    value: str = "{object}"
    entity: str | None = None
    importance: int | None = None
    confidence: float = 0.8
    when: When = When.STATE
    needs_date: bool = False
    whole: bool = False
    own_only: bool = False
    starts: bool = False
    each: bool = False
    brief: bool = False


@dataclass(frozen=True, slots=True)
class CompiledRule:
    rule: Rule
    pattern: re.Pattern[str]


def index_rules(rules: Iterable[Rule]) -> dict[str, tuple[CompiledRule, ...]]:
    """Index the rules by head, in table order; the first that matches a clause states it."""
    index: dict[str, list[CompiledRule]] = {}
    for rule in rules:
        # To the end of the clause: a rule that reads only the beginning would miss what turns it round.
        compiled = CompiledRule(rule, re.compile(rf"(?:{rule.pattern})[.! ]*$", re.IGNORECASE))
        for head in rule.heads.split("|"):
            index.setdefault(head, []).append(compiled)
    return {head: tuple(rows) for head, rows in index.items()}
