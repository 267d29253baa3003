"""Entities as they are shown: what is said of each in a few words, and what stands beside it.

An entity that is mentioned everywhere must not cost more than any other: its newest memories speak for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import Connection, select, text

from memory_app.db.expressions import among, columns_of
from memory_app.db.tables.memories import entities

NEWEST_MENTIONS = 200
"""Memories per entity that are looked through for the strongest facts and for what is linked."""

# The innermost selects take the newest mentions and nothing else: ordering all of them by strength would read every
# memory of an entity that is talked about every day.
_CARDS = text(
    """
    SELECT e.key, e.label, e.type, e.summary, e.last_seen, f.ids, f.texts, l.linked
    FROM (
        SELECT * FROM entities
        WHERE scope_id = ANY(:scopes) AND id = ANY(:ids) AND merged_into IS NULL
        ORDER BY mention_count DESC, last_seen DESC, id LIMIT :most) e
    CROSS JOIN LATERAL (
        SELECT array_agg(s.id ORDER BY s.place) AS ids, array_agg(s.text ORDER BY s.place) AS texts FROM (
            SELECT m.id, m.text,
                row_number() OVER (ORDER BY m.pinned DESC, m.importance DESC, m.last_seen DESC, m.id) AS place
            FROM (
                SELECT n.scope_id, n.memory_id FROM mentions n WHERE n.scope_id = e.scope_id AND n.entity_id = e.id
                ORDER BY n.memory_id DESC LIMIT :newest) n
            JOIN memories m ON m.scope_id = n.scope_id AND m.id = n.memory_id
            WHERE m.retired_at IS NULL AND (m.valid_until IS NULL OR m.valid_until > now())
            ORDER BY place LIMIT :facts) s) f
    CROSS JOIN LATERAL (
        SELECT ARRAY(
            SELECT o.label FROM (
                SELECT n.scope_id, n.memory_id FROM mentions n WHERE n.scope_id = e.scope_id AND n.entity_id = e.id
                ORDER BY n.memory_id DESC LIMIT :newest) n
            JOIN mentions x ON x.scope_id = n.scope_id AND x.memory_id = n.memory_id AND x.entity_id <> e.id
            JOIN memories m ON m.scope_id = n.scope_id AND m.id = n.memory_id
                AND m.retired_at IS NULL AND (m.valid_until IS NULL OR m.valid_until > now())
            JOIN entities o ON o.scope_id = x.scope_id AND o.id = x.entity_id
            GROUP BY o.label ORDER BY count(*) DESC, o.label LIMIT :linked) AS linked) l
    ORDER BY e.mention_count DESC, e.last_seen DESC, e.id
    """
)


@dataclass(frozen=True, slots=True)
class CardFact:
    """A statement on a card. ``id`` is that of the memory; None: a summary of the entity."""

    text: str
    id: UUID | None = None


@dataclass(frozen=True, slots=True)
class EntityCard:
    """``key`` is ``type:slug``; ``facts`` are the strongest current ones, ``linked`` labels of entities beside it."""

    key: str
    label: str
    type: str
    summary: str | None
    last_seen: datetime
    facts: tuple[CardFact, ...] = ()
    linked: tuple[str, ...] = ()


_NAMED = (
    select(*columns_of(entities, EntityCard))
    .where(
        among(entities.c.scope_id, "scopes"),
        among(entities.c.id, "ids"),
        entities.c.merged_into.is_(None),
    )
    .order_by(entities.c.mention_count.desc(), entities.c.last_seen.desc(), entities.c.id)
)


def named(connection: Connection, scope_ids: Sequence[int], ids: Sequence[int]) -> tuple[EntityCard, ...]:
    """Entities by id, most mentioned first, without facts and links."""
    rows = connection.execute(_NAMED, {"scopes": list(scope_ids), "ids": list(ids)})
    return tuple(EntityCard(**row._mapping) for row in rows)


def whole(
    connection: Connection,
    scope_ids: Sequence[int],
    ids: Sequence[int],
    *,
    most: int,
    facts: int,
    linked: int,
) -> tuple[EntityCard, ...]:
    """Cards of the ``most`` of the entities that are mentioned most, with so many facts and links each; one statement
    for all."""
    values = {
        "scopes": list(scope_ids),
        "ids": list(ids),
        "most": most,
        "facts": facts,
        "linked": linked,
        "newest": NEWEST_MENTIONS,
    }
    return tuple(
        EntityCard(
            key=row.key,
            label=row.label,
            type=row.type,
            summary=row.summary,
            last_seen=row.last_seen,
            facts=tuple(map(CardFact, row.texts or (), row.ids or ())),
            linked=tuple(row.linked),
        )
        for row in connection.execute(_CARDS, values)
    )
