"""Extract statements from turns by rules, without a model, a clock or any I/O.

Precision comes before recall: a clause that no rule reads with certainty states nothing. Only turns of the
role ``user`` state facts: what the assistant explained, a tool answered or a prompt contained is not theirs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import chain
from uuid import UUID
from zoneinfo import ZoneInfo

from memory_app.extraction.rules.clauses import own_words
from memory_app.extraction.rules.english_statements import english_statements
from memory_app.extraction.rules.names import mentions_of
from memory_app.extraction.rules.pack_statements import pack_statements
from memory_app.extraction.rules.packs.pack import Pack, pack_of
from memory_app.extraction.rules.packs.turn_language import ENGLISH, READ_LANGUAGES, language_of
from memory_app.extraction.rules.statements import SHORTEST, Speaker, united
from memory_app.language.marks import without_marks
from memory_app.language.replies import ACKNOWLEDGEMENTS
from memory_app.records.records import Extraction, Mention, Role, Statement, Turn

ACKNOWLEDGEMENT_WORDS = 12
"""A longer text is read even where every word of it is one of agreement or thanks."""

AGENT_TEXT_LIMIT = 20_000
"""Characters of an assistant's turn in which a repetition by the user is looked for."""

TOO_SHORT = "too short"
ACKNOWLEDGEMENT = "acknowledgement"
NOT_NOTEWORTHY = "nothing noteworthy"
NOT_THE_USER = "not said by the user"
NO_TEXT = "the message has no text"
NOT_READ = "language not read by rules"
"""Followed by the code of the language."""

_NO_WORD = re.compile(r"[^\w']|_")


def extract(
    turns: Sequence[Turn],
    earlier: Sequence[Turn],
    *,
    user_label: str,
    agent_label: str,
    time_zone: ZoneInfo,
    labels: Sequence[str] = (),
) -> Extraction:
    """Return statements, entity candidates and reasons for ``turns`` of one session, in order.

    ``earlier`` are up to three turns before them, from which comes who takes part and what the assistant wrote
    already. ``labels`` are those of the scope's entities (``label`` or ``type:label``). Linear in the text.
    """
    all_turns = (*earlier, *turns)
    people = frozenset({turn.speaker for turn in all_turns} - {"user", "assistant", ""})
    statements: list[Statement] = []
    mentions: dict[UUID, tuple[Mention, ...]] = {}
    reasons: dict[UUID, str] = {}
    for turn in turns:
        before = tuple(other for other in all_turns if other.seq < turn.seq)
        language = language_of(turn, before) if turn.role in (Role.USER, Role.ASSISTANT) else ENGLISH
        pack = pack_of(language)
        text = own_words(turn.text)
        # Entities count whoever names them; only statements have to be the user's.
        if turn.role in (Role.USER, Role.ASSISTANT):
            mentions[turn.id] = _mentions(text, pack, people=people, labels=labels)
        reason = reason_to_skip(turn, pack)
        if reason:
            reasons[turn.id] = reason
            continue
        speaker = Speaker(
            turn=turn,
            label=user_label if turn.speaker.lower() in ("user", "") else turn.speaker,
            agent=agent_label,
            agent_text=_agent_text(all_turns, turn),
            zone=time_zone,
            people=people,
            labels=tuple(labels),
        )
        if pack is None:
            of_turn = english_statements(speaker, text)
        else:
            of_turn = pack_statements(speaker, pack)
            names = tuple(chain.from_iterable(statement.mentions for statement in of_turn))
            mentions[turn.id] = united(names, mentions[turn.id])
        statements.extend(of_turn)
        if not of_turn:
            is_read = language in READ_LANGUAGES
            reasons[turn.id] = NOT_NOTEWORTHY if is_read else f"{NOT_READ}: {language}"
    return Extraction(tuple(statements), mentions, reasons)


def _mentions(
    text: str, pack: Pack | None, *, people: Iterable[str], labels: Sequence[str]
) -> tuple[Mention, ...]:
    # Where nouns have capitals too, a capital is no sign of a name: then only names that are known count.
    if pack is not None and pack.file.capital_nouns:
        return mentions_of(text.lower(), labels=labels)
    return mentions_of(text, people=people, labels=labels)


def reason_to_skip(turn: Turn, pack: Pack | None = None) -> str | None:
    """Return why a turn by itself states nothing worth keeping, or None. ``pack`` is that of its language."""
    text = without_marks(turn.text).strip()
    if not text:
        return NO_TEXT
    if turn.role is not Role.USER:
        return NOT_THE_USER
    # 200 characters hold `ACKNOWLEDGEMENT_WORDS`; a long paste need not be cut into words for this.
    if _is_acknowledgement(text[:200], pack):
        return ACKNOWLEDGEMENT
    # The patterns of a pack need no such limit: "Ich bin Veganer." is a fact.
    if pack is not None:
        return None
    return TOO_SHORT if len(text) < SHORTEST else None


def _is_acknowledgement(text: str, pack: Pack | None) -> bool:
    known = ACKNOWLEDGEMENTS | pack.acknowledgements if pack else ACKNOWLEDGEMENTS
    # A text without any word, such as an emoji, counts as one.
    words = _NO_WORD.sub(" ", text.lower()).split()
    return len(words) <= ACKNOWLEDGEMENT_WORDS and known.issuperset(words)


def _agent_text(turns: Iterable[Turn], current: Turn) -> str:
    """What the assistant wrote before ``current``, in lower case."""
    before = (turn for turn in turns if turn.role is Role.ASSISTANT and turn.seq < current.seq)
    return "\n".join(turn.text[:AGENT_TEXT_LIMIT] for turn in before).lower()
