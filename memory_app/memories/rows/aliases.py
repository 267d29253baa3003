"""Merging entities: what changes hands, written down so that it can be given back. The scope's row must be locked.

The merged entity keeps its row and key and points to its heir, so that whatever names it later is counted for the heir.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import Connection, and_, bindparam, delete, func, text, update

from memory_app.db.expressions import among
from memory_app.db.tables.memories import entities, mentions
from memory_app.memories.rows.entities import Entity


@dataclass(frozen=True, slots=True)
class Moved:
    """What a merge moved: ids of the memories that mentioned the merged entity (``shared`` ones mentioned the heir
    too), and of the entities that had been merged into it before."""

    moved: tuple[UUID, ...]
    shared: tuple[UUID, ...]
    followers: tuple[int, ...]


_SHARED = text(
    """
    SELECT n.memory_id FROM mentions n
    JOIN mentions h ON h.scope_id = n.scope_id AND h.memory_id = n.memory_id AND h.entity_id = :heir
    WHERE n.scope_id = :scope AND n.entity_id = :id ORDER BY n.memory_id
    """
)
_MENTIONED = and_(mentions.c.scope_id == bindparam("scope"), mentions.c.entity_id == bindparam("id"))
_DROP = delete(mentions).where(_MENTIONED, among(mentions.c.memory_id, "memories"))
_MOVE = update(mentions).where(_MENTIONED).values(entity_id=bindparam("heir")).returning(mentions.c.memory_id)
_FOLLOW = (
    update(entities)
    .where(entities.c.scope_id == bindparam("scope"), entities.c.merged_into == bindparam("entity"))
    .values(merged_into=bindparam("heir"))
    .returning(entities.c.id)
)
_POINT = (
    update(entities)
    .where(entities.c.scope_id == bindparam("scope"), among(entities.c.id, "ids"))
    .values(merged_into=bindparam("heir"))
)
_TAKE = (
    update(entities)
    .where(entities.c.scope_id == bindparam("scope"), entities.c.id == bindparam("entity"))
    .values(mention_count=func.greatest(entities.c.mention_count + bindparam("count"), 0))
)
_GIVE_BACK = (
    update(mentions)
    .where(
        mentions.c.scope_id == bindparam("scope"),
        mentions.c.entity_id == bindparam("heir"),
        among(mentions.c.memory_id, "memories"),
    )
    .values(entity_id=bindparam("id"))
)
_MENTION_AGAIN = text(
    """
    INSERT INTO mentions (tenant_id, scope_id, memory_id, entity_id)
    SELECT :tenant, :scope, m.id, :id FROM memories m WHERE m.scope_id = :scope AND m.id = ANY(:memories)
    ON CONFLICT DO NOTHING
    """
)


def move(connection: Connection, scope_id: int, entity_id: int, *, heir_id: int) -> Moved:
    """Give everything that belongs to an entity to its heir, and point to it."""
    ids = {"scope": scope_id, "id": entity_id, "heir": heir_id}
    shared = tuple(connection.execute(_SHARED, ids).scalars())
    connection.execute(_DROP, {"scope": scope_id, "id": entity_id, "memories": list(shared)})
    moved = tuple(connection.execute(_MOVE, ids).scalars())
    followers = tuple(
        connection.execute(_FOLLOW, {"scope": scope_id, "entity": entity_id, "heir": heir_id}).scalars()
    )
    connection.execute(_POINT, {"scope": scope_id, "heir": heir_id, "ids": [entity_id]})
    return Moved(moved, shared, followers)


def give_back(
    connection: Connection, tenant_id: int, scope_id: int, *, entity_id: int, heir_id: int, moved: Moved
) -> None:
    """The opposite of `move`; memories that are gone meanwhile are left out."""
    connection.execute(_POINT, {"scope": scope_id, "heir": None, "ids": [entity_id]})
    connection.execute(_POINT, {"scope": scope_id, "heir": entity_id, "ids": list(moved.followers)})
    ids = {"scope": scope_id, "id": entity_id, "heir": heir_id}
    connection.execute(_GIVE_BACK, {**ids, "memories": list(moved.moved)})
    connection.execute(
        _MENTION_AGAIN,
        {"tenant": tenant_id, "scope": scope_id, "id": entity_id, "memories": list(moved.shared)},
    )


def amend(
    connection: Connection,
    heir: Entity,
    *,
    aliases: Sequence[str],
    count: int,
    first_seen: datetime,
    last_seen: datetime,
) -> None:
    """Write what the heir is called besides its label, ``count`` more mentions, and when it was seen."""
    values = {
        "scope": heir.scope_id,
        "entity": heir.id,
        "aliases": list(aliases),
        "count": count,
        "first_seen": first_seen,
        "last_seen": last_seen,
    }
    connection.execute(_TAKE, values)
