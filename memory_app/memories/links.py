"""Link memories by hand, read the links of one, and remove a link.

A link joins memories of one scope. Where a memory comes from (``derived_from``) is written by jobs alone: it is what
`why`, undo and forgetting go by, so a caller can neither draw nor remove it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from memory_app.db.db import transaction
from memory_app.errors import Conflict, InvalidInput, NotFound
from memory_app.memories.link_id import LinkId, parse_link_id
from memory_app.memories.remember import drop_context
from memory_app.memories.rows import fading, memories
from memory_app.memories.rows import links as link_store
from memory_app.memories.rows.links import DrawnLink
from memory_app.records.choice import choice_of
from memory_app.records.ids import checked_id
from memory_app.records.records import LinkType
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.tenancy.rows import names
from memory_app.tenancy.shards import in_scopes_shard

LIMIT_MOST = 500


@dataclass(frozen=True, slots=True)
class LinkView:
    """A link as callers see it. ``weight`` 0–1."""

    id: str
    source: UUID
    target: UUID
    type: str
    weight: float
    created_at: datetime


@in_scopes_shard
def add_link(
    runtime: Runtime,
    tenant_id: int,
    scope: Scope,
    *,
    source: UUID | str,
    target: UUID | str,
    type: LinkType | str = LinkType.RELATED_TO,
    weight: float = 1.0,
) -> LinkView:
    """Draw a link from one current memory of the scope to another; drawn again it takes the new weight.

    A memory keeps its strongest links only, as many as the setting ``remember.links_each`` says. Raises `InvalidInput`
    naming the field, `NotFound` for a memory that is not of this scope, `Conflict` for one that is retired or has as
    many stronger links already.
    """
    ends = {"source": checked_id(source, field="source"), "target": checked_id(target, field="target")}
    if ends["source"] == ends["target"]:
        raise InvalidInput("target: a memory cannot be linked to itself", field="target")
    kind = choice_of(LinkType, type, field="type")
    if kind is LinkType.DERIVED_FROM:
        raise InvalidInput("type: derived_from is written by jobs alone", field="type")
    # Also false for what is no number.
    if not 0 < weight <= 1:
        raise InvalidInput("weight: above 0 and at most 1", field="weight")
    with transaction(runtime.engine, tenant_id) as connection:
        row = names.need_scope(connection, tenant_id, scope)
        if not names.lock_scope(connection, tenant_id, row.id):
            raise NotFound("the person was erased while this ran; nothing was stored")
        for field, memory_id in ends.items():
            stored = memories.read(connection, memory_id)
            if stored is None or stored.scope_id != row.id:
                raise NotFound(f"{field}: no memory {memory_id} of this agent and user", field=field)
            if stored.memory.retired_at is not None:
                raise Conflict(f"{field}: memory {memory_id} is no longer current", field=field)
        limit = runtime.settings.remember.links_each
        edge = (ends["source"], ends["target"], weight)
        link_store.add(connection, tenant_id, row.id, edges=[edge], type=kind, limit=limit)
        drawn = link_store.read(connection, row.id, LinkId(ends["source"], ends["target"], kind))
        if drawn is None:
            raise Conflict(
                f"weight: one of the two has {limit} stronger links already; give a greater weight or remove one",
                field="weight",
            )
        # Links of older memories are not seen by what counts new rows.
        fading.note_links(connection, row.id, None)
    drop_context(runtime, row.id)
    return _view(drawn)


@in_scopes_shard
def list_links(
    runtime: Runtime, tenant_id: int, scope: Scope, *, memory: UUID | str, limit: int = 50
) -> tuple[LinkView, ...]:
    """Links that begin or end at a memory of the scope, strongest first; also those that jobs drew."""
    memory_id = checked_id(memory, field="memory")
    if not 1 <= limit <= LIMIT_MOST:
        raise InvalidInput(f"limit: 1 to {LIMIT_MOST}", field="limit")
    with transaction(runtime.engine, tenant_id) as connection:
        row = names.need_scope(connection, tenant_id, scope)
        stored = memories.read(connection, memory_id)
        if stored is None or stored.scope_id != row.id:
            raise NotFound(f"memory: no memory {memory_id} of this agent and user", field="memory")
        drawn = link_store.drawn_at(connection, row.id, memory_id, limit=limit)
    return tuple(map(_view, drawn))


@in_scopes_shard
def remove_link(runtime: Runtime, tenant_id: int, scope: Scope, id: str) -> None:
    """Remove a link; both memories stay. Raises `NotFound` where there is none, `Conflict` for ``derived_from``."""
    link = parse_link_id(id)
    if link is None:
        raise NotFound("no link of this id; list the links of a memory to see theirs", field="id")
    if link.type == LinkType.DERIVED_FROM:
        raise Conflict("id: the link says where a memory comes from; forget the memory instead", field="id")
    with transaction(runtime.engine, tenant_id) as connection:
        row = names.need_scope(connection, tenant_id, scope)
        if not link_store.remove(connection, row.id, link):
            raise NotFound(f"no link {id}", field="id")
    drop_context(runtime, row.id)


def _view(link: DrawnLink) -> LinkView:
    return LinkView(
        id=str(LinkId(link.source_id, link.target_id, link.type)),
        source=link.source_id,
        target=link.target_id,
        type=link.type,
        weight=link.weight,
        created_at=link.created_at,
    )
