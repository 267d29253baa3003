"""Make statements of the facts that the rules of a pack read in a turn."""

from __future__ import annotations

from datetime import datetime
from functools import partial

from memory_app.extraction.rules.names import mentions_of
from memory_app.extraction.rules.packs.corrections import without_mistakes
from memory_app.extraction.rules.packs.fact import Fact
from memory_app.extraction.rules.packs.facts import read
from memory_app.extraction.rules.packs.pack import Pack
from memory_app.extraction.rules.statements import (
    STATEMENTS_LIMIT,
    Speaker,
    distinct,
    is_left_out,
    united,
    valid_from,
)
from memory_app.memories.relations import normalise_relation
from memory_app.records.records import Mention, Origin, Statement, Turn


def pack_statements(speaker: Speaker, pack: Pack) -> list[Statement]:
    """The statements that a pack reads in a turn, each triple once."""
    facts = read(
        pack,
        speaker.turn.text,
        today=speaker.today,
        is_left_out=partial(is_left_out, speaker),
        before=partial(_facts_before, speaker, pack),
    )
    standing = without_mistakes(facts, limit=STATEMENTS_LIMIT)
    return distinct(_of_fact(speaker, pack, fact) for fact in standing)


def _facts_before(speaker: Speaker, pack: Pack) -> list[Fact]:
    """What the user stated in the turns before; read only for a turn that corrects something."""
    return [fact for turn in speaker.earlier for fact in _facts_of(speaker, pack, turn)]


def _facts_of(speaker: Speaker, pack: Pack, turn: Turn) -> list[Fact]:
    today = turn.at.astimezone(speaker.zone).date()
    return without_mistakes(
        read(pack, turn.text, today=today, is_left_out=partial(is_left_out, speaker)), limit=STATEMENTS_LIMIT
    )


def _of_fact(speaker: Speaker, pack: Pack, fact: Fact) -> Statement:
    rule = fact.rule
    return Statement(
        kind=rule.kind,
        subtype=rule.subtype or None,
        text=f"{_written_subject(speaker, pack, fact)} {fact.says}{_written_date(pack, fact)}.",
        subject=_subject(speaker, fact),
        relation=normalise_relation(fact.relation),
        object=fact.object,
        corrects=fact.corrects,
        origin=Origin.EXTRACTED,
        source=speaker.label,
        importance=rule.importance,
        confidence=rule.confidence,
        valid_from=_valid_from(speaker, fact),
        evidence=(speaker.turn.id,),
        mentions=_mentions(speaker, fact),
    )


def _subject(speaker: Speaker, fact: Fact) -> str:
    """Whom a fact is about, the same in every language, so that facts about one person meet."""
    if fact.kin and not fact.called:
        return f"{speaker.label}'s {fact.kin}"
    return fact.called or speaker.label


def _written_subject(speaker: Speaker, pack: Pack, fact: Fact) -> str:
    """The subject as the text has it, in the language of the turn."""
    if fact.kin and not fact.called:
        return pack.file.people.of_user.format(term=fact.term, user=speaker.label)
    return fact.called or speaker.label


def _written_date(pack: Pack, fact: Fact) -> str:
    if fact.when is None:
        return ""
    dates = pack.file.date
    template = dates.says_since if fact.when.since else dates.says_on
    return f" ({template.format(date=fact.when.text)})"


def _valid_from(speaker: Speaker, fact: Fact) -> datetime:
    if fact.when is None:
        return speaker.turn.at
    return valid_from(speaker, fact.rule, start=fact.when.start, has_lasted=fact.when.since)


def _mentions(speaker: Speaker, fact: Fact) -> tuple[Mention, ...]:
    entities: list[Mention] = []
    if fact.rule.entity:
        entities.append(Mention(fact.rule.entity, fact.object))
    if fact.called:
        entities.append(Mention("person", fact.called))
    known = mentions_of(fact.object.lower(), labels=speaker.labels)
    return united(tuple(entities), known)
