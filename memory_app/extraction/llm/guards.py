# ruff: noqa: E501 (a pattern stays in one piece)
"""Hold what a model states about a conversation against the conversation. Pure rules, one function each.

Words are compared by stem. A paraphrase, or a statement in another language than its turn, shares few words with its
evidence, so missing words alone never reject: a statement goes when something else explains it better than the turns
it names do, such as a memory that was handed in, an example of the prompt, or the assistant's own speech. It goes as
well when, in one language, not even its names were said.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from zoneinfo import ZoneInfo

from memory_app.extraction.llm.prompt_echo import repeats_prompt
from memory_app.extraction.rules import ResolvedDate, resolve_dates
from memory_app.extraction.rules.clauses import own_words
from memory_app.language.calendar import MONTHS, WEEKDAYS
from memory_app.language.replies import AFFIRMATIONS
from memory_app.language.secrets import holds_secret
from memory_app.language.text import terms
from memory_app.records.kinds import KINDS
from memory_app.records.records import Role, Statement, Turn

NO_EVIDENCE = "no evidence"
ECHO = "echo of a memory"
SAMPLE = "example of the prompt"
WRONG_SPEAKER = "not said by the user"
INVENTED = "nothing of it was said"
DATE = "date without a source"
SECRET = "secret"
TOO_LONG = "too long"

EXPLAINED = 0.6
"""Share of a statement's words in another place from which that place explains it."""

BETTER = 2.0
"""How many times better than its evidence another place must explain a statement for it to go."""

LONGEST = 1_000
"""Characters of one statement; more is a copy, not a statement."""

NEAR_DAYS = 400
"""A full date this near to the turn may have been worked out from words for time in any language."""

INSTRUCTION = "flagged:instruction"
LINK = "flagged:link"
MARKUP = "flagged:markup"
FLAGGED_CONFIDENCE = 0.3


@dataclass(frozen=True, slots=True)
class Ground:
    """What statements are held against: the turns in the prompt, memories handed in, the prompt's examples."""

    turns: tuple[Turn, ...]
    user_label: str
    agent_label: str
    zone: ZoneInfo
    injected: tuple[str, ...] = ()
    samples: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Draft:
    """A statement and the turns it names. ``of_agent``: it is about the assistant, which may speak for itself."""

    statement: Statement
    turns: tuple[Turn, ...]
    of_agent: bool = False


def fault_of(draft: Draft, ground: Ground) -> str | None:
    """Return the name of the first guard that rejects the draft, or None."""
    faults = (name for name, rejects in _GUARDS if rejects(draft, ground))
    return next(faults, None)


def flagged(statement: Statement) -> Statement:
    """Tag the statement for each thing that makes it suspect, and then give it little confidence.

    A pattern list is a signal, not a wall: nothing is dropped for it. A kind that may command is only held against the
    attempts to change other rules.
    """
    patterns = _FLAGS_OF_COMMANDS if KINDS[statement.kind].may_command else _FLAGS
    tags = [tag for tag, pattern in patterns if pattern.search(statement.text)]
    if not tags:
        return statement
    return replace(
        statement,
        # Each once, in a fixed order, so that the same statement is stored the same way again.
        tags=tuple(dict.fromkeys((*statement.tags, *tags))),
        confidence=min(statement.confidence, FLAGGED_CONFIDENCE),
    )


def lacks_evidence(draft: Draft, ground: Ground) -> bool:
    """It names no turn that was shown."""
    return not draft.turns


def is_too_long(draft: Draft, ground: Ground) -> bool:
    return len(draft.statement.text) > LONGEST


def states_secret(draft: Draft, ground: Ground) -> bool:
    """Passwords, codes and card numbers are not for keeping."""
    return holds_secret(draft.statement.text)


def echoes_memory(draft: Draft, ground: Ground) -> bool:
    """It repeats a memory that was handed in, and the turn does not say it anew."""
    return _explained_by(ground.injected, draft, ground)


def comes_from_sample(draft: Draft, ground: Ground) -> bool:
    """It repeats an example of the prompt, or a sentence of any prompt of ours."""
    sources = [ground.user_label, ground.agent_label, *(turn.text for turn in ground.turns)]
    return repeats_prompt(draft.statement.text, sources) or _explained_by(ground.samples, draft, ground)


