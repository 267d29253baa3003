"""Compare what was kept of a chat with what its case says: which facts are there, which memories are right. Pure.

A memory is right if it says a fact that one of its turns is to give, or may give. Objects are compared word by word,
so that neither a cut object nor one with a dangling clause counts; plans, requests and the like, which have no one
wording, need most of their words.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from memory_app.bench.cases import CaseChat, Fact
from memory_app.errors import InvalidInput
from memory_app.language.text import slug

FREE_RELATIONS = frozenset(
    {
        "plans_to",
        "wants_to",
        "did",
        "goal",
        "does_regularly",
        "struggles_with",
        "worries_about",
        "instruction",
    }
    | {"reminder", "hobby", "believes", "values", "starts_job_at", "keeps_at", "saves_for"}
)
"""What their objects say can be worded in many ways."""

FREE_SHARE = 0.6
"""Share of an object's words that must stand in the memory's text, for `FREE_RELATIONS`."""

STEM = 5
"""Letters by which words of free text are compared: endings differ between what is said and what is kept."""

EXTRA_WORDS = 1
"""Words that an object may have besides those of the case, such as an article."""

ID_AND_NAME = 2
"""Names by which a speaker who is alone in a chat may be stored."""

NEGATIONS = ("not_", "does_not", "no_longer", "never_", "has_no", "stopped", "left", "used_to")
"""Beginnings of relations that deny what their object says."""


@dataclass(frozen=True, slots=True)
class Kept:
    """A memory as far as it is judged. ``turns`` are the places in the chat, from 0, that it was made of."""

    text: str
    subject: str | None
    relation: str | None
    object: str | None
    is_current: bool
    turns: tuple[int, ...]
    valid_from: datetime | None = None

    def __str__(self) -> str:
        return f"{self.text} [{self.relation or 'no relation'}]"


@dataclass(frozen=True, slots=True)
class Expected:
    """A fact that a case asks for, and whether it was kept. ``has_right_date`` is None where the case names none."""

    turn: int
    fact: Fact
    is_kept: bool
    has_right_date: bool | None = None


@dataclass(frozen=True, slots=True)
class Judged:
    """A memory, and whether it is right. ``is_invention``: it was made of turns that give nothing."""

    memory: Kept
    is_right: bool
    is_invention: bool


@dataclass(frozen=True, slots=True)
class State:
    """What must hold, or must not, after the last turn of a chat, and whether that is so."""

    fact: Fact
    must_hold: bool
    is_right: bool


@dataclass(frozen=True, slots=True)
class Verdict:
    """All that is said of one chat."""

    chat: CaseChat
    expected: tuple[Expected, ...]
    judged: tuple[Judged, ...]
    states: tuple[State, ...]


def judge(chat: CaseChat, memories: Sequence[Kept], *, user: str) -> Verdict:
    """Hold ``memories`` of a chat against its case. ``user`` is the label by which the speaker is stored."""
    names = [user, *(turn.name for turn in chat.turns if turn.name)]
    speakers = frozenset(map(_key, names))

    def was_said(fact: Fact) -> bool:
        # What was never kept does not hold either, which proves nothing.
        return any(says(memory, fact, speakers) for memory in memories)

    return Verdict(
        chat,
        expected=tuple(_expected(chat, memories, speakers)),
        judged=tuple(_judged(memory, chat, speakers) for memory in memories),
        states=(
            *(State(fact, True, _holds(fact, memories, speakers)) for fact in chat.now),
            *(
                State(fact, False, not _holds(fact, memories, speakers))
                for fact in chat.not_now
                if was_said(fact)
            ),
        ),
    )


def says(memory: Kept, fact: Fact, speakers: frozenset[str]) -> bool:
    """Whether the memory says the fact, of the right person. ``speakers`` are slugs of the speaker's names."""
    if not _is_about(memory, fact, speakers):
        return False
    if fact.relation is None:
        return all(_stem_is_in(word, memory.text) for word in fact.words)
    denies = (memory.relation or "").startswith(NEGATIONS)
    if (fact.is_negated or fact.has_ended) and denies:
        return _has_words(memory.object or memory.text, fact.objects)
    if fact.is_negated or fact.has_ended:
        return False
    if fact.relation in FREE_RELATIONS:
        # Relations made of a verb ("cycled_from") have as many names as there are verbs: the words tell.
        return not denies and _has_words(memory.text, fact.objects)
    if memory.relation not in fact.relations:
        return False
    return any(_is_object(memory.object or "", form) for form in fact.objects)


