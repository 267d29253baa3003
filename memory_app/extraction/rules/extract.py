"""Extract statements from turns by rules, without a model, a clock or any I/O.

Precision comes before recall: a clause that no rule reads with certainty states nothing. Only turns of the
role ``user`` state facts: what the assistant explained, a tool answered or a prompt contained is not theirs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, time
from itertools import chain
from uuid import UUID
from zoneinfo import ZoneInfo

from memory_app.extraction.rules.clauses import Sentence, own_words, sentences
from memory_app.extraction.rules.dates import Precision, ResolvedDate
from memory_app.extraction.rules.grammar import third_person
from memory_app.extraction.rules.matching import Clause, Match, match_clause, read_clause, split_predicates
from memory_app.extraction.rules.names import mentions_of
from memory_app.extraction.rules.packs.facts import Fact, read
from memory_app.extraction.rules.packs.pack import Pack, pack_of
from memory_app.extraction.rules.packs.turn_language import ENGLISH, READ_LANGUAGES, language_of
from memory_app.extraction.rules.patterns import Rule, When
from memory_app.extraction.rules.people import about_relative, relatives_of
from memory_app.extraction.rules.requests import to_remember, wish_of
from memory_app.language.marks import without_marks
from memory_app.language.replies import ACKNOWLEDGEMENTS
from memory_app.language.secrets import holds_secret
from memory_app.memories.relations import normalise_relation
from memory_app.records.records import Extraction, Mention, Origin, Role, Statement, Turn

SHORTEST = 20
"""Characters below which a text is skipped (spec: texts under 20 characters state nothing worth keeping)."""

STATEMENTS_LIMIT = 24
"""Statements kept of one turn; more come from pasted text."""

ACKNOWLEDGEMENT_WORDS = 12
"""A longer text is read even where every word of it is one of agreement or thanks."""

AGENT_TEXT_LIMIT = 20_000
"""Characters of an assistant's turn in which a repetition by the user is looked for."""

EXPLICIT_IMPORTANCE = 7
"""Least importance (1 to 10) of what the user asked to be remembered."""

FEWEST_WORDS = 3
"""Words of a fact to remember that no rule reads; "remember that song" states nothing."""

TOO_SHORT = "too short"
ACKNOWLEDGEMENT = "acknowledgement"
NOT_NOTEWORTHY = "nothing noteworthy"
NOT_THE_USER = "not said by the user"
NO_TEXT = "the message has no text"
NOT_READ = "language not read by rules"
"""Followed by the code of the language."""

_NO_WORD = re.compile(r"[^\w']|_")


@dataclass(frozen=True, slots=True)
class _Speaker:
    """The author of ``turn``, and the names by which statements about them are written."""

    turn: Turn
    label: str
    agent: str
    zone: ZoneInfo
    people: frozenset[str]
    labels: tuple[str, ...]


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
        speaker = _Speaker(
            turn=turn,
            label=user_label if turn.speaker.lower() in ("user", "") else turn.speaker,
            agent=agent_label,
            zone=time_zone,
            people=people,
            labels=tuple(labels),
        )
        agent_text = _agent_text(all_turns, turn)
        if pack is not None:
            of_turn = _by_pack(speaker, pack, agent_text=agent_text)
            names = tuple(chain.from_iterable(statement.mentions for statement in of_turn))
            mentions[turn.id] = _united(names, mentions[turn.id])
        else:
            of_turn = _statements(speaker, text, agent_text=agent_text)
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


def _statements(speaker: _Speaker, text: str, *, agent_text: str) -> list[Statement]:
    """The statements of one turn, each triple once."""
    statements: dict[tuple[object, ...], Statement] = {}
    for sentence in sentences(text):
        # A user who quotes the assistant does not state it. A short sentence may be the same by chance.
        repeats_agent = len(sentence.text) >= SHORTEST and sentence.text.lower() in agent_text
        # The whole sentence: what a rule made of the rest would still point at the secret.
        if repeats_agent or holds_secret(sentence.text):
            continue
        for statement in _of_sentence(speaker, sentence):
            statements.setdefault(_triple(statement), statement)
        # Asked after a sentence, which may state several; more of a long paste need not be read.
        if len(statements) >= STATEMENTS_LIMIT:
            break
    return list(statements.values())[:STATEMENTS_LIMIT]