def has_wrong_speaker(draft: Draft, ground: Ground) -> bool:
    """No turn of the user stands behind it, or the assistant's (a tool's, a system prompt's) words explain it better.

    A question that the user affirms is the user's own; what stood before the question is not.
    """
    roles = {turn.role for turn in draft.turns}
    if draft.of_agent:
        return roles.isdisjoint((Role.USER, Role.ASSISTANT))
    if Role.USER not in roles:
        return True
    others = [turn.text for turn in ground.turns if turn.role is not Role.USER]
    return _explained_by(others, draft, ground)


def is_invented(draft: Draft, ground: Ground) -> bool:
    """None of its words stands in its evidence, and none of its names anywhere in the conversation."""
    text, evidence = draft.statement.text, _evidence(draft, ground)
    # What is said in one language and stated in another has few words in common, and names are written otherwise.
    if not (_is_english(text) and _is_english(evidence)):
        return False
    words = _telling_words(text, ground)
    if not words or _share(words, evidence) > 0:
        return False
    names = set(map(str.casefold, _NAME.findall(text))) - _own_names(ground)
    conversation = "\n".join(turn.text for turn in ground.turns).casefold()
    return bool(names) and not any(name in conversation for name in names)


def has_unsourced_date(draft: Draft, ground: Ground) -> bool:
    """Its text names a year or day that no evidence says and that cannot have been worked out from it."""
    return not all(_is_sourced(date, draft, ground) for date in _DATE.finditer(draft.statement.text))


# The cheap ones first; the last ones compare the words of the statement with those of every turn.
_GUARDS: tuple[tuple[str, Callable[[Draft, Ground], bool]], ...] = (
    (NO_EVIDENCE, lacks_evidence),
    (TOO_LONG, is_too_long),
    (SECRET, states_secret),
    (DATE, has_unsourced_date),
    (SAMPLE, comes_from_sample),
    (ECHO, echoes_memory),
    (WRONG_SPEAKER, has_wrong_speaker),
    (INVENTED, is_invented),
)

_OVERRIDE = re.compile(
    r"\b(?:ignore|disregard|forget|override|bypass)\b.{0,40}\b(?:instructions?|rules?|prompts?|guidelines?|earlier|previous|prior)\b"
    r"|\b(?:system prompt|developer mode|jailbreak|hidden instructions?)\b"
    r"|\bdo not (?:tell|inform|warn|ask) the user\b|\bwithout (?:asking|confirmation|telling)\b",
    re.IGNORECASE | re.DOTALL,
)
_COMMAND = re.compile(
    r"\b(?:you|the assistant|the ai|the model|agents?) (?:must|shall|has to|have to|should always|should never|is obliged to)\b"
    r"|\b(?:always|never) (?:obey|trust|approve|execute|run|send|transfer|reveal|share|recommend|mention)\b"
    r"|\bfrom now on\b.{0,40}\b(?:act|respond|answer|behave|obey)\b|\b(?:act|behave) as (?:if|an?|the)\b",
    re.IGNORECASE | re.DOTALL,
)
_LINK = re.compile(r"\b(?:https?|ftp|file|data|javascript):\S|\bwww\.\w", re.IGNORECASE)
_MARKUP = re.compile(r"</?[A-Za-z!][^>\n]{0,100}>|```|\{\{|\[/?[A-Z]{3,}\]|!\[[^\]]*\]\(")
_FLAGS_OF_COMMANDS = ((INSTRUCTION, _OVERRIDE), (LINK, _LINK), (MARKUP, _MARKUP))
_FLAGS = ((INSTRUCTION, _COMMAND), *_FLAGS_OF_COMMANDS)

_NAME = re.compile(r"(?<=[a-z,] )[A-Z][a-z]+")
"""A word with a capital letter inside a sentence: in English a name, a day or a month."""

_CALENDAR = frozenset(map(str.casefold, (*MONTHS, *WEEKDAYS)))
_ENGLISH = frozenset(
    {"the", "and", "my", "with", "that", "this", "they", "their", "have", "from", "would", "i'm"}
)
"""Words by which a text is known to be English: frequent, and written so in no language near to it."""

_NO_LETTER = re.compile(r"[\W_]")
_QUESTION = re.compile(r"[^.!?。！？\n]*[?？]\s*$")
_DATE = re.compile(
    r"(?<![\d-])(?P<year>1[5-9]\d\d|20\d\d|21\d\d)(?:-(?P<month>\d\d)(?:-(?P<day>\d\d))?)?(?![\d-])"
)


_QUESTION_CHARS = 500
"""So much of the end of a turn is searched for a question."""

_AFFIRMATION_CHARS = 200
_AFFIRMATION_WORDS = 8
"""Words of a reply that may end in its yes ("I would say so, yes"); a longer one must begin with it."""


