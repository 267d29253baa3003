"""Entities that are talked about, and which memories mention them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Row, and_, bindparam, select, text

from memory_app.db.expressions import among, columns_of
from memory_app.db.tables.memories import entities
from memory_app.memories.entity_names import KnownEntity, first_words
from memory_app.memories.rows.memory_rows import COLUMNS as MEMORY_COLUMNS
from memory_app.memories.rows.memory_rows import memory_of
from memory_app.records.entity import entity_key
from memory_app.records.records import ENTITY_TYPES, Memory

# In the order of the keys: two writers that name the same entities would else wait for each other in a circle.
_UPSERT_NAMED = """
    INSERT INTO entities (tenant_id, scope_id, key, type, label, first_seen, last_seen, mention_count)
    SELECT :tenant, :scope, v.key, v.type, v.label, v.at, v.at, 1
    FROM unnest(CAST(:keys AS text[]), CAST(:types AS text[]), CAST(:labels AS text[]),
                CAST(:ats AS timestamptz[])) AS v(key, type, label, at)
    ORDER BY v.key
    ON CONFLICT (scope_id, key) DO UPDATE SET
        mention_count = entities.mention_count + 1,
        first_seen = least(entities.first_seen, excluded.first_seen),
        last_seen = greatest(entities.last_seen, excluded.last_seen)
    RETURNING key, coalesce(merged_into, id) AS id, merged_into IS NOT NULL AS is_alias
    """
_UPSERT = text(_UPSERT_NAMED)
# All that a new memory rests on and is about by one statement: nearly every turn brings one.
_TIE = text(
    f"""
    WITH rests AS (
        INSERT INTO evidence (tenant_id, scope_id, memory_id, turn_scope_id, turn_id)
        SELECT t.tenant_id, :scope, :memory, t.scope_id, t.id FROM turns t
        WHERE t.scope_id = ANY(:turn_scopes) AND t.id = ANY(:turns)
        ON CONFLICT DO NOTHING
    ), named AS (
        {_UPSERT_NAMED}
    ), tied AS (
        INSERT INTO mentions (tenant_id, scope_id, memory_id, entity_id)
        SELECT :tenant, :scope, :memory, v.id FROM (
            SELECT n.id FROM named n UNION
            SELECT coalesce(e.merged_into, e.id) FROM entities e WHERE e.scope_id = :scope AND e.key = ANY(:uncounted)
        ) AS v(id)
        ON CONFLICT DO NOTHING
    )
    SELECT key FROM named WHERE is_alias
    """
)
_COUNT_HEIRS = text(
    """
    UPDATE entities h SET mention_count = h.mention_count + 1,
        first_seen = least(h.first_seen, a.first_seen), last_seen = greatest(h.last_seen, a.last_seen)
    FROM (SELECT e.merged_into, min(e.first_seen) AS first_seen, max(e.last_seen) AS last_seen FROM entities e
          WHERE e.scope_id = :scope AND e.key = ANY(:keys) AND e.merged_into IS NOT NULL GROUP BY e.merged_into) a
    WHERE h.scope_id = :scope AND h.id = a.merged_into
    """
)
# Of several entities of one slug the one that is not merged, then the one that is talked about most.
_TYPES = text(
    """
    SELECT DISTINCT ON (v.slug) v.slug, e.type
    FROM unnest(CAST(:slugs AS text[])) AS v(slug)
    JOIN entities e ON e.scope_id = ANY(:scopes) AND e.key = ANY(ARRAY(SELECT t || ':' || v.slug
                                                                    FROM unnest(CAST(:types AS text[])) AS t))
    ORDER BY v.slug, e.merged_into NULLS FIRST, e.mention_count DESC, e.id
    """
)
# Facts hold slugs without a type. A slug that also names an entity of its own leads nowhere else.
_HEIRS = text(
    """
    SELECT split_part(a.key, ':', 2) AS alias, min(split_part(h.key, ':', 2)) AS heir
    FROM entities a JOIN entities h ON h.scope_id = a.scope_id AND h.id = a.merged_into
    WHERE a.scope_id = ANY(:scopes) AND a.merged_into IS NOT NULL
      AND split_part(a.key, ':', 2) <> split_part(h.key, ':', 2)
      AND NOT EXISTS (SELECT FROM entities o WHERE o.scope_id = a.scope_id AND o.merged_into IS NULL
                      AND split_part(o.key, ':', 2) = split_part(a.key, ':', 2))
    GROUP BY split_part(a.key, ':', 2)
    """
)
_MENTION = text(
    """
    INSERT INTO mentions (tenant_id, scope_id, memory_id, entity_id)
    SELECT :tenant, :scope, :memory, v.id FROM unnest(CAST(:entities AS bigint[])) AS v(id)
    ON CONFLICT DO NOTHING
    """
)
_LINKED_KEYS = text(
    """
    SELECT o.key, o.label, count(DISTINCT m.id) AS memories FROM mentions mine
    JOIN mentions theirs ON theirs.scope_id = mine.scope_id AND theirs.memory_id = mine.memory_id
      AND theirs.entity_id <> mine.entity_id
    JOIN memories m ON m.scope_id = mine.scope_id AND m.id = mine.memory_id
    JOIN entities o ON o.scope_id = theirs.scope_id AND o.id = theirs.entity_id
    WHERE mine.scope_id = :scope AND mine.entity_id = :entity AND m.retired_at IS NULL
      AND (m.valid_until IS NULL OR m.valid_until > now())
    GROUP BY o.key, o.label ORDER BY count(DISTINCT m.id) DESC, o.key LIMIT :limit
    """
)
_ABOUT = text(
    f"""
    SELECT {MEMORY_COLUMNS} FROM mentions n JOIN memories m ON m.scope_id = n.scope_id AND m.id = n.memory_id
    WHERE n.scope_id = :scope AND n.entity_id = :entity AND m.retired_at IS NULL
      AND (m.valid_until IS NULL OR m.valid_until > now())
    ORDER BY m.pinned DESC, m.importance DESC, m.last_seen DESC, m.id LIMIT :limit
    """
)


@dataclass(frozen=True, slots=True)
class Entity:
    """One thing that is talked about; ``key`` is ``type:slug``."""

    id: int
    scope_id: int
    key: str
    type: str
    label: str
    aliases: tuple[str, ...]
    summary: str | None
    first_seen: datetime
    last_seen: datetime
    mention_count: int


@dataclass(frozen=True, slots=True)
class Resolved:
    """An entity as it is stored under a key; ``heir_key`` names what it was merged into."""

    entity: Entity
    merged_into: int | None
    heir_key: str | None


@dataclass(frozen=True, slots=True)
class LinkedEntity:
    """An entity that stands in the same memories, and in how many."""

    key: str
    label: str
    memories: int


# Only what may be named is read; the exact rules are in `entity_names`. A range of the index for each beginning, since
# the functions that would cut a key are not leakproof, so that no index can use them under row-level security. "`"
# comes right after "_".
_LIKELY = text(
    """
    SELECT e.key, e.type, e.label, e.aliases FROM entities e
    WHERE e.scope_id = :scope AND e.merged_into IS NULL AND e.id = ANY(ARRAY(
        SELECT coalesce(n.merged_into, n.id)
        FROM unnest(CAST(:types AS text[])) AS t(type) CROSS JOIN unnest(CAST(:words AS text[])) AS w(word)
        JOIN entities n ON n.scope_id = :scope AND n.key COLLATE "C" >= t.type || ':' || w.word
                       AND n.key COLLATE "C" < t.type || ':' || w.word || '`'))
    ORDER BY e.mention_count DESC, e.id
    """
)
# Whoever has such a name already is somebody else, and keeps it.
_NOTE_USER = text(
    """
    WITH own AS (
        INSERT INTO entities (tenant_id, scope_id, key, type, label, aliases, first_seen, last_seen, mention_count)
        VALUES (:tenant, :scope, :key, 'person', :label, CAST(:aliases AS text[]), :at, :at, 0)
        ON CONFLICT (scope_id, key) DO UPDATE SET
            aliases = entities.aliases || ARRAY(
                SELECT a FROM unnest(array_append(excluded.aliases, excluded.label)) AS n(a)
                WHERE a <> entities.label AND a <> ALL(entities.aliases)),
            first_seen = least(entities.first_seen, excluded.first_seen),
            last_seen = greatest(entities.last_seen, excluded.last_seen)
        RETURNING coalesce(merged_into, id) AS id)
    INSERT INTO entities (tenant_id, scope_id, key, type, label, first_seen, last_seen, mention_count, merged_into)
    SELECT :tenant, :scope, v.key, 'person', v.label, :at, :at, 0, own.id
    FROM own, unnest(CAST(:alias_keys AS text[]), CAST(:alias_labels AS text[])) AS v(key, label)
    ON CONFLICT DO NOTHING
    """
)

_SET_LABEL = text(
    """
    UPDATE entities SET label = :label,
        aliases = array_remove(aliases, :label) || CASE WHEN label = :label THEN '{}' ELSE ARRAY[label] END
    WHERE scope_id = :scope AND key = :key AND merged_into IS NULL
    """
)

_COLUMNS = columns_of(entities, Entity)
_LIST = (
    select(*_COLUMNS)
    .where(among(entities.c.scope_id, "scopes"), entities.c.merged_into.is_(None))
    .order_by(entities.c.mention_count.desc(), entities.c.last_seen.desc(), entities.c.id)
    .limit(bindparam("limit"))
)
_HEIR = entities.alias("heir")
_WITH_HEIR = select(*_COLUMNS, entities.c.merged_into, _HEIR.c.key.label("heir_key")).outerjoin_from(
    entities,
    _HEIR,
    and_(_HEIR.c.scope_id == entities.c.scope_id, _HEIR.c.id == entities.c.merged_into),
)
_RESOLVE = (
    _WITH_HEIR.where(among(entities.c.scope_id, "scopes"), entities.c.key == bindparam("key"))
    .order_by((entities.c.scope_id == bindparam("first")).desc(), entities.c.id)
    .limit(1)
)
_BY_ID = _WITH_HEIR.where(entities.c.scope_id == bindparam("scope"), entities.c.id == bindparam("id"))
_ALIAS_KEYS = (
    select(entities.c.key)
    .where(entities.c.scope_id == bindparam("scope"), entities.c.merged_into == bindparam("id"))
    .order_by(entities.c.key)
)


def upsert(
    connection: Connection,
    tenant_id: int,
    scope_id: int,
    *,
    mentions: Mapping[str, tuple[str, str, datetime]],
) -> None:
    """Note that entities were mentioned: key → (type, label, when)."""
    if not mentions:
        return
    rows = connection.execute(_UPSERT, _named(tenant_id, scope_id, mentions)).all()
    _count_heirs(connection, scope_id, mentions, has_alias=any(row.is_alias for row in rows))


def tie(
    connection: Connection,
    tenant_id: int,
    scope_id: int,
    *,
    memory_id: UUID,
    turn_ids: Sequence[UUID],
    turn_scopes: Sequence[int],
    mentions: Mapping[str, tuple[str, str, datetime]],
    uncounted: Collection[str],
) -> None:
    """Connect a memory with the turns that it rests on, without those that are gone meanwhile, and with the entities
    that it talks about: ``mentions`` as for `upsert`, and the keys of those that nobody mentioned once more."""
    if not turn_ids and not mentions and not uncounted:
        return
    values = {
        **_named(tenant_id, scope_id, mentions),
        "memory": memory_id,
        "turns": list(turn_ids),
        "turn_scopes": list(turn_scopes),
        "uncounted": list(uncounted),
    }
    has_alias = connection.execute(_TIE, values).first() is not None
    _count_heirs(connection, scope_id, mentions, has_alias=has_alias)


def _named(
    tenant_id: int, scope_id: int, mentions: Mapping[str, tuple[str, str, datetime]]
) -> dict[str, Any]:
    return {
        "tenant": tenant_id,
        "scope": scope_id,
        "keys": list(mentions),
        "types": [type for type, _, _ in mentions.values()],
        "labels": [label for _, label, _ in mentions.values()],
        "ats": [at for _, _, at in mentions.values()],
    }


def _count_heirs(
    connection: Connection, scope_id: int, mentions: Collection[str], *, has_alias: bool
) -> None:
    # The statement before counted the merged entity itself; what it was merged into is counted besides.
    if has_alias:
        connection.execute(_COUNT_HEIRS, {"scope": scope_id, "keys": list(mentions)})


def mention(
    connection: Connection,
    tenant_id: int,
    scope_id: int,
    *,
    memory_id: UUID,
    entity_ids: Sequence[int],
) -> None:
    """Connect a memory with the entities it talks about."""
    if entity_ids:
        values = {"tenant": tenant_id, "scope": scope_id, "memory": memory_id, "entities": list(entity_ids)}
        connection.execute(_MENTION, values)


def likely_named(connection: Connection, scope_id: int, texts: Sequence[str]) -> tuple[KnownEntity, ...]:
    """Entities of the scope that the texts may name, most mentioned first; see `entity_names.named_in`."""
    words = first_words("\n".join(texts))
    if not words:
        return ()
    values = {"scope": scope_id, "types": list(ENTITY_TYPES), "words": list(words)}
    rows = connection.execute(_LIKELY, values)
    return tuple(KnownEntity(row.key, row.type, row.label, tuple(row.aliases)) for row in rows)


def note_user(
    connection: Connection,
    tenant_id: int,
    scope_id: int,
    *,
    user: str,
    names: Mapping[str, str],
    at: datetime,
) -> None:
    """Note by which display names the user of the scope goes: slug → name, the newest last.

    The entity of the user keeps the key of the user's id; each name is an alias that leads to it, unless another entity
    has that name.
    """
    values = {
        "tenant": tenant_id,
        "scope": scope_id,
        "key": entity_key("person", user),
        "label": [*names.values()][-1],
        "aliases": [user, *[*names.values()][:-1]],
        "at": at,
        "alias_keys": [f"person:{name}" for name in names],
        "alias_labels": list(names.values()),
    }
    connection.execute(_NOTE_USER, values)


def set_label(connection: Connection, scope_id: int, *, user: str, label: str) -> None:
    """Show the entity of the user under another name; the one before stays an alias."""
    connection.execute(_SET_LABEL, {"scope": scope_id, "key": entity_key("person", user), "label": label})


def listed(connection: Connection, scope_ids: Sequence[int], *, limit: int) -> tuple[Entity, ...]:
    """Entities of the scopes, most mentioned first."""
    rows = connection.execute(_LIST, {"scopes": list(scope_ids), "limit": limit})
    return tuple(map(_entity, rows))


def types_of(connection: Connection, scope_ids: Sequence[int], slugs: Sequence[str]) -> dict[str, str]:
    """For each slug that names a known entity its type; of several the one that is mentioned most."""
    if not slugs:
        return {}
    values = {"scopes": list(scope_ids), "slugs": list(slugs), "types": list(ENTITY_TYPES)}
    return {row.slug: row.type for row in connection.execute(_TYPES, values)}


def heirs_by_alias(connection: Connection, scope_ids: Sequence[int]) -> dict[str, str]:
    """Slugs of merged entities and the slug of what each was merged into, where the slug names nothing else."""
    return {row.alias: row.heir for row in connection.execute(_HEIRS, {"scopes": list(scope_ids)})}


def resolve(connection: Connection, scope_ids: Sequence[int], key: str) -> Resolved | None:
    """What is stored under a key, a merged one too. ``scope_ids[0]`` is looked through first."""
    values = {"scopes": list(scope_ids), "first": scope_ids[0], "key": key}
    row = connection.execute(_RESOLVE, values).one_or_none()
    return None if row is None else Resolved(_entity(row), row.merged_into, row.heir_key)


def find(connection: Connection, scope_id: int, entity_id: int) -> Resolved | None:
    """The entity by its id, a merged one too."""
    row = connection.execute(_BY_ID, {"scope": scope_id, "id": entity_id}).one_or_none()
    return None if row is None else Resolved(_entity(row), row.merged_into, row.heir_key)


def alias_keys(connection: Connection, entity: Entity) -> tuple[str, ...]:
    """Keys that were merged into the entity and still lead to it."""
    return tuple(connection.execute(_ALIAS_KEYS, {"scope": entity.scope_id, "id": entity.id}).scalars())


def memories_about(connection: Connection, entity: Entity, *, limit: int) -> tuple[Memory, ...]:
    """The strongest current memories that mention the entity."""
    values = {"scope": entity.scope_id, "entity": entity.id, "limit": limit}
    return tuple(map(memory_of, connection.execute(_ABOUT, values)))


def linked_entities(connection: Connection, entity: Entity, *, limit: int) -> tuple[LinkedEntity, ...]:
    """Entities that stand in the same current memories, most often first."""
    values = {"scope": entity.scope_id, "entity": entity.id, "limit": limit}
    return tuple(LinkedEntity(*row) for row in connection.execute(_LINKED_KEYS, values))


def _entity(row: Row[*tuple[Any, ...]]) -> Entity:
    fields = {column.name: row._mapping[column] for column in _COLUMNS}
    return Entity(**{**fields, "aliases": tuple(row.aliases)})
