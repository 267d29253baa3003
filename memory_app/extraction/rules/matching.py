# ruff: noqa: E501 (a pattern stays in one piece)
"""From a clause to the rule that reads it: dates taken out, the subject made "I", then a look-up in the tables."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date, datetime
from zoneinfo import ZoneInfo

from memory_app.extraction.rules import words
from memory_app.extraction.rules.activities import ACTIVITIES
from memory_app.extraction.rules.clauses import strip_opening
from memory_app.extraction.rules.dates import Precision, ResolvedDate, resolve_dates
from memory_app.extraction.rules.grammar import bare_object, conjugate, cut_object, first_person, third_person
from memory_app.extraction.rules.names import NAME
from memory_app.extraction.rules.patterns import CompiledRule, Rule, When, index_rules
from memory_app.extraction.rules.statements import STATEMENTS

_RULES = index_rules((*STATEMENTS, *ACTIVITIES))

_ABOUT_SELF = re.compile(r"\b(?:I|[Mm]y|[Ww]e|[Oo]ur)\b")
_FUTURE = re.compile(
    r"\b(?:will|going to|plan\w*|next|upcoming|hop(?:e|ing)|want|about to|tomorrow|coming|intend|aim\w*|appointment|interview|have an? (?:\w+ )?meeting|"
    r"(?:am|are) (?:also |finally )?(?:\w+ing)|starts?)\b"
)
_DURATION = re.compile(r"\bhave\b")
_NOT_THE_TIME = re.compile(r"\b(?:before|after|until|till|by|than|every|each|of|the)\s*$", re.IGNORECASE)
_OTHER_TIME = re.compile(r"\w (?:after|before|when|while|because|that (?:I|we|it|they|he|she|you)) .")
_LEADING_TIMES = re.compile(
    r"^(?P<times>(?:Every|Each) (?:single |other )?\w+(?: (?:morning|evening|night|afternoon))?|On \w+days|In the (?:mornings?|evenings?)|"
    r"(?:Once|Twice) (?:a|every) \w+|At night|Before bed|After work),? (?P<rest>I .+)$",
    re.IGNORECASE,
)
_COMPANY = re.compile(
    r"^(?:(?P<who>(?:[Mm]y|[Oo]ur) [\w'-]+(?: [\w'-]+){0,2}|[A-Z][\w'-]+) and I|[Mm]e and (?P<who2>my [\w-]+(?: [\w-]+)?)) "
)
_ADVERB = (
    r"(?:really|just|also|still|actually|currently|now|even|absolutely|totally|definitely|truly|honestly|particularly|especially|"
    r"genuinely|recently|finally|already|personally|simply|mainly|mostly|kinda|kind of|sort of|so|very much|only just|literally|"
    r"completely|obviously|both|first|originally|officially|happily|proudly|actively|lately|all|once|since)"
)
_OPENING_VERB = re.compile(
    rf"^I (?:{_ADVERB} )*(?P<verb>(?:am|was|have|had|do|did|will|can|cannot|would)(?: not)?(?: {_ADVERB})+(?= )|(?:do )(?!not\b|yoga\b|my\b|the\b|a\b)(?=(?:like|love|enjoy|have|live|work|want|hate|prefer|play|speak)\b))?",
)
_TIME_FIRST = r"(?:[Yy]esterday|[Tt]oday|[Tt]onight|[Ll]ast \w+|[Tt]his \w+|[Oo]n \w+|\w+ \w+ ago|[Ii]n \w+)"
_SUBJECT = re.compile(
    rf"^(?:{_TIME_FIRST},? )?(?P<subject>(?:(?:[Mm]y|[Oo]ur) [\w-]+(?: [\w-]+)? and )?(?:I|[Ww]e)|[Mm]y (?:{words.KIN_QUALITIES})? ?(?:{'|'.join(words.KIN)})(?: (?!And\b){NAME}(?= [a-z]))?)\b"
)
_AND_VERB = re.compile(
    r",? (?:and|but) (?:then |also |now |currently |recently |just |even |still )*(?="
    r"(?:"
    + "|".join((*words.PAST_LASTING, *words.PAST_DATED, "got", "quit", "live in", "lives in", "speaks?"))
    + r")\b"
    r"|(?:work|works|study|studies) (?:as|at|for|in)\b|(?:have|has) (?:an?|two|three)\b|(?:do|does|am|is|can)(?: not|not) "
    r"|(?:am|is) (?:an?|from|allergic|learning|planning|going)\b|(?:play|plays) (?:the|in)\b|plan to\b|hate\b)",
    re.IGNORECASE,
)
_HABIT_CUE = re.compile(
    r"\b(?:every|each|daily|weekly|once|twice|times|mornings?|evenings?|at night|before|after work|\w+days)\b",
    re.IGNORECASE,
)
_BIRTH = re.compile(r"\bborn\b|\bbirthday (?:is|falls)\b", re.IGNORECASE)
_LISTED = re.compile(r",? (?:and|or) (?:also |to |some |an? (?:bit|little)(?: of)? )?|, ", re.IGNORECASE)
_PLACED = re.compile(r"\s(?:in|at|with|from|for|on|by)\s.*$")
_THAT = re.compile(r"^(?:this|that) (?=[\w-]+ \w)", re.IGNORECASE)
_WITH = re.compile(r" with (?:my|our|some|the|an?|[A-Z]\w+)\b.*$")
_NAMED_PART = re.compile(
    r"^(?:the )?([^\W\d_a-zß-öø-ÿ][\w&'-]*(?: (?:(?:of|de|the) )?[^\W\d_a-zß-öø-ÿ][\w&'-]*){0,3})"
)


@dataclass(frozen=True, slots=True)
class Clause:
    """One clause, its date taken out: ``text`` begins with "I" or "my"; ``company`` is who was there too."""

    text: str
    when: ResolvedDate | None = None
    company: str = ""

    def said_by(self, verb: str, rest: str) -> Clause:
        """The same clause as a relative would say it of themselves."""
        return replace(self, text=f"I {first_person(verb)} {rest}".strip())


@dataclass(frozen=True, slots=True)
class Match:
    """A rule with the words it found. ``object`` is the triple's, ``says`` the statement without subject and date."""

    rule: Rule
    relation: str
    object: str
    says: str
    entity_label: str | None = None
    """The name the object begins with, when the rule says what type of entity it is."""