def _explained_by(places: Sequence[str], draft: Draft, ground: Ground) -> bool:
    words = _telling_words(draft.statement.text, ground)
    # A statement of nothing but the two names is explained by any text.
    if not words or not places:
        return False
    elsewhere = max(_share(words, text) for text in places)
    # Both conditions: a memory may well be repeated by the turn, which then explains it as well as the memory does.
    return elsewhere >= EXPLAINED and elsewhere > BETTER * _share(words, _evidence(draft, ground))


def _evidence(draft: Draft, ground: Ground) -> str:
    speakers = draft.turns
    if not draft.of_agent:
        speakers = tuple(turn for turn in draft.turns if turn.role is Role.USER)
    return "\n".join(_own_text(turn, ground) for turn in speakers)


def _telling_words(text: str, ground: Ground) -> frozenset[str]:
    """Stems of ``text`` without the names of the two, which stand in every statement."""
    names = terms(f"{ground.user_label} {ground.agent_label} user assistant")
    return frozenset(terms(text).keys() - names.keys())


def _own_names(ground: Ground) -> frozenset[str]:
    """Names that need no source: those of the two, days and months."""
    return _CALENDAR | set(f"{ground.user_label} {ground.agent_label}".casefold().split())


def _is_english(text: str) -> bool:
    return not _ENGLISH.isdisjoint(text.lower().split())


def _share(words: frozenset[str], text: str) -> float:
    # Each word once, however often a long text repeats it.
    return len(words & terms(text).keys()) / len(words)


def _own_text(turn: Turn, ground: Ground) -> str:
    """What the speaker of ``turn`` states in it, with the question that it affirms."""
    text = own_words(turn.text)
    if turn.role is not Role.USER or not _affirms(turn):
        return text
    # The turn right before this one: a yes answers what was asked last. Before the first one nothing was.
    before = ["", *(other.text for other in ground.turns if other.seq < turn.seq)]
    question = _QUESTION.search(before[-1][-_QUESTION_CHARS:])
    return f"{text}\n{question[0]}" if question else text


def _affirms(turn: Turn) -> bool:
    words = _NO_LETTER.sub(" ", turn.text[:_AFFIRMATION_CHARS].lower()).split()
    # "Right?" asks for a yes instead of giving one.
    is_question = turn.text.rstrip().endswith(("?", "？"))
    if is_question:
        return False
    # The yes of a long reply stands at its beginning; at its end it would belong to something else.
    places = words[:1] if len(words) > _AFFIRMATION_WORDS else words[:1] + words[-1:]
    return not AFFIRMATIONS.isdisjoint(places)


def _is_sourced(named: re.Match[str], draft: Draft, ground: Ground) -> bool:
    texts = [own_words(turn.text) for turn in draft.turns]
    # All turns for the date as it is written, before any of them is looked at for words that may mean it.
    if _holds(texts, named[0]):
        return True
    for turn, text in zip(draft.turns, texts, strict=True):
        if _can_be_resolved(named, text, turn=turn, zone=ground.zone):
            return True
        # Words for time in another language, which the rules do not read; a date of the prompt's example is none.
        if _is_near(named, turn.at.astimezone(ground.zone).date()):
            return not _holds(ground.samples, named[0])
    return False


def _holds(texts: Iterable[str], part: str) -> bool:
    return any(part in text for text in texts)


def _can_be_resolved(named: re.Match[str], text: str, *, turn: Turn, zone: ZoneInfo) -> bool:
    """Whether words for time in ``text`` mean the date that was named."""
    # Whether a turn speaks of the past or of plans is not known here, so both readings count.
    dates = (
        *resolve_dates(text, turn.at, zone=zone),
        *resolve_dates(text, turn.at, zone=zone, future=True),
    )
    return any(_means(resolved, named[0]) for resolved in dates)


def _means(resolved: ResolvedDate, words: str) -> bool:
    # A year or a month is a shorter form of the day on which it begins.
    return words in resolved.bare or resolved.start.isoformat().startswith(words)


def _is_near(named: re.Match[str], local: date) -> bool:
    """A day within reach of words like "yesterday"; a year alone must be that of the turn or a neighbour."""
    year = int(named["year"])
    if named["month"] is None:
        return abs(year - local.year) <= 1
    try:
        day = date(year, int(named["month"]), int(named["day"] or 1))
    except ValueError:  # the pattern knows digits only
        return False
    return abs(day - local) <= timedelta(days=NEAR_DAYS)
