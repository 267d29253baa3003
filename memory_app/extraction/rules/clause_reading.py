# ruff: noqa: E501 (a pattern stays in one piece)
"""Read a clause of English: take its date and its company out, and make "I" its subject."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from memory_app.extraction.rules import words
from memory_app.extraction.rules.clauses import strip_opening
from memory_app.extraction.rules.dates import Precision, ResolvedDate, resolve_dates
from memory_app.extraction.rules.grammar import first_person, third_person
from memory_app.extraction.rules.names import NAME

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
_PLURAL_SUBJECT = re.compile(r"^[Ww]e(?: (?:both|all))? (?P<are>are )?")
_PLURAL_VERB = re.compile(r"^I (were|are)\b")
_SINGULAR_VERBS = {"were": "was", "are": "am"}
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
_PAST = (
    rf"(?:\w+ed|got|had|{'|'.join((*words.PAST_LASTING, *words.PAST_DATED, *sorted(words.PAST_OTHERS)))})\b"
)
# What just happened is as good as dated. "I just loved" tells no time.
_JUST_NOW = re.compile(
    rf"^I (?:(?:have )?(?:just|recently|finally) (?!(?:loved|wanted|needed|liked|hated|had|got to)\b){_PAST}|{_PAST}.*\brecently\b)"
)
_BIRTH = re.compile(r"\bborn\b|\bbirthday (?:is|falls)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Clause:
    """One clause without its date, which is ``when``.

    ``text`` begins with "I" or "my"; ``company`` is who was there too (" with their brother").
    """

    text: str
    when: ResolvedDate | None = None
    company: str = ""

    def said_by(self, verb: str, rest: str) -> Clause:
        """The same clause as a relative would say it of themselves."""
        return replace(self, text=f"I {first_person(verb)} {rest}".strip())


def read_clause(text: str, at: datetime, *, zone: ZoneInfo) -> Clause | None:
    """Prepare ``text`` for the rules; None when it does not speak of the speaker. ``at`` is when it was said."""
    if not _ABOUT_SELF.search(text):
        return None
    # The date first, since it may stand before all the rest: "last week my brother and I went …".
    when, text = _take_date(text, at, zone)
    company, text = _take_company(strip_opening(text))
    text = _PLURAL_SUBJECT.sub(lambda match: "I am " if match["are"] else "I ", text)
    text = _times_last(text)
    if when is None and _JUST_NOW.match(text):
        when = _shortly_before(at, zone)
    text = _bare_verb(text)
    # "we were" and "we are" lost their subject above, after which the verb still has its plural.
    text = _PLURAL_VERB.sub(lambda match: f"I {_SINGULAR_VERBS[match[1]]}", text)
    return Clause(text, when=when, company=company)


def _shortly_before(at: datetime, zone: ZoneInfo) -> ResolvedDate:
    day = at.astimezone(zone).date()
    phrase = f"shortly before {day.isoformat()}"
    return ResolvedDate(day, day + timedelta(days=1), Precision.WEEK, phrase, phrase, span=(0, 0))


def split_predicates(clause: str) -> list[str]:
    """ "I moved to Lyon and work as a nurse" as two clauses, the subject repeated."""
    subject = _SUBJECT.match(clause)
    if subject is None:
        return [clause]
    # Only before a verb that begins a statement: "bread and butter" stays together.
    first, *others = _AND_VERB.split(clause)
    return [first, *(f"{subject['subject']} {other}" for other in others)]


def _take_company(text: str) -> tuple[str, str]:
    """ "My brother and I went" as who was there too (" with their brother") and "I went"."""
    # The rules know one subject. Who else was there goes to the end of the statement.
    match = _COMPANY.match(text)
    if match is None:
        return "", text
    who = match["who"] or match["who2"]
    return f" with {third_person(who)}", "I " + text[match.end() :]


def _times_last(text: str) -> str:
    """ "Every morning I run" → "I run every morning"."""
    match = _LEADING_TIMES.match(text)
    return f"{match['rest']} {match['times'].lower()}" if match else text


def _bare_verb(text: str) -> str:
    """ "I am really into" → "I am into", "I do like" → "I like"."""
    # "Have got to" is a duty, not a thing.
    text = re.sub(r"^I have got (?!to\b)", "I have ", text)
    match = _OPENING_VERB.match(text)
    if match is None:
        return text
    # What is left of "do like" is "like", while "do not like" stays.
    verb = re.sub(rf" {_ADVERB}\b", "", match["verb"] or "").strip()
    rest = text[match.end() :].lstrip()
    return " ".join(filter(None, ["I", "" if verb == "do" else verb, rest]))


def _take_date(text: str, at: datetime, zone: ZoneInfo) -> tuple[ResolvedDate | None, str]:
    """The date that tells when, and the clause without it; other dates are made absolute in place."""
    # The date of a birth is what the clause states, not when it was so.
    if _BIRTH.search(text):
        return None, text
    dates = resolve_dates(text, at, zone=zone, future=bool(_FUTURE.search(text)))
    when: ResolvedDate | None = None
    # From the last to the first, so that a change of the text leaves the spans before it right.
    for resolved in reversed(dates):
        # "I lived there for two years" is over: only "I have lived" says that it lasts.
        if resolved.precision is Precision.DURATION and not _DURATION.search(text):
            continue
        # The first date in a clause is the one that tells when, unless it is about something else.
        is_second = when is not None and resolved is not dates[0]
        if is_second or _tells_another_time(text, resolved):
            text = _with_absolute(text, resolved)
        elif when is None:
            when, text = resolved, _without(text, resolved)
    return when, text


def _tells_another_time(text: str, resolved: ResolvedDate) -> bool:
    """Whether the date belongs to something in the clause ("before May", "Monday's") instead of to its verb."""
    start, end = resolved.span
    # "Monday's meeting"
    if text.startswith("'s", end):
        return True
    return any(pattern.search(text[:start]) for pattern in (_NOT_THE_TIME, _OTHER_TIME))


def _with_absolute(text: str, resolved: ResolvedDate) -> str:
    start, end = resolved.span
    # Behind "before" or "every" stands a preposition already.
    words = resolved.bare if _NOT_THE_TIME.search(text[:start]) else resolved.phrase
    return f"{text[:start]}{words}{text[end:]}"


def _without(text: str, resolved: ResolvedDate) -> str:
    start, end = resolved.span
    # The commas around the date go with it.
    joined = f"{text[:start].rstrip(' ,')} {text[end:].lstrip()}"
    return joined.replace(" ,", ",").strip(" ,")
