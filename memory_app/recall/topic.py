"""What bears on the query in a context window: rows of recall, insights, cards, and lines of the log for the room that
is left."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from uuid import UUID

from sqlalchemy import Connection

from memory_app.db.shards import at_home
from memory_app.memories.rows import cards
from memory_app.recall.own_card import own_key
from memory_app.recall.parts import Card, ContextParts
from memory_app.recall.query import ScopedQuery, horizon
from memory_app.recall.query_words import passage_words
from memory_app.recall.ranking import repeat_key
from memory_app.recall.records import Hit, Recalled
from memory_app.recall.rows import always_shown, log
from memory_app.recall.rows.log import Surroundings
from memory_app.records.kinds import Section, kinds_of_section
from memory_app.records.layout import ARTIFACT_LIMIT
from memory_app.records.records import Memory, Role, Tier, Turn
from memory_app.tenancy.rows.names import ScopeRow

CARDS = 4
CARD_FACTS = 5

BEST = 8
"""Turns that come before any neighbour."""

CENTRES = 2
"""Best turns of which those said just before and after are shown, too. With 8 instead, evidence in windows of 2,000
tokens fell by two points on talk over months and by six on long chats with an assistant."""


@dataclass(frozen=True, slots=True)
class Topic:
    """What recall returned for the query, and what is shown beside it."""

    hits: tuple[Hit, ...] = ()
    further: tuple[Hit, ...] = ()
    surroundings: Surroundings = field(default_factory=lambda: Surroundings({}, {}))
    artifacts: tuple[Memory, ...] = ()
    cards: tuple[Card, ...] = ()
    words: Mapping[str, float] = field(default_factory=dict)
    degraded: tuple[str, ...] = ()


def read_topic(connection: Connection, row: ScopeRow, *, scoped: ScopedQuery, recalled: Recalled) -> Topic:
    """Read what recall's answer does not have: whole insights, cards, and the turns around its own."""
    insights = kinds_of_section(Section.INSIGHTS)
    artifacts = [hit.id for hit in recalled.memories if hit.kind in insights and isinstance(hit.id, UUID)]
    return Topic(
        hits=recalled.memories,
        further=recalled.further,
        surroundings=_surroundings(connection, row, scoped=scoped, recalled=recalled),
        # Hits carry only what recall shows; these sections need whole memories.
        artifacts=always_shown.visible_by_ids(connection, row, artifacts[:ARTIFACT_LIMIT]),
        cards=_cards(connection, row, scoped),
        words=passage_words(scoped),
        degraded=recalled.degraded,
    )


def with_topic(parts: ContextParts, topic: Topic, *, turn_ids: set[str], limit: int) -> ContextParts:
    """Add sections 5, 7 and 8, without what other sections show; ``turn_ids`` are those of the session section."""
    # Insights about the topic replace the general ones.
    artifacts = topic.artifacts or parts.artifacts
    sections = (parts.core, parts.expression.memories, parts.anchors, parts.identity, artifacts)
    shown_ids = {str(memory.id) for section in sections for memory in section}
    shown_ids |= {str(id) for id in parts.narrative_ids}
    shown_ids |= turn_ids
    shown_ids |= {str(id) for id in parts.hidden}
    rows = _rows([hit for hit in topic.hits if str(hit.id) not in shown_ids], limit)
    shown_ids |= {str(hit.id) for hit in rows}
    return replace(
        parts,
        rows=tuple(rows),
        log=tuple(turn for turn in _log(topic) if str(turn.id) not in shown_ids),
        past={str(id): text for id, text in topic.surroundings.past.items()},
        words=topic.words,
        artifacts=artifacts,
        cards=(*parts.cards, *topic.cards),
        degraded=(*parts.degraded, *topic.degraded),
    )


def _rows(hits: Sequence[Hit], limit: int) -> list[Hit]:
    """Those of the best ``limit`` hits that are rows of their own; indexed turns are lines of the log.

    No more than half of them are facts while there are turns: a fact says one thing of what was said, and somebody
    with many facts has some that resemble every question.
    """
    turn_count = sum(hit.tier is Tier.DAILY_LOGS for hit in hits)
    most_facts = max(limit // 2, limit - turn_count)
    facts = [hit for hit in hits if hit.tier is not Tier.DAILY_LOGS][:most_facts]
    # A row says that it is not indexed yet.
    fresh = [hit for hit in hits if hit.tier is Tier.DAILY_LOGS and not hit.indexed][: limit - len(facts)]
    ids = {hit.id for hit in (*facts, *fresh)}
    return [hit for hit in hits if hit.id in ids]


def _surroundings(
    connection: Connection, row: ScopeRow, *, scoped: ScopedQuery, recalled: Recalled
) -> Surroundings:
    turn_ids = [hit.id for hit in _turn_hits(recalled.memories, recalled.further) if isinstance(hit.id, UUID)]
    if not turn_ids:
        return Surroundings({}, {})
    return log.surroundings(
        connection,
        row.visible,
        turn_ids,
        centres=turn_ids[:CENTRES],
        recorded_after=horizon(scoped),
    )


def _log(topic: Topic) -> Iterator[Turn]:
    """Every turn that may be shown, best first: the hits, and beside the best of them their neighbours."""
    turns = [_turn(hit) for hit in _turn_hits(topic.hits, topic.further)]
    neighbours = [
        topic.surroundings.neighbours.get((turn.session, turn.seq + step))
        for turn in turns[:CENTRES]
        for step in (1, -1)
    ]
    # Behind the best: in a small window they would take the room of what bears on the query itself.
    ordered = (*turns[:BEST], *filter(None, neighbours), *turns[BEST:])
    seen: set[str] = set()
    for turn in ordered:
        # A neighbour may repeat what a hit says, as the hits do not repeat each other.
        key = repeat_key(turn.text, session=turn.session)
        if key not in seen:
            seen.add(key)
            yield turn


def _turn_hits(hits: Sequence[Hit], further: Sequence[Hit]) -> list[Hit]:
    return [hit for hit in (*hits, *further) if hit.tier is Tier.DAILY_LOGS]


def _turn(hit: Hit) -> Turn:
    assert isinstance(hit.id, UUID) and hit.session is not None and hit.seq is not None
    assert hit.role is not None and hit.speaker is not None and hit.at is not None
    return Turn(
        id=hit.id,
        session=hit.session,
        seq=hit.seq,
        role=Role(hit.role),
        speaker=hit.speaker,
        text=hit.text,
        at=hit.at,
    )


def _cards(connection: Connection, row: ScopeRow, scoped: ScopedQuery) -> tuple[Card, ...]:
    """Cards of what the query names, whatever rows came out of the search: who is known best has most of them."""
    own = own_key(row)
    found = _cards_of(connection, scoped)
    for shared in scoped.shared:
        with at_home(connection) as home:
            found += _cards_of(home, shared)
    return tuple(_card(card) for card in found if card.key != own)[:CARDS]


def _cards_of(connection: Connection, scoped: ScopedQuery) -> list[cards.EntityCard]:
    if not scoped.facts.entities:
        return []
    return list(
        cards.whole(
            connection,
            scoped.row.visible,
            scoped.facts.entities,
            # One more, since the user has a card of their own.
            most=CARDS + 1,
            facts=CARD_FACTS,
            linked=CARD_FACTS,
        )
    )


def _card(card: cards.EntityCard) -> Card:
    return Card(
        key=card.key,
        label=card.label,
        type=card.type,
        summary=card.summary or "",
        facts=card.facts,
        linked=card.linked,
    )
