"""Hold what a model states about a conversation against the conversation. Pure rules, one function each.

Words are compared by stem. A paraphrase, or a statement in another language than its turn, shares few words with its
evidence, so some missing words never reject: a statement goes when something else explains it better than the turns
it names do, such as a memory that was handed in, an example of the prompt, or the assistant's own speech. Where the
evidence is in English, it goes as well when it has a name that nobody said, or not a word of what the user said.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from zoneinfo import ZoneInfo

from memory_app.extraction.llm import date_sources
from memory_app.extraction.llm.instructions import FROM_INSTRUCTIONS, repeats_instructions
from memory_app.extraction.llm.prompt_echo import repeats_prompt
from memory_app.extraction.rules.clauses import own_words
from memory_app.language.calendar import MONTHS, WEEKDAYS
from memory_app.language.replies import AFFIRMATIONS
from memory_app.language.secrets import holds_secret
from memory_app.language.text import terms
from memory_app.memories.forbidden import FORBIDDEN, is_forbidden
from memory_app.memories.guards import content_words, words_only_in
from memory_app.records.instructions import NO_INSTRUCTIONS, Instructions
from memory_app.records.kinds import KINDS
from memory_app.records.records import Role, Statement, Turn

NO_EVIDENCE = "no evidence"
ECHO = "echo of a memory"
SAMPLE = "example of the prompt"
WRONG_SPEAKER = "not said by the user"
INVENTED = "nothing of it was said"
NEW_NAME = "a name that nobody said"
DATE = "date without a source"
NUMBERS = "a number that nobody said"
SECRET = "secret"
TOO_LONG = "too long"

EXPLAINED = 0.6
"""Share of a statement's words in another place from which that place explains it."""

BETTER = 2.0
"""How many times better than its evidence another place must explain a statement for it to go."""

LONGEST = 1_000
"""Characters of one statement; more is a copy, not a statement."""


@dataclass(frozen=True, slots=True)
class Ground:
    """What statements are held against: the turns in the prompt, memories handed in, the prompts' examples.

    ``labels`` are known entities, by which a model may call what a turn calls otherwise.
    """

    turns: tuple[Turn, ...]
    user_label: str
    agent_label: str
    zone: ZoneInfo
    injected: tuple[str, ...] = ()
    samples: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    instructions: Instructions = NO_INSTRUCTIONS


@dataclass(frozen=True, slots=True)
class Draft:
    """A statement and the turns it names. ``of_agent``: it is about the assistant, which may speak for itself."""

    statement: Statement
    turns: tuple[Turn, ...]
    of_agent: bool = False


def fault_of(draft: Draft, ground: Ground) -> str | None:
    """Return the name of the first guard that rejects the draft, or None."""
    for fault, rejects in _GUARDS:
        if rejects(draft, ground):
            return fault
    return None


def lacks_evidence(draft: Draft, ground: Ground) -> bool:
    """It names no turn that was shown."""
    return not draft.turns


def is_too_long(draft: Draft, ground: Ground) -> bool:
    return len(draft.statement.text) > LONGEST


def states_secret(draft: Draft, ground: Ground) -> bool:
    """Passwords, codes and card numbers are not for keeping."""
    return holds_secret(draft.statement.text)


def is_never_kept(draft: Draft, ground: Ground) -> bool:
    """It is about what the agent's instructions forbid to keep."""
    return is_forbidden(draft.statement.text, ground.instructions.never)


def comes_from_instructions(draft: Draft, ground: Ground) -> bool:
    """It says what the agent's instructions say, and the turns do not."""
    texts = [ground.user_label, ground.agent_label, *(turn.text for turn in ground.turns)]
    return repeats_instructions(draft.statement.text, texts, ground.instructions)


def echoes_memory(draft: Draft, ground: Ground) -> bool:
    """It repeats a memory that was handed in, and the turn does not say it anew."""
    return _explained_by(ground.injected, draft, ground)


