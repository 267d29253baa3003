"""Extract statements from turns by rules, without a model, a clock or any I/O.

Precision comes before recall: a clause that no rule reads with certainty states nothing. Only turns of the
role ``user`` state facts: what the assistant explained, a tool answered or a prompt contained is not theirs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from uuid import UUID
from zoneinfo import ZoneInfo

from memory_app.extraction.rules.clauses import own_words
from memory_app.extraction.rules.names import mentions_of
from memory_app.extraction.rules.pack_statements import pack_statements
from memory_app.extraction.rules.packs.clauses import own_text
from memory_app.extraction.rules.packs.pack import Pack, pack_of
from memory_app.extraction.rules.packs.privacy import asks_for_privacy
from memory_app.extraction.rules.packs.turn_language import READ_LANGUAGES, language_of
from memory_app.extraction.rules.statements import Speaker, united
from memory_app.language.marks import without_marks
from memory_app.language.replies import ACKNOWLEDGEMENTS
from memory_app.language.secrets import holds_secret
from memory_app.records.records import WITHHELD, Extraction, Mention, Role, Statement, Turn

ACKNOWLEDGEMENT_WORDS = 12
"""A longer text is read even where every word of it is one of agreement or thanks."""

AGENT_TEXT_LIMIT = 20_000
"""Characters of an assistant's turn in which a repetition by the user is looked for."""

CORRECTABLE_TURNS = 3
"""Turns of the user before one that corrects."""

ACKNOWLEDGEMENT = "acknowledgement"
NOT_NOTEWORTHY = "nothing noteworthy"
NOT_THE_USER = "not said by the user"
NO_TEXT = "the message has no text"
HOLDS_SECRET = "guarded: names a password, a key or a card number"
NOT_READ = "language not read by rules"
"""Followed by the code of the language."""

_NO_WORD = re.compile(r"[^\w']|_")


@dataclass(frozen=True, slots=True)
class _Session:
    """What the turns of a call have in common; ``turns`` are those before them, too."""

    turns: Sequence[Turn]
    user_label: str
    agent_label: str
    zone: ZoneInfo
    people: frozenset[str]
    labels: tuple[str, ...]
    known_people: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class _TurnRead:
    """What was read in one turn. ``reason`` says why it states nothing; ``mentions`` None: none were looked for."""

    statements: Sequence[Statement] = ()
    mentions: tuple[Mention, ...] | None = None
    reason: str | None = None


def extract(
    turns: Sequence[Turn],
    earlier: Sequence[Turn],
    *,
    user_label: str,
    agent_label: str,
    time_zone: ZoneInfo,
    labels: Sequence[str] = (),
    known_people: Iterable[str] = (),
) -> Extraction:
    """Return statements, entity candidates and reasons for ``turns`` of one session, in order.

    ``earlier`` are up to three turns before them, from which comes who takes part and what the assistant wrote
    already. ``labels`` are those of the scope's entities (``label`` or ``type:label``), ``known_people`` those of the
    people among them. Linear in the text.
    """
    all_turns = (*earlier, *turns)
    people = frozenset({turn.speaker for turn in all_turns} - {"user", "assistant", ""})
    by_name = {name.lower(): name for name in known_people}
    session = _Session(all_turns, user_label, agent_label, time_zone, people, tuple(labels), by_name)
    by_turn: dict[UUID, _TurnRead] = {}
    for turn in turns:
        by_turn[turn.id] = _read(session, turn)
        # Whom a turn names, the next ones may name alone, as if they were a later call.
        by_name |= _people_of(by_turn[turn.id].statements)
    return Extraction(
        tuple(chain.from_iterable(read.statements for read in by_turn.values())),
        {turn_id: read.mentions for turn_id, read in by_turn.items() if read.mentions is not None},
        {turn_id: read.reason for turn_id, read in by_turn.items() if read.reason},
    )


def _people_of(statements: Iterable[Statement]) -> dict[str, str]:
    mentions = chain.from_iterable(statement.mentions for statement in statements)
    return {mention.label.lower(): mention.label for mention in mentions if mention.type == "person"}


