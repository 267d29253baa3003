"""The rule extractor: turns in, statements out, without a model, a clock or any I/O.

Precision comes before recall: a clause that no rule reads with certainty states nothing. Only turns of the
role ``user`` state facts: what the assistant explained, a tool answered or a prompt contained is not theirs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, time
from uuid import UUID
from zoneinfo import ZoneInfo

from memory_app.extraction.rules.clauses import own_words, sentences
from memory_app.extraction.rules.dates import Precision, ResolvedDate
from memory_app.extraction.rules.grammar import third_person
from memory_app.extraction.rules.matching import Clause, Match, match_clause, read_clause, split_predicates
from memory_app.extraction.rules.names import mentions_of
from memory_app.extraction.rules.patterns import Rule, When
from memory_app.extraction.rules.people import about_relative, relatives_of
from memory_app.extraction.rules.requests import to_remember, wish_of
from memory_app.language.replies import ACKNOWLEDGEMENTS
from memory_app.language.secrets import holds_secret
from memory_app.memories.relations import normalise_relation
from memory_app.records.records import Extraction, Mention, Origin, Role, Statement, Turn

SHORTEST = 20
"""Characters below which a text is skipped (spec: texts under 20 characters state nothing worth keeping)."""

STATEMENTS_AT_MOST = 24
"""Statements kept of one turn; more come from pasted text."""

TOO_SHORT = "too short"
ACKNOWLEDGEMENT = "acknowledgement"
NOT_NOTEWORTHY = "nothing noteworthy"
NOT_THE_USER = "not said by the user"


@dataclass(frozen=True, slots=True)
class _Speaker:
    turn: Turn
    label: str
    agent: str
    zone: ZoneInfo
    people: frozenset[str]
    known: tuple[str, ...]


def extract(
    turns: Sequence[Turn],
    earlier: Sequence[Turn],
    *,
    user_label: str,
    agent_label: str,
    time_zone: ZoneInfo,
    known: Sequence[str] = (),
) -> Extraction:
    """Statements, entity candidates and reasons for ``turns`` of one session, in order.

    ``earlier`` are up to three turns before them: they tell who takes part and what was already said by the
    assistant. ``known`` are labels of the scope's entities (``label`` or ``type:label``). Linear in the text.
    """
    people = frozenset({turn.speaker for turn in (*earlier, *turns)} - {"user", "assistant", ""})
    statements: list[Statement] = []
    mentions: dict[UUID, tuple[Mention, ...]] = {}
    reasons: dict[UUID, str] = {}
    for turn in turns:
        label = user_label if turn.speaker.lower() in ("user", "") else turn.speaker
        speaker = _Speaker(turn, label, agent_label, time_zone, people, tuple(known))
        said = own_words(turn.text)
        if turn.role in (Role.USER, Role.ASSISTANT):
            mentions[turn.id] = mentions_of(said, people=people, known=known)
        reason = _reason_to_skip(turn)
        found = [] if reason else _statements(speaker, said, _agent_text((*earlier, *turns), turn))
        statements.extend(found)
        if not found:
            reasons[turn.id] = reason or NOT_NOTEWORTHY
    return Extraction(tuple(statements), mentions, reasons)


def _reason_to_skip(turn: Turn) -> str | None:
    if turn.role is not Role.USER:
        return NOT_THE_USER
    text = turn.text.strip()
    if _is_acknowledgement(text[:200]):
        return ACKNOWLEDGEMENT
    return TOO_SHORT if len(text) < SHORTEST else None


def _is_acknowledgement(text: str) -> bool:
    tokens = "".join(c if c.isalnum() or c == "'" else " " for c in text.lower()).split()
    return len(tokens) <= 12 and all(token in ACKNOWLEDGEMENTS for token in tokens)


def _agent_text(turns: Iterable[Turn], current: Turn) -> str:
    said = (t.text[:20_000] for t in turns if t.role is Role.ASSISTANT and t.seq < current.seq)
    return "\n".join(said).lower()


def _statements(speaker: _Speaker, said: str, agent_said: str) -> list[Statement]:
    found: dict[tuple[object, ...], Statement] = {}
    for sentence in sentences(said):
        repeats_agent = len(sentence.text) >= SHORTEST and sentence.text.lower() in agent_said
        if repeats_agent or holds_secret(sentence.text):
            continue
        for statement in _of_sentence(speaker, sentence.text, sentence.clauses):
            key = (statement.kind, statement.subject, statement.relation, (statement.object or "").lower())
            found.setdefault(key, statement)
        if len(found) >= STATEMENTS_AT_MOST:
            break
    return list(found.values())[:STATEMENTS_AT_MOST]


def _of_sentence(speaker: _Speaker, text: str, clauses: Sequence[str]) -> Iterator[Statement]:
    wish = wish_of(text, agent_label=speaker.agent)
    fact = to_remember(text)
    if wish is not None:
        made = _statement(speaker, speaker.label, wish.relation, wish.object, wish.says)
        yield replace(made, kind="expression", subtype=None)
    elif fact is not None:
        yield from _remembered(speaker, fact)
    else:
        yield from _relatives(speaker, text)
        for clause in clauses:
            for single in split_predicates(clause):
                yield from _of_clause(speaker, single)


def _remembered(speaker: _Speaker, fact: str) -> Iterator[Statement]:
    """What the user asked to be remembered: by the rules where they read it, else as it was said."""
    made = [*_relatives(speaker, fact), *_of_clause(speaker, fact)]
    if not made and " you" not in fact.lower() and len(fact.split()) >= 3:
        said = third_person(fact)
        made = [
            _statement(speaker, speaker.label, "asked_to_remember", said, f"asked to remember that {said}")
        ]
    for statement in made:
        yield replace(statement, importance=max(statement.importance or 0, 7), tags=("explicit",))


def _relatives(speaker: _Speaker, text: str) -> Iterator[Statement]:
    for relative in relatives_of(text, not_named={name.lower() for name in speaker.people}):
        says = f"has a {relative.term} called {relative.name}"
        made = _statement(speaker, speaker.label, relative.relation, relative.name, says)
        named = Mention("thing" if relative.is_pet else "person", relative.name)
        yield replace(made, subtype="relationship", importance=7, mentions=_united((named,), made.mentions))


def _of_clause(speaker: _Speaker, text: str) -> Iterator[Statement]:
    clause = read_clause(text, speaker.turn.at, zone=speaker.zone)
    if clause is None:
        return
    relative = about_relative(clause.text)
    subject = speaker.label
    if relative is not None:
        subject = relative.name or f"{speaker.label}'s {relative.term}"
        clause = clause.said_by(relative.verb, relative.rest)
    today = speaker.turn.at.astimezone(speaker.zone).date()
    for match in match_clause(clause, of_relative=relative is not None, today=today):
        yield _from_match(speaker, subject, clause, match)


def _from_match(speaker: _Speaker, subject: str, clause: Clause, match: Match) -> Statement:
    rule = match.rule
    phrase = f" {clause.when.phrase}" if clause.when else ""
    made = _statement(speaker, subject, match.relation, match.object, f"{match.says}{clause.company}{phrase}")
    label = match.entity_label
    named = (Mention(rule.entity, label),) if rule.entity and label else ()
    return replace(
        made,
        subtype=rule.subtype,
        importance=rule.importance,
        confidence=rule.confidence,
        valid_from=_valid_from(speaker, clause.when, rule),
        mentions=_united(named, made.mentions),
    )


def _valid_from(speaker: _Speaker, when: ResolvedDate | None, rule: Rule) -> datetime:
    """When it became true: the date itself for events and beginnings, else the moment it was said."""
    said_at = speaker.turn.at
    begins = when is not None and (
        rule.when is When.EVENT or rule.starts or when.precision in (Precision.SINCE, Precision.DURATION)
    )
    if when is None or not begins or rule.when is When.PLAN:
        return said_at
    return min(said_at, datetime.combine(when.start, time(0), tzinfo=speaker.zone))


def _statement(speaker: _Speaker, subject: str, relation: str, value: str, says: str) -> Statement:
    text = f"{subject} {says}."
    return Statement(
        kind="fact",
        subtype="fact",
        text=text,
        subject=subject,
        relation=normalise_relation(relation),
        object=value,
        origin=Origin.EXTRACTED,
        source=speaker.label,
        valid_from=speaker.turn.at,
        evidence=(speaker.turn.id,),
        mentions=mentions_of(text, people=(*speaker.people, subject), known=speaker.known),
    )


def _united(first: tuple[Mention, ...], second: tuple[Mention, ...]) -> tuple[Mention, ...]:
    labels = {mention.label.lower() for mention in first}
    return (*first, *(mention for mention in second if mention.label.lower() not in labels))