def comes_from_sample(draft: Draft, ground: Ground) -> bool:
    """It repeats an example of the prompt, or a sentence of any prompt of ours."""
    texts = [turn.text for turn in ground.turns]
    # A name of the two may stand in a prompt as well; whoever repeats it repeats no prompt.
    sources = [ground.user_label, ground.agent_label, *texts]
    if repeats_prompt(draft.statement.text, sources):
        return True
    return _explained_by(ground.samples, draft, ground)


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


def has_new_name(draft: Draft, ground: Ground) -> bool:
    """It names somebody or something that no turn and no known label names."""
    return states_new_name(draft.statement.text, ground, evidence=_evidence(draft, ground))


def states_new_name(text: str, ground: Ground, *, evidence: str) -> bool:
    """Whether ``text`` has a name that does not come from the conversation. False where that cannot be told."""
    # In other languages than English nouns have capitals, or names another form than in the statement.
    if not _is_english(evidence):
        return False
    names = {name for name in _NAME.findall(text) if name.casefold() not in _own_names(ground)}
    if not names:
        return False
    said = "\n".join([*(turn.text for turn in ground.turns), *ground.labels])
    words = set(_LETTERS.findall(said.casefold()))
    beginnings = {word[:VARIANT_LETTERS] for word in words}
    # "NYC" is New York City, or New York at the least.
    initials = "".join(name[0] for name in _NAME.findall(text))
    if any(short in initials for short in _INITIALS.findall(said)):
        return False
    return any(not is_said(name.casefold(), words, beginnings) for name in names)


def is_said(name: str, words: AbstractSet[str], beginnings: AbstractSet[str]) -> bool:
    """Whether ``name`` was said, perhaps in another form: German and Germany, Sevilla and Seville."""
    if name in words:
        return True
    is_long = len(name) >= VARIANT_LETTERS
    return is_long and name[:VARIANT_LETTERS] in beginnings


def is_invented(draft: Draft, ground: Ground) -> bool:
    """Too few words of meaning in it come from what the user said, whichever turn said it.

    A word alone proves nothing: whoever has had no meat on the plate for years is a vegetarian. What is concluded of a
    conversation may be in words of its own but for one.
    """
    if not _is_english(_evidence(draft, ground)):
        return False
    words = content_words(draft.statement.text) - content_words(f"{ground.user_label} {ground.agent_label}")
    # Numbers and dates have guards of their own.
    telling = frozenset(filter(str.isalpha, words)) - AUXILIARIES
    if len(telling) < _FEWEST_TELLING:
        return False
    speakers = (Role.USER, Role.ASSISTANT) if draft.of_agent else (Role.USER,)
    said = "\n".join(_own_text(turn, ground) for turn in ground.turns if turn.role in speakers)
    known = telling - words_only_in(draft.statement.text, said)
    is_fact = KINDS[draft.statement.kind].is_curated
    return len(known) < _FOUNDED * len(telling) if is_fact else not known


def has_unsourced_date(draft: Draft, ground: Ground) -> bool:
    """Its text names a year or day that no evidence says and that cannot have been worked out from it."""
    return date_sources.has_unsourced_date(
        draft.statement.text, draft.turns, samples=ground.samples, zone=ground.zone
    )


# The cheap ones first; the last ones compare the words of the statement with those of every turn.
_GUARDS: tuple[tuple[str, Callable[[Draft, Ground], bool]], ...] = (
    (NO_EVIDENCE, lacks_evidence),
    (TOO_LONG, is_too_long),
    (SECRET, states_secret),
    (FORBIDDEN, is_never_kept),
    (FROM_INSTRUCTIONS, comes_from_instructions),
    (DATE, has_unsourced_date),
    (SAMPLE, comes_from_sample),
    (ECHO, echoes_memory),
    (WRONG_SPEAKER, has_wrong_speaker),
    (NEW_NAME, has_new_name),
    (INVENTED, is_invented),
)

_NAME = re.compile(r"(?<=[a-z,] )[A-Z][a-z]+")
"""A word with a capital letter inside a sentence: in English a name, a day or a month."""