def read_clause(text: str, at: datetime, *, zone: ZoneInfo) -> Clause | None:
    """``text`` made ready for the rules; None when it does not speak of the speaker."""
    if not _ABOUT_SELF.search(text):
        return None
    when, text = _take_date(text, at, zone)
    text = strip_opening(text)
    company = _COMPANY.match(text)
    if company:
        text = "I " + text[company.end() :]
    text = re.sub(r"^[Ww]e(?: (?:both|all))? (are )?", lambda m: "I am " if m[1] else "I ", text)
    leading = _LEADING_TIMES.match(text)
    if leading:
        text = f"{leading['rest']} {leading['times'].lower()}"
    text = re.sub(r"^I are\b", "I am", re.sub(r"^I were\b", "I was", _bare_verb(text)))
    who = (company["who"] or company["who2"]) if company else ""
    return Clause(text, when, f" with {third_person(who)}" if who else "")


def split_predicates(clause: str) -> list[str]:
    """ "I moved to Lyon and work as a nurse" as two clauses, the subject repeated."""
    subject = _SUBJECT.match(clause)
    if subject is None:
        return [clause]
    first, *others = _AND_VERB.split(clause)
    return [first, *(f"{subject['subject']} {other}" for other in others)]


def _bare_verb(text: str) -> str:
    """ "I am really into" → "I am into", "I do like" → "I like"."""
    text = re.sub(r"^I have got (?!to\b)", "I have ", text)
    match = _OPENING_VERB.match(text)
    if match is None:
        return text
    verb = re.sub(rf" {_ADVERB}\b", "", match["verb"] or "").strip()
    rest = text[match.end() :].lstrip()
    return " ".join(filter(None, ["I", "" if verb == "do" else verb, rest]))


