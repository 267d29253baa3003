"""Make statements of the facts that the rules of a pack read in a turn."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime, time, timedelta
from functools import cache, partial
from itertools import chain

from memory_app.extraction.rules.english_statements import activities_in
from memory_app.extraction.rules.names import is_name, mentions_of
from memory_app.extraction.rules.packs.conversation import Conversation, History
from memory_app.extraction.rules.packs.corrections import without_mistakes
from memory_app.extraction.rules.packs.dates import StartDay
from memory_app.extraction.rules.packs.fact import Fact
from memory_app.extraction.rules.packs.facts import SentenceRead, read, read_sentences
from memory_app.extraction.rules.packs.format import DateTexts
from memory_app.extraction.rules.packs.pack import Pack
from memory_app.extraction.rules.packs.persons import HAS_PET
from memory_app.extraction.rules.patterns import When
from memory_app.extraction.rules.statements import (
    STATEMENTS_LIMIT,
    Speaker,
    at_least_explicit,
    distinct,
    is_left_out,
    told_apart,
    united,
    valid_from,
)
from memory_app.memories.relations import normalise_relation
from memory_app.records.records import Mention, Origin, Statement, Turn


def pack_statements(speaker: Speaker, pack: Pack, own: str) -> list[Statement]:
    """The statements that a pack reads in a turn, each triple once. ``own`` is the `own_text` of the turn."""
    before = cache(partial(_facts_before, speaker, pack))
    sentences = read_sentences(
        pack,
        speaker.turn.text,
        own,
        today=speaker.today,
        is_left_out=partial(is_left_out, speaker),
        conversation=Conversation(
            before,
            known=partial(_known, speaker, pack, before),
            is_asked=speaker.is_asked,
            has_company=bool(speaker.people - {speaker.turn.speaker}),
        ),
    )
    unread: list[SentenceRead] = []

    def facts() -> Iterator[Fact]:
        for sentence in sentences:
            unread.append(sentence)
            yield from sentence.facts

    standing = without_mistakes(facts(), limit=STATEMENTS_LIMIT)
    statements = (_of_fact(speaker, pack, fact) for fact in standing)
    read_by_grammar = _GRAMMARS.get(pack.file.language)
    if read_by_grammar is None:
        return distinct(statements)
    others = (
        replace(statement, corrects=sentence.mistake)
        for sentence in unread
        if sentence.unread
        for statement in read_by_grammar(speaker, sentence.unread, sentence.is_laughed)
    )
    return distinct(chain(statements, others))


_GRAMMARS: Mapping[str, Callable[[Speaker, str, bool], Iterable[Statement]]] = {"en": activities_in}
"""What reads the sentences of a language that no pattern of its pack reads: told with any verb, as events are."""


def _facts_before(speaker: Speaker, pack: Pack) -> list[Fact]:
    """What the user stated in the turns before; read only for a turn that corrects something."""
    return [fact for turn in speaker.earlier for fact in _facts_of(speaker, pack, turn)]


def _known(speaker: Speaker, pack: Pack, before: History, words: str) -> str | None:
    """The name of somebody of whom the user told before, where ``words`` are that name."""
    lowered = words.lower()
    if lowered == speaker.label.lower():
        return None
    if lowered in speaker.known_people:
        return speaker.known_people[lowered]
    # Their turns are read again only where one of them has these words as a name.
    if not all(map(is_name, words.split())) or not any(
        _is_named(words, turn.text) for turn in speaker.earlier
    ):
        return None
    named = (_person_of(pack, fact) for fact in before())
    return next((name for name in named if name is not None and name.lower() == lowered), None)


def _is_named(words: str, text: str) -> bool:
    """Whether ``words`` stand inside a sentence, where a capital is that of a name."""
    place = text.find(f" {words}")
    return place > 0 and text[place - 1] not in ".!?:"


def _person_of(pack: Pack, fact: Fact) -> str | None:
    """Whom a fact names: the user's sister or dog, or somebody of whom it tells more."""
    is_somebody = fact.relation in pack.file.people.kin or fact.relation == HAS_PET
    return fact.called or (fact.object if is_somebody else None)


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
        text=f"{_written_subject(speaker, pack, fact)} {_written_claim(pack, fact)}.",
        subject=_subject(speaker, fact),
        relation=normalise_relation(fact.relation),
        object=_object(speaker, pack, fact),
        corrects=fact.corrects,
        is_beside=fact.is_beside,
        origin=Origin.EXTRACTED,
        source=speaker.label,
        importance=_importance(fact),
        tags=("explicit",) if fact.is_request else (),
        confidence=rule.confidence,
        valid_from=_valid_from(speaker, fact),
        valid_until=_valid_until(speaker, fact),
        evidence=(speaker.turn.id,),
        mentions=_mentions(speaker, pack, fact),
    )