_FOUNDED = 0.25
"""Share of a fact's words of meaning that the user must have said. Of facts that were noted of real conversations about
2 % have less; held against another place of the same conversation, three of four."""

_LETTERS = re.compile(r"[^\W\d_]+")
_INITIALS = re.compile(r"\b[A-Z]{2,5}\b")
VARIANT_LETTERS = 5
"""Letters that two forms of one name have in common at their beginning."""

AUXILIARIES = frozenset({"will", "shall", "could", "should", "might", "must"})
_FEWEST_TELLING = 2
"""Words of meaning, besides the names of the two, from which on none of them having been said is no coincidence."""

_CALENDAR = frozenset(map(str.casefold, (*MONTHS, *WEEKDAYS)))
_ENGLISH = frozenset(
    {
        *("the", "and", "my", "with", "that", "this", "they", "their", "have", "from", "would", "been"),
        *(
            "i'm",
            "i've",
            "i'd",
            "don't",
            "it's",
            "you",
            "your",
            "not",
            "which",
            "because",
            "about",
            "she",
            "his",
        ),
    }
)
"""Words by which a text is known to be English: frequent, and written so in no language near to it."""

_NO_LETTER = re.compile(r"[\W_]")
_QUESTION = re.compile(r"[^.!?。！？\n]*[?？]\s*$")
_QUESTION_CHARS = 500
"""So much of the end of a turn is searched for a question."""

_AFFIRMATION_CHARS = 200
_AFFIRMATION_WORDS = 8
"""Words of a reply that may end in its yes ("I would say so, yes"); a longer one must begin with it."""


def _explained_by(places: Sequence[str], draft: Draft, ground: Ground) -> bool:
    """Whether one of these texts explains the statement, and explains it better than its evidence does."""
    words = _telling_words(draft.statement.text, ground)
    # A statement of nothing but the two names is explained by any text.
    if not words or not places:
        return False
    elsewhere = max(_share(words, text) for text in places)
    if elsewhere < EXPLAINED:
        return False
    # A memory may well be repeated by the turn, which then explains it as well as the memory does.
    return elsewhere > BETTER * _share(words, _evidence(draft, ground))


def _evidence(draft: Draft, ground: Ground) -> str:
    """What was said in the turns that the statement names, by those who may say it."""
    turns = draft.turns
    if not draft.of_agent:
        turns = _turns_of_user(draft.turns)
    texts = [_own_text(turn, ground) for turn in turns]
    return "\n".join(texts)


def _turns_of_user(turns: Sequence[Turn]) -> tuple[Turn, ...]:
    return tuple(turn for turn in turns if turn.role is Role.USER)


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
    """How many of ``words`` stand in ``text``: 0 to 1."""
    # Each word once, however often a long text repeats it.
    return len(words & terms(text).keys()) / len(words)


def _own_text(turn: Turn, ground: Ground) -> str:
    """What the speaker of ``turn`` states in it, with the question that it affirms."""
    text = own_words(turn.text)
    if turn.role is not Role.USER:
        return text
    if not _affirms(turn):
        return text
    question = _question_before(turn, ground)
    return f"{text}\n{question}" if question else text


def _question_before(turn: Turn, ground: Ground) -> str:
    """The question at the end of the turn right before this one; empty where there is none."""
    before = [other.text for other in ground.turns if other.seq < turn.seq]
    if not before:
        return ""
    # Only the last one: a yes answers what was asked last.
    end = before[-1][-_QUESTION_CHARS:]
    question = _QUESTION.search(end)
    return question[0] if question else ""


def _affirms(turn: Turn) -> bool:
    # "Right?" asks for a yes instead of giving one.
    is_question = turn.text.rstrip().endswith(("?", "？"))
    if is_question:
        return False
    beginning = turn.text[:_AFFIRMATION_CHARS].lower()
    words = _NO_LETTER.sub(" ", beginning).split()
    places = words[:1]
    # The yes of a long reply stands at its beginning; at its end it would belong to something else.
    if len(words) <= _AFFIRMATION_WORDS:
        places += words[-1:]
    return not AFFIRMATIONS.isdisjoint(places)
