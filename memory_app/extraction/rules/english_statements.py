"""Make statements of what is told in English with any verb: what people did, plan and do, and what they ask for.

Facts that a pattern can name are read by the pack; a sentence comes here when no pattern of it fits.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime

from memory_app.extraction.rules.clause_reading import Clause, read_clause, split_predicates
from memory_app.extraction.rules.clauses import Sentence, sentences
from memory_app.extraction.rules.dates import Precision, ResolvedDate
from memory_app.extraction.rules.names import mentions_of
from memory_app.extraction.rules.patterns import Rule, When
from memory_app.extraction.rules.people import AboutRelative, about_relative
from memory_app.extraction.rules.requests import wish_of
from memory_app.extraction.rules.rule_matching import Match, match_clause
from memory_app.extraction.rules.statements import Speaker, told_apart, united, valid_from
from memory_app.memories.relations import normalise_relation
from memory_app.records.records import Mention, Origin, Statement


def activities_in(speaker: Speaker, text: str, is_laughed: bool) -> Iterator[Statement]:
    """The statements that the rules of English read in ``text``, a sentence or a part of one.

    Of what is told with a laugh (``is_laughed``) only events are no joke.
    """
    for sentence in sentences(text):
        yield from _of_sentence(speaker, sentence, is_laughed=is_laughed)


def _of_sentence(speaker: Speaker, sentence: Sentence, *, is_laughed: bool) -> Iterator[Statement]:
    # A sentence is a wish, or what the rules read in its clauses.
    wish = None if is_laughed else wish_of(sentence.text, agent_label=speaker.agent)
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
    for clause in sentence.clauses:
        for predicate in split_predicates(clause):
            yield from _of_clause(speaker, predicate, only_events=is_laughed)


def _of_clause(speaker: Speaker, text: str, *, only_events: bool) -> Iterator[Statement]:
    clause = read_clause(text, speaker.turn.at, zone=speaker.zone)
    if clause is None:
        return
    relative = about_relative(clause.text)
    subject = speaker.label
    if relative is not None:
        subject = _subject(speaker, relative)
        # The rules are written for "I", so that one table serves both.
        clause = clause.said_by(relative.verb, relative.rest)
    for match in match_clause(clause, of_relative=relative is not None, today=speaker.today):
        if only_events and match.rule.when is not When.EVENT:
            continue
        yield _from_match(match, clause, speaker=speaker, subject=subject)


def _subject(speaker: Speaker, relative: AboutRelative) -> str:
    if relative.name is None:
        return f"{speaker.label}'s {relative.term}"
    return told_apart(speaker, relative.name, relative.term)


def _from_match(match: Match, clause: Clause, *, speaker: Speaker, subject: str) -> Statement:
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
        mentions=united(entities, statement.mentions),
    )


def _valid_from(speaker: Speaker, when: ResolvedDate | None, rule: Rule) -> datetime:
    if when is None:
        return speaker.turn.at
    has_lasted = when.precision in (Precision.SINCE, Precision.DURATION)
    return valid_from(speaker, rule, start=when.start, has_lasted=has_lasted)


def _statement(speaker: Speaker, *, subject: str, relation: str, value: str, says: str) -> Statement:
    text = f"{subject} {says}."
    mentions = mentions_of(text, people=(*speaker.people, subject), labels=speaker.labels)
    if subject.endswith(")"):
        # The bare name would be that of the speaker.
        others = (mention for mention in mentions if mention.label.lower() != speaker.label.lower())
        mentions = (Mention("person", subject), *others)
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
        mentions=mentions,
    )
