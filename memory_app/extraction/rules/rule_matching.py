"""Find the rule of English that reads a clause, and fill its templates."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date

from memory_app.extraction.rules.activities import ACTIVITIES
from memory_app.extraction.rules.clause_reading import Clause
from memory_app.extraction.rules.dates import ResolvedDate
from memory_app.extraction.rules.grammar import bare_object, conjugate, cut_object, third_person
from memory_app.extraction.rules.patterns import CompiledRule, Rule, When, index_rules
from memory_app.extraction.rules.statement_rules import STATEMENT_RULES
from memory_app.extraction.rules.words import PAST_OTHERS

_RULES = index_rules((*STATEMENT_RULES, *ACTIVITIES))
_HABIT_CUE = re.compile(
    r"\b(?:every|each|daily|weekly|once|twice|times|mornings?|evenings?|at night|before|after work|\w+days)\b",
    re.IGNORECASE,
)
_LISTED = re.compile(r",? (?:and|or) (?:also |to |some |an? (?:bit|little)(?: of)? )?|, ", re.IGNORECASE)
_PLACED = re.compile(r"\s(?:in|at|with|from|for|on|by)\s.*$")
_A_BEFORE_VOWEL = re.compile(
    r"\b(is|as|job as|of|to|by|with|at|for|into|from|[a-z]+ed|made|wrote|drew|saw|met|took|got|found) a (?=[aeio])"
)
_BEFORE_THIS = r"(?:this|that) (?!(?:stuff|time|day|moment|point|way|week|year|month)\b)(?=[\w-]+ \w)"
_THIS = re.compile(rf"^{_BEFORE_THIS}", re.IGNORECASE)
_THAT = re.compile(r"^that (?=(?:I|we|it|they|he|she|you|there|the|my|our|an?|some|people)\b)")
_BY_THIS = re.compile(rf"\b(by|with|at|for|into|from) {_BEFORE_THIS}", re.IGNORECASE)
_THESE = re.compile(r"^(?:these|those) (?=[\w-]+ \w)", re.IGNORECASE)
_WITH = re.compile(r" with (?:my|our|some|the|an?|[A-Z]\w+)\b.*$")
_NAMED_PART = re.compile(
    r"^(?:the )?([^\W\d_a-zß-öø-ÿ][\w&'-]*(?: (?:(?:of|de|the) )?[^\W\d_a-zß-öø-ÿ][\w&'-]*){0,3})"
)


@dataclass(frozen=True, slots=True)
class Match:
    """What one rule states. ``object`` is that of the triple, ``says`` the statement without subject and date."""

    rule: Rule
    relation: str
    object: str
    says: str
    entity_label: str | None = None
    """The name the object begins with, when the rule says what type of entity it is."""


def match_clause(clause: Clause, *, of_relative: bool, today: date) -> tuple[Match, ...]:
    """Return what the first rule that reads ``clause`` states.

    ``of_relative`` leaves out the rules that are only for oneself; ``today`` is the day on which it was said.
    """
    text = clause.text.removeprefix("I ")
    for candidate in _candidates(clause.text):
        rule = candidate.rule
        if of_relative and rule.own_only:
            continue
        if not _may_be_dated(rule, clause.when, today):
            continue
        match = candidate.pattern.match(text)
        # A rule may match and state nothing, where its object means something only in the conversation.
        statements = tuple(_fill(rule, match)) if match else ()
        if statements:
            return statements
    return ()


def _candidates(text: str) -> Iterator[CompiledRule]:
    first, _, rest = text.partition(" ")
    if first == "I":
        verb = rest.partition(" ")[0].lower()
        yield from _RULES.get(verb, ())
        # What is told with any other verb is known by its past.
        if verb not in _RULES and (verb.endswith("ed") or verb in PAST_OTHERS):
            yield from _RULES["=past"]
        # Habits are told by their times, since any verb may be one.
        if _HABIT_CUE.search(rest):
            yield from _RULES["=habit"]
    elif first.lower() in ("my", "our"):
        yield from _RULES["=my"]


def _may_be_dated(rule: Rule, when: ResolvedDate | None, today: date) -> bool:
    """Whether the rule reads a clause of this date: events lie behind ``today``, plans ahead."""
    if when is None:
        return not rule.needs_date
    if rule.when is When.EVENT:
        return when.start <= today
    if rule.when is When.PLAN:
        return when.end > today
    return True


def _fill(rule: Rule, match: re.Match[str]) -> Iterator[Match]:
    groups = {name: text.strip() for name, text in match.groupdict(default="").items()}
    for item in _objects(rule, groups["object"]):
        yield _filled_match(rule, groups, item)


def _objects(rule: Rule, words: str) -> list[str]:
    """The objects that a rule takes from the words behind its verb: none, one, or each item of a list."""
    # "I saw that film" tells of a film, whichever it was.
    if rule.when is When.EVENT:
        words = _BY_THIS.sub(r"\1 a ", words)
        words = _THESE.sub("", _THIS.sub("a ", _THAT.sub("", words)))
    phrase = words.strip(" .!") if rule.whole else cut_object(words)
    if not phrase:
        return []
    return _LISTED.split(phrase) if rule.each else [phrase]


def _filled_match(rule: Rule, groups: dict[str, str], item: str) -> Match:
    base = groups.get("verb", "").lower()
    spoken = third_person(item)
    fields = {name: third_person(text.lower()) for name, text in groups.items()}
    # The object once more, as it was written: its capitals are those of a name.
    fields |= {"base": base, "verb": conjugate(base) if base else "", "object": spoken}
    label = _entity_label(rule, item)
    value_fields = fields | {"object": bare_object(_shortened(rule, item)), "spoken": spoken}
    return Match(
        rule=rule,
        relation=rule.relation.format_map(fields).replace(" ", "_"),
        object=label or _filled(rule.value, value_fields),
        says=_with_articles(_filled(rule.says, fields)),
        entity_label=label,
    )


def _shortened(rule: Rule, item: str) -> str:
    """The object for the triple, without those who were there or the place."""
    if rule.when is When.EVENT:
        return _WITH.sub("", item)
    return _PLACED.sub("", item) if rule.brief else item


def _entity_label(rule: Rule, item: str) -> str | None:
    match = _NAMED_PART.match(item) if rule.entity else None
    return match[1].removesuffix("'s") if match else None


def _filled(template: str, fields: dict[str, str]) -> str:
    return " ".join(template.format_map(fields).split())


def _with_articles(text: str) -> str:
    """ "is a engineer" → "is an engineer"."""
    # Without "u": "a university", "a user" are commoner than "an uncle".
    return _A_BEFORE_VOWEL.sub(r"\1 an ", text)
