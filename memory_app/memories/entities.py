"""Entities: who and what is talked about, their cards, and merging two that are one, by hand, with undo.

Nothing here guesses that two names mean one thing: whoever merges says so. The key of a merged entity stays as an alias
that leads to its heir.
"""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import Connection

from memory_app.db.db import transaction
from memory_app.db.shards import at_home
from memory_app.errors import Conflict, InvalidInput, NotFound
from memory_app.jobs.rows import runs
from memory_app.memories.remember import drop_context
from memory_app.memories.rows import aliases, entities
from memory_app.memories.rows.aliases import Moved
from memory_app.memories.rows.entities import Entity, LinkedEntity, Resolved
from memory_app.records.records import ENTITY_TYPES, Memory
from memory_app.records.reports import EntityMergeReport
from memory_app.records.run import RunName
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.tenancy.rows import names
from memory_app.tenancy.shards import in_scopes_shard

CARD_FACTS = 10
CARD_LINKED = 20


@dataclass(frozen=True, slots=True)
class Card:
    """An entity with what is known of it: ``alias_keys`` lead to it, ``facts`` are the strongest current memories."""

    entity: Entity
    alias_keys: tuple[str, ...]
    facts: tuple[Memory, ...]
    linked: tuple[LinkedEntity, ...]


@dataclass(frozen=True, slots=True)
class MergedEntity:
    """The heir's card, and the run whose undo takes the merge back."""

    card: Card
    run_id: UUID


@in_scopes_shard
def list_entities(runtime: Runtime, tenant_id: int, scope: Scope, *, limit: int) -> tuple[Entity, ...]:
    """Who and what is talked about, most mentioned first."""
    with transaction(runtime.engine, tenant_id) as connection:
        row = names.need_scope(connection, tenant_id, scope)
        listed = names.over_visible(
            connection,
            row,
            lambda place, scopes: entities.listed(place, scopes, limit=limit),
            order=lambda entity: -entity.mention_count,
        )
    return listed[:limit]


@in_scopes_shard
def card(runtime: Runtime, tenant_id: int, scope: Scope, *, key: str) -> Card:
    """The card of the entity that ``key`` leads to; a merged key leads to its heir.

    Raises `InvalidInput` for what is no key, `NotFound` for an unknown one.
    """
    _check_key(key, "key")
    with transaction(runtime.engine, tenant_id) as connection:
        row = names.need_scope(connection, tenant_id, scope)
        resolved = entities.resolve(connection, _own_first(row), key)
        if resolved is not None or not row.shared:
            return _card(connection, _heir(connection, _existing(resolved, key=key, field="key")))
        with at_home(connection) as home:
            resolved = _need(home, row.shared, key=key, field="key")
            return _card(home, _heir(home, resolved))


@in_scopes_shard
def merge(runtime: Runtime, tenant_id: int, scope: Scope, *, key: str, into: str) -> MergedEntity:
    """The entity ``key`` is the same thing as ``into``: its mentions and aliases move there, its key stays as an alias.

    Entities merged into it before follow. Raises `InvalidInput` for a merge into itself, `Conflict` when one of the two
    was merged already (naming the heir), `NotFound` for an unknown key of this user.
    """
    _check_key(key, "key")
    _check_key(into, "into")
    if key == into:
        raise InvalidInput("into: an entity cannot be merged into itself", field="into")
    with transaction(runtime.engine, tenant_id) as connection:
        row = names.need_scope(connection, tenant_id, scope)
        names.hold_scope(connection, tenant_id, scope, row.id)
        # Only this user's own entities: the agent's are shared with other users, for whom they must stay apart.
        merged = _need(connection, (row.id,), key=key, field="key")
        heir = _need(connection, (row.id,), key=into, field="into")
        _check_live(merged, heir)
        run_id = _merge(connection, tenant_id, merged=merged.entity, heir=heir.entity)
        # Read again, since the merge changed what the heir is called and how often it was mentioned.
        heir_card = _card(connection, _by_id(connection, row.id, heir.entity.id))
    drop_context(runtime, row.id)
    return MergedEntity(heir_card, run_id)


def undo_merge(connection: Connection, tenant_id: int, run: runs.ScopeRun) -> None:
    """Give back what a merge moved. The scope's row must be locked.

    Raises `Conflict` naming what blocks it, and then nothing is changed: one of the two was merged again since.
    """
    report = EntityMergeReport.read(run.report)
    merged = entities.find(connection, run.scope_id, report.entity)
    heir = entities.find(connection, run.scope_id, report.into)
    if merged is None or heir is None:
        raise Conflict(
            "one of the two entities was forgotten since; there is nothing to take apart", field="id"
        )
    if heir.merged_into is not None:
        raise Conflict(
            f"{heir.entity.key} was merged into {heir.heir_key} since; undo that merge first", field="id"
        )
    if merged.merged_into != heir.entity.id:
        raise Conflict(f"{merged.entity.key} is no longer merged into {heir.entity.key}", field="id")
    moved = Moved(report.moved, report.shared, report.followers)
    aliases.give_back(
        connection, tenant_id, run.scope_id, entity_id=merged.entity.id, heir_id=heir.entity.id, moved=moved
    )
    _take_back(connection, merged=merged.entity, heir=heir.entity, report=report)