def _subject(speaker: Speaker, fact: Fact) -> str:
    """Whom a fact is about, the same in every language, so that facts about one person meet."""
    if fact.kin and not fact.called:
        return f"{speaker.label}'s {fact.kin}"
    return told_apart(speaker, fact.called, fact.term) if fact.called else speaker.label


def _object(speaker: Speaker, pack: Pack, fact: Fact) -> str:
    """The object as it is stored. Somebody of the user's who has the user's name is not the user."""
    is_person = fact.relation in pack.file.people.kin
    return told_apart(speaker, fact.object, fact.relation) if is_person else fact.object


def _importance(fact: Fact) -> int | None:
    return at_least_explicit(fact.rule.importance) if fact.is_request else fact.rule.importance


def _written_subject(speaker: Speaker, pack: Pack, fact: Fact) -> str:
    """The subject as the text has it, in the language of the turn."""
    if fact.kin and not fact.called:
        return pack.file.people.of_user.format(term=fact.term, user=speaker.label)
    return _subject(speaker, fact)


def _written_claim(pack: Pack, fact: Fact) -> str:
    """What is said of the subject, with its date."""
    when, dates = fact.when, pack.file.date
    if when is None:
        return fact.says
    if dates.in_words is None:
        template = dates.says_since if when.since else dates.says_on
        return f"{fact.says} ({template.format(date=when.text)})"
    is_since = when.since or (fact.rule.starts and not fact.rule.past)
    says = fact.says_since or fact.says if is_since else fact.says
    return f"{says} {_date_in_words(pack, dates.in_words, when, is_since=is_since)}"


def _date_in_words(pack: Pack, texts: DateTexts, when: StartDay, *, is_since: bool) -> str:
    template: str = getattr(texts, f"since_{when.exactness}" if is_since else when.exactness)
    day = when.text
    if when.exactness == "week":
        day = (when.start - timedelta(days=when.start.weekday())).isoformat()
    if when.until is not None:
        template = texts.since_days if is_since else texts.days
        return template.format(day=when.start.isoformat(), until=when.until.isoformat())
    month = pack.file.date.months[when.start.month - 1].split()[0].capitalize()
    return template.format(day=day, month=month, year=when.start.year)


def _valid_from(speaker: Speaker, fact: Fact) -> datetime:
    if fact.when is None:
        return speaker.turn.at
    return valid_from(speaker, fact.rule, start=fact.when.start, has_lasted=fact.when.since)


def _valid_until(speaker: Speaker, fact: Fact) -> datetime | None:
    """Where a plan names its last day, the midnight after it."""
    if fact.when is None or fact.when.until is None or fact.rule.when is not When.PLAN:
        return None
    return datetime.combine(fact.when.until + timedelta(days=1), time(0), tzinfo=speaker.zone)


def _mentions(speaker: Speaker, pack: Pack, fact: Fact) -> tuple[Mention, ...]:
    entities: list[Mention] = []
    if fact.rule.entity:
        entities.append(Mention(fact.rule.entity, _object(speaker, pack, fact)))
    if fact.called:
        entities.append(Mention("person", _subject(speaker, fact)))
    known = mentions_of(fact.object.lower(), labels=speaker.labels)
    return united(tuple(entities), known)