def _take_date(text: str, at: datetime, zone: ZoneInfo) -> tuple[ResolvedDate | None, str]:
    """The date that tells when, and the clause without it; other dates are made absolute in place."""
    if _BIRTH.search(text):
        return None, text
    dates = resolve_dates(text, at, zone=zone, future=bool(_FUTURE.search(text)))
    when: ResolvedDate | None = None
    for found in reversed(dates):
        start, end = found.span
        if found.precision is Precision.DURATION and not _DURATION.search(text):
            continue
        inside = _NOT_THE_TIME.search(text[:start])
        other = _OTHER_TIME.search(text[:start])
        if inside or other or (when is not None and found is not dates[0]) or _attributive(text, end):
            text = f"{text[:start]}{found.bare if inside else found.phrase}{text[end:]}"
            continue
        if when is not None:
            continue
        when, text = (
            found,
            f"{text[:start].rstrip(' ,')} {text[end:].lstrip()}".replace(" ,", ",").strip(" ,"),
        )
    return when, text


def _attributive(text: str, end: int) -> bool:
    return text[end : end + 2] == "'s"


def match_clause(clause: Clause, *, of_relative: bool, today: date) -> tuple[Match, ...]:
    """What the first rule that reads ``clause`` says. ``of_relative`` leaves out rules only for oneself."""
    for candidate in _candidates(clause.text):
        rule = candidate.rule
        if (of_relative and rule.own_only) or not _dated_as_needed(rule, clause.when, today):
            continue
        found = candidate.pattern.match(clause.text.removeprefix("I "))
        made = tuple(_fill(rule, found)) if found else ()
        if made:
            return made
    return ()


def _candidates(text: str) -> Iterator[CompiledRule]:
    first, _, rest = text.partition(" ")
    if first == "I":
        yield from _RULES.get(rest.partition(" ")[0].lower(), ())
        if _HABIT_CUE.search(rest):
            yield from _RULES["=habit"]
    elif first.lower() in ("my", "our"):
        yield from _RULES["=my"]


def _dated_as_needed(rule: Rule, when: ResolvedDate | None, today: date) -> bool:
    if when is None:
        return not rule.needs_date
    if rule.when is When.EVENT:
        return when.start <= today
    return not (rule.when is When.PLAN and when.end <= today)


def _fill(rule: Rule, found: re.Match[str]) -> Iterator[Match]:
    groups = {name: (text or "").strip() for name, text in found.groupdict().items()}
    said = _THAT.sub("", groups["object"]) if rule.when is When.EVENT else groups["object"]
    cut = said.strip(" .!") if rule.whole else cut_object(said)
    for item in _LISTED.split(cut) if cut and rule.each else filter(None, (cut,)):
        yield _filled_match(rule, groups, item)


def _filled_match(rule: Rule, groups: dict[str, str], cut: str) -> Match:
    spoken = third_person(cut)
    base = groups.get("verb", "").lower()
    shown = {name: third_person(text.lower()) for name, text in groups.items()}
    shown |= {"base": base, "verb": conjugate(base) if base else "", "object": spoken}
    shorter = _WITH.sub("", cut) if rule.when is When.EVENT else _PLACED.sub("", cut) if rule.brief else cut
    bare = bare_object(shorter)
    named = _NAMED_PART.match(cut) if rule.entity else None
    label = named[1].removesuffix("'s") if named else None
    value = label or _filled(rule.value, shown | {"object": bare, "spoken": spoken})
    relation = rule.relation.format_map({name: text.replace(" ", "_") for name, text in shown.items()})
    return Match(rule, relation, value, _article(_filled(rule.says, shown)), label)


def _filled(template: str, groups: dict[str, str]) -> str:
    return " ".join(template.format_map(groups).split())


def _article(text: str) -> str:
    return re.sub(r"\b(is|as|job as) a (?=[aeio])", r"\1 an ", text)