def _merge(connection: Connection, tenant_id: int, *, merged: Entity, heir: Entity) -> UUID:
    moved = aliases.move(connection, heir.scope_id, merged.id, heir_id=heir.id)
    names_of_heir = {heir.label, *heir.aliases}
    names_of_merged = dict.fromkeys((merged.label, *merged.aliases))
    added = [name for name in names_of_merged if name not in names_of_heir]
    aliases.amend(
        connection,
        heir,
        aliases=[*heir.aliases, *added],
        count=merged.mention_count,
        first_seen=min(heir.first_seen, merged.first_seen),
        last_seen=max(heir.last_seen, merged.last_seen),
    )
    # With what the heir was before, so that an undo can tell it from what the heir learned since.
    report = EntityMergeReport(
        entity=merged.id,
        into=heir.id,
        moved=moved.moved,
        shared=moved.shared,
        followers=moved.followers,
        aliases_added=len(added),
        first_seen=heir.first_seen,
        last_seen=heir.last_seen,
    )
    return runs.record(connection, tenant_id, RunName.MERGE_ENTITIES, scope_id=heir.scope_id, report=report)


def _take_back(connection: Connection, *, merged: Entity, heir: Entity, report: EntityMergeReport) -> None:
    """What the heir was called and when it was seen, but for what it learned itself since."""
    names_of_merged = {merged.label, *merged.aliases}
    remaining = list(heir.aliases)
    # From the end, where the merge put them: the heir may have had one of these names before.
    shared = [name for name in reversed(heir.aliases) if name in names_of_merged]
    for name in shared[: report.aliases_added]:
        remaining.remove(name)
    # A time that is not that of the merged entity comes from the heir itself, and stays.
    keeps_first = heir.first_seen != merged.first_seen
    keeps_last = heir.last_seen != merged.last_seen
    aliases.amend(
        connection,
        heir,
        aliases=remaining,
        count=-merged.mention_count,
        first_seen=heir.first_seen if keeps_first else report.first_seen,
        last_seen=heir.last_seen if keeps_last else report.last_seen,
    )


def _card(connection: Connection, entity: Entity) -> Card:
    return Card(
        entity=entity,
        alias_keys=entities.alias_keys(connection, entity),
        facts=entities.memories_about(connection, entity, limit=CARD_FACTS),
        linked=entities.linked_entities(connection, entity, limit=CARD_LINKED),
    )


def _heir(connection: Connection, resolved: Resolved) -> Entity:
    if resolved.merged_into is None:
        return resolved.entity
    # One step is enough: a merge makes whatever was merged into the entity before point to the new heir.
    return _by_id(connection, resolved.entity.scope_id, resolved.merged_into)


def _by_id(connection: Connection, scope_id: int, entity_id: int) -> Entity:
    resolved = entities.find(connection, scope_id, entity_id)
    assert resolved is not None
    return resolved.entity


def _need(connection: Connection, scope_ids: tuple[int, ...], *, key: str, field: str) -> Resolved:
    return _existing(entities.resolve(connection, scope_ids, key), key=key, field=field)


def _existing(resolved: Resolved | None, *, key: str, field: str) -> Resolved:
    if resolved is None:
        raise NotFound(f"{field}: no entity {key!r} here", field=field)
    return resolved


def _own_first(row: names.ScopeRow) -> tuple[int, ...]:
    # A user's own entity hides the agent's of the same key.
    return tuple(dict.fromkeys((row.id, *row.visible)))


def _check_live(merged: Resolved, heir: Resolved) -> None:
    if merged.heir_key == heir.entity.key:
        raise Conflict(f"key: {merged.entity.key} is merged into {merged.heir_key} already", field="key")
    if merged.heir_key is not None:
        raise Conflict(
            f"key: {merged.entity.key} was merged into {merged.heir_key}; merge that one", field="key"
        )
    if heir.heir_key is not None:
        raise Conflict(
            f"into: {heir.entity.key} was merged into {heir.heir_key}; merge into that", field="into"
        )


def _check_key(key: str, field: str) -> None:
    # Without a colon the name is empty.
    kind, _, name = key.partition(":")
    if not name or kind not in ENTITY_TYPES:
        raise InvalidInput(
            f"{field}: a key is type:slug, as in person:john_doe; types: {', '.join(ENTITY_TYPES)}",
            field=field,
        )