def _by_pack(speaker: _Speaker, pack: Pack, *, agent_text: str) -> list[Statement]:
    """The statements that the rules of a pack read in a turn, each triple once."""
    turn = speaker.turn

    def is_left_out(sentence: str) -> bool:
        repeats_agent = len(sentence) >= SHORTEST and sentence.lower() in agent_text
        return repeats_agent or holds_secret(sentence)

    today = turn.at.astimezone(speaker.zone).date()
    statements: dict[tuple[object, ...], Statement] = {}
    for fact in read(pack, turn.text, today=today, is_left_out=is_left_out):
        statement = _of_fact(speaker, pack, fact)
        statements.setdefault(_triple(statement), statement)
    return list(statements.values())[:STATEMENTS_LIMIT]


def _of_fact(speaker: _Speaker, pack: Pack, fact: Fact) -> Statement:
    rule = fact.rule
    # The subject is the same in every language, so that facts about one person meet.
    subject = written = fact.called or speaker.label
    if fact.kin and not fact.called:
        subject = f"{speaker.label}'s {fact.kin}"
        written = pack.file.people.of_user.format(term=fact.term, user=speaker.label)
    when = ""
    if fact.when is not None:
        dates = pack.file.date
        template = dates.says_since if fact.when.since else dates.says_on
        when = f" ({template.format(date=fact.when.text)})"
    entities = [Mention(rule.entity, fact.object)] if rule.entity else []
    if fact.called:
        entities.append(Mention("person", fact.called))
    known = mentions_of(fact.object.lower(), labels=speaker.labels)
    return Statement(
        kind=rule.kind,
        subtype=rule.subtype or None,
        text=f"{written} {fact.says}{when}.",
        subject=subject,
        relation=normalise_relation(fact.relation),
        object=fact.object,
        origin=Origin.EXTRACTED,
        source=speaker.label,
        importance=rule.importance,
        confidence=rule.confidence,
        valid_from=_begin(speaker, fact),
        evidence=(speaker.turn.id,),
        mentions=_united(tuple(entities), known),
    )


def _begin(speaker: _Speaker, fact: Fact) -> datetime:
    """When a fact of a pack became true, as `_valid_from` for English."""
    when, rule = fact.when, fact.rule
    turn_at = speaker.turn.at
    marks_beginning = when is not None and (when.since or rule.starts or rule.when is When.EVENT)
    if when is None or not marks_beginning or rule.when is When.PLAN:
        return turn_at
    return min(turn_at, datetime.combine(when.start, time(0), tzinfo=speaker.zone))


def _triple(statement: Statement) -> tuple[object, ...]:
    value = (statement.object or "").lower()
    return (statement.kind, statement.subject, statement.relation, value)


def _of_sentence(speaker: _Speaker, sentence: Sentence) -> Iterator[Statement]:
    # A sentence is one of three: a wish, a thing to remember, or what the rules read in its clauses.
    wish = wish_of(sentence.text, agent_label=speaker.agent)
    if wish is not None:
        statement = _statement(
            speaker,
            subject=speaker.label,
            relation=wish.relation,
            value=wish.object,
            says=wish.says,
        )
        yield replace(statement, kind="expression", subtype=None)
        return
    fact = to_remember(sentence.text)
    if fact is not None:
        yield from _to_remember(speaker, fact)
        return
    yield from _relatives(speaker, sentence.text)
    for clause in sentence.clauses:
        for predicate in split_predicates(clause):
            yield from _of_clause(speaker, predicate)