def _expected(chat: CaseChat, memories: Sequence[Kept], speakers: frozenset[str]) -> Iterable[Expected]:
    for place, turn in enumerate(chat.turns):
        own = [memory for memory in memories if place in memory.turns]
        for fact in turn.keep:
            hits = [memory for memory in own if says(memory, fact, speakers)]
            is_kept = bool(hits) or (fact.has_ended and _was_closed(fact, memories, speakers))
            right_date = None
            if fact.since is not None and hits:
                right_date = any(_begins(memory, fact.since, turn.at) for memory in hits)
            yield Expected(place, fact, is_kept=is_kept, has_right_date=right_date)


def _judged(memory: Kept, chat: CaseChat, speakers: frozenset[str]) -> Judged:
    turns = [chat.turns[place] for place in memory.turns]
    facts = [fact for turn in turns for fact in (*turn.keep, *turn.may)]
    if turns:
        # What a correction or an ending leaves behind may be said in the words of the state after it.
        facts += chat.now
    return Judged(
        memory,
        is_right=any(says(memory, fact, speakers) for fact in facts),
        is_invention=bool(turns) and all(turn.nothing for turn in turns),
    )


def _holds(fact: Fact, memories: Sequence[Kept], speakers: frozenset[str]) -> bool:
    return any(memory.is_current and says(memory, fact, speakers) for memory in memories)


def _was_closed(fact: Fact, memories: Sequence[Kept], speakers: frozenset[str]) -> bool:
    """Whether a memory that said the opposite of the ending was there and is no longer current."""
    former = fact.model_copy(update={"has_ended": False, "is_negated": False})
    said = [memory for memory in memories if says(memory, former, speakers)]
    return bool(said) and not any(memory.is_current for memory in said)


def _is_about(memory: Kept, fact: Fact, speakers: frozenset[str]) -> bool:
    subject = _key(memory.subject or "")
    about = _key(fact.about or "")
    if not about or about in speakers:
        # A single speaker is stored by the user's id or by the name shown, one of several by that name only.
        is_one_of_several = about and len(speakers) > ID_AND_NAME
        return not subject or subject in ({about} if is_one_of_several else speakers)
    words = set(about.split("_"))
    if subject and subject not in speakers:
        return words <= set(subject.split("_"))
    # "Mira's wife Velma works at …" may be kept as a statement of the speaker that names whom it is about.
    return words <= set(_key(f"{memory.object or ''} {memory.text}").split("_"))


def _is_object(stored: str, form: str) -> bool:
    """The words of ``form`` and hardly more, or for numbers and dates the same figures."""
    have, want = _key(stored).split("_"), _key(form).split("_")
    return set(want) <= set(have) and len(have) <= len(want) + EXTRA_WORDS


def _has_words(text: str, forms: Sequence[str]) -> bool:
    """Whether most words of one of ``forms`` stand in ``text``."""
    for form in forms:
        words = _key(form).split("_")
        hits = sum(_stem_is_in(word, text) for word in words)
        if hits >= FREE_SHARE * len(words):
            return True
    return False


def _stem_is_in(word: str, text: str) -> bool:
    """Whether a word of ``text`` begins as ``word`` does; scripts without blanks are searched as they are."""
    stem = _key(word)[:STEM]
    words = _key(text)
    return any(other.startswith(stem) for other in words.split("_")) or (not word.isascii() and stem in words)


def _begins(memory: Kept, since: str, said_at: datetime) -> bool:
    """Whether it holds from the date, month or year named, by the clock of the speaker."""
    if memory.valid_from is None:
        return False
    return memory.valid_from.astimezone(said_at.tzinfo).date().isoformat().startswith(since)


def _key(text: str) -> str:
    """Lower case, without punctuation, words joined by ``_``; empty where no letter is."""
    try:
        return slug(text)
    except InvalidInput:
        return ""