def _read(session: _Session, turn: Turn) -> _TurnRead:
    if turn.role not in (Role.USER, Role.ASSISTANT):
        return _TurnRead(reason=_reason_to_skip(turn))
    before = tuple(other for other in session.turns if other.seq < turn.seq)
    language = language_of(turn, before)
    pack = pack_of(language)
    text = own_words(turn.text)
    # Entities count whoever names them; only statements have to be the user's.
    mentions = _mentions(session, text, pack)
    reason = _reason_to_skip(turn, pack)
    if reason:
        return _TurnRead(mentions=mentions, reason=reason)
    if pack is None:
        return _TurnRead(mentions=mentions, reason=_reason_for_nothing(text, language))
    own = own_text(pack, turn.text)
    if asks_for_privacy(pack, own):
        return _TurnRead(mentions=mentions, reason=WITHHELD)
    statements = pack_statements(_speaker(session, turn, before), pack, own)
    names = tuple(chain.from_iterable(statement.mentions for statement in statements))
    mentions = united(names, mentions)
    return _TurnRead(statements, mentions, None if statements else _reason_for_nothing(text, language))


def _speaker(session: _Session, turn: Turn, before: Sequence[Turn]) -> Speaker:
    has_name = turn.speaker.lower() not in ("user", "")
    return Speaker(
        turn=turn,
        label=turn.speaker if has_name else session.user_label,
        agent=session.agent_label,
        agent_text=_agent_text(before),
        zone=session.zone,
        people=session.people,
        labels=session.labels,
        earlier=_correctable(before),
        known_people=session.known_people,
        is_asked=_is_asked(before),
    )


def _correctable(before: Iterable[Turn]) -> tuple[Turn, ...]:
    """The last of the user's turns; nobody corrects in half a sentence what was said long ago."""
    return tuple(turn for turn in before if turn.role is Role.USER)[-CORRECTABLE_TURNS:]


def _is_asked(before: Sequence[Turn]) -> bool:
    """Whether the assistant asked something in the turn before."""
    last = before[-1] if before else None
    return last is not None and last.role is Role.ASSISTANT and "?" in last.text


def _reason_for_nothing(text: str, language: str) -> str:
    if holds_secret(text):
        return HOLDS_SECRET
    return NOT_NOTEWORTHY if language in READ_LANGUAGES else f"{NOT_READ}: {language}"


def _mentions(session: _Session, text: str, pack: Pack | None) -> tuple[Mention, ...]:
    # Where nouns have capitals too, a capital is no sign of a name: then only names that are known count.
    if pack is not None and pack.file.capital_nouns:
        return mentions_of(text.lower(), labels=session.labels)
    return mentions_of(text, people=session.people, labels=session.labels)


def reason_of_turn(turn: Turn) -> str | None:
    """Return why a turn states nothing whatever reads it, or None. Its language is that of its own words."""
    pack = pack_of(language_of(turn, ()))
    reason = _reason_to_skip(turn, pack)
    if reason or pack is None:
        return reason
    return WITHHELD if asks_for_privacy(pack, own_text(pack, turn.text)) else None


def _reason_to_skip(turn: Turn, pack: Pack | None = None) -> str | None:
    """Why a turn need not be read, or None. ``pack`` is that of its language."""
    text = without_marks(turn.text).strip()
    if not text:
        return NO_TEXT
    if turn.role is not Role.USER:
        return NOT_THE_USER
    # 200 characters hold `ACKNOWLEDGEMENT_WORDS`; a long paste need not be cut into words for this.
    return ACKNOWLEDGEMENT if _is_acknowledgement(text[:200], pack) else None


def _is_acknowledgement(text: str, pack: Pack | None) -> bool:
    acknowledgements = ACKNOWLEDGEMENTS | pack.words.acknowledgements if pack else ACKNOWLEDGEMENTS
    # A text without any word, such as an emoji, counts as one.
    words = _NO_WORD.sub(" ", text.lower()).split()
    return len(words) <= ACKNOWLEDGEMENT_WORDS and acknowledgements.issuperset(words)


def _agent_text(turns: Iterable[Turn]) -> str:
    """What the assistant wrote in these turns, in lower case."""
    texts = (turn.text[:AGENT_TEXT_LIMIT] for turn in turns if turn.role is Role.ASSISTANT)
    return "\n".join(texts).lower()