def _to_remember(speaker: _Speaker, fact: str) -> Iterator[Statement]:
    """What the user asked to be remembered: by the rules where they read it, else in the user's words."""
    statements = [*_relatives(speaker, fact), *_of_clause(speaker, fact)]
    if not statements and _is_worth_remembering(fact):
        reported = third_person(fact)
        statement = _statement(
            speaker,
            subject=speaker.label,
            relation="asked_to_remember",
            value=reported,
            says=f"asked to remember that {reported}",
        )
        statements.append(statement)
    for statement in statements:
        # Not lowered: what the rules rate higher, such as an allergy, stays so.
        importance = max(statement.importance or 0, EXPLICIT_IMPORTANCE)
        yield replace(statement, importance=importance, tags=("explicit",))


def _is_worth_remembering(fact: str) -> bool:
    # "Remember what you said": nothing of the user's.
    return " you" not in fact.lower() and len(fact.split()) >= FEWEST_WORDS


def _relatives(speaker: _Speaker, text: str) -> Iterator[Statement]:
    participants = {name.lower() for name in speaker.people}
    for relative in relatives_of(text, not_named=participants):
        statement = _statement(
            speaker,
            subject=speaker.label,
            relation=relative.relation,
            value=relative.name,
            says=f"has a {relative.term} called {relative.name}",
        )
        mention = Mention("thing" if relative.is_pet else "person", relative.name)
        yield replace(
            statement,
            subtype="relationship",
            importance=7,
            mentions=_united((mention,), statement.mentions),
        )


def _of_clause(speaker: _Speaker, text: str) -> Iterator[Statement]:
    clause = read_clause(text, speaker.turn.at, zone=speaker.zone)
    if clause is None:
        return
    relative = about_relative(clause.text)
    subject = speaker.label
    if relative is not None:
        subject = relative.name or f"{speaker.label}'s {relative.term}"
        # The rules are written for "I", so that one table serves both.
        clause = clause.said_by(relative.verb, relative.rest)
    # In the speaker's zone, where the day may be another than where the server stands.
    today = speaker.turn.at.astimezone(speaker.zone).date()
    for match in match_clause(clause, of_relative=relative is not None, today=today):
        yield _from_match(match, clause, speaker=speaker, subject=subject)


def _from_match(match: Match, clause: Clause, *, speaker: _Speaker, subject: str) -> Statement:
    rule, label = match.rule, match.entity_label
    when = f" {clause.when.phrase}" if clause.when else ""
    statement = _statement(
        speaker,
        subject=subject,
        relation=match.relation,
        value=match.object,
        says=f"{match.says}{clause.company}{when}",
    )
    entities = (Mention(rule.entity, label),) if rule.entity and label else ()
    return replace(
        statement,
        subtype=rule.subtype,
        importance=rule.importance,
        confidence=rule.confidence,
        valid_from=_valid_from(speaker, clause.when, rule),
        mentions=_united(entities, statement.mentions),
    )


def _valid_from(speaker: _Speaker, when: ResolvedDate | None, rule: Rule) -> datetime:
    """When it became true: the date itself for events and beginnings, else the moment of the turn."""
    turn_at = speaker.turn.at
    if when is None or not _marks_beginning(when, rule):
        return turn_at
    # Never later than it was said, or the statement would not hold yet at the moment it was made.
    return min(turn_at, datetime.combine(when.start, time(0), tzinfo=speaker.zone))


def _marks_beginning(when: ResolvedDate, rule: Rule) -> bool:
    if rule.when is When.PLAN:
        return False
    has_lasted = when.precision in (Precision.SINCE, Precision.DURATION)
    return has_lasted or rule.starts or rule.when is When.EVENT


def _statement(speaker: _Speaker, *, subject: str, relation: str, value: str, says: str) -> Statement:
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
        mentions=mentions_of(text, people=(*speaker.people, subject), labels=speaker.labels),
    )


def _united(first: tuple[Mention, ...], second: tuple[Mention, ...]) -> tuple[Mention, ...]:
    """Both, without those of ``second`` whose label ``first`` has in any case."""
    # The rule knows better than a guess of what type a name is.
    labels = {mention.label.lower() for mention in first}
    return (*first, *(mention for mention in second if mention.label.lower() not in labels))
