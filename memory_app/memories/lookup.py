"""Memories by id: read, list, explain, pin, close. A text is never edited here or anywhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import Connection

from memory_app.db import clock
from memory_app.db.db import transaction
from memory_app.errors import Conflict, InvalidInput, NotFound
from memory_app.memories import capacity, fate
from memory_app.memories.remember import drop_context
from memory_app.memories.rows import lineage, memories
from memory_app.memories.rows.fading import LinkedMemory
from memory_app.memories.rows.lineage import Parent, RunRow
from memory_app.memories.rows.memory_rows import ScopedMemory
from memory_app.memories.strength import fades_at
from memory_app.memories.vital import is_vital
from memory_app.records.kinds import kind_of
from memory_app.records.records import RECOVERABLE, Memory, Retirement, Turn
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.tenancy.rows import names
from memory_app.tenancy.shards import in_scopes_shard, where_stored

VERSIONS_LIMIT = 500
"""Most rows of a chain shown in one answer."""

LINEAGE_LIMIT = 100
"""Most turns and parents shown in one answer."""


@dataclass(frozen=True, slots=True)
class MemoryFilter:
    """What to list; None leaves it open. ``before`` is the last id of the page before. ``history`` adds what was
    retired; each row names its successor."""

    kind: str | None = None
    tag: str | None = None
    limit: int = 50
    before: UUID | None = None
    history: bool = False


@dataclass(frozen=True, slots=True)
class Why:
    """Where a memory comes from and how firmly it stands. ``strength`` 0–1; ``fate`` tells what becomes of it.

    ``agent`` knows it, of ``user``; of all of its users, where that is None.
    """

    agent: str
    user: str | None
    memory: Memory
    evidence: tuple[Turn, ...]
    parents: tuple[Parent, ...]
    successor: Memory | None
    runs: tuple[RunRow, ...]
    strength: float
    fades_at: datetime | None
    fate: str


@where_stored
def read_memory(runtime: Runtime, tenant_id: int, memory_id: UUID) -> Memory:
    """One memory of the tenant, retired ones included."""
    with transaction(runtime.engine, tenant_id) as connection:
        return _need(connection, memory_id).memory


@in_scopes_shard
def list_memories(
    runtime: Runtime, tenant_id: int, scope: Scope, *, filters: MemoryFilter
) -> tuple[Memory, ...]:
    """Current memories of the scope, the agent's own included, newest first."""
    if filters.tag is not None and not filters.tag.strip():
        raise InvalidInput("tag: empty; leave it out to list all", field="tag")
    kinds = None if filters.kind is None else (kind_of(filters.kind).name,)
    with transaction(runtime.engine, tenant_id) as connection:
        row = names.need_scope(connection, tenant_id, scope)
        listed = names.over_visible(
            connection,
            row,
            lambda place, scopes: memories.listed(
                place,
                scopes,
                kinds=kinds,
                tag=filters.tag,
                limit=filters.limit,
                before=filters.before,
                history=filters.history,
            ),
            order=lambda memory: -memory.id.int,
        )
    return listed[: filters.limit]


@where_stored
def versions(runtime: Runtime, tenant_id: int, memory_id: UUID) -> tuple[Memory, ...]:
    """The chain a memory stands in: what it replaced or was made of, and what replaced it; the last one standing comes
    last. A text never changes, so each version is a row of its own."""
    with transaction(runtime.engine, tenant_id) as connection:
        stored = _need(connection, memory_id)
        return lineage.chain(
            connection, tenant_id, stored.scope_id, memory_id=memory_id, limit=VERSIONS_LIMIT
        )


@where_stored
def why(runtime: Runtime, tenant_id: int, memory_id: UUID) -> Why:
    """Evidence, parents, successor and jobs behind a memory, its strength now and when it fades."""
    with transaction(runtime.engine, tenant_id) as connection:
        stored = _need(connection, memory_id)
        scope_id, memory = stored.scope_id, stored.memory
        turns = lineage.evidence(connection, tenant_id, scope_id, memory_id=memory_id, limit=LINEAGE_LIMIT)
        parents = lineage.parents(connection, tenant_id, scope_id, memory_id=memory_id, limit=LINEAGE_LIMIT)
        # With the jobs behind what it was made of: the row's own tells only of the merge.
        family = [memory_id, *(parent.memory.id for parent in parents)]
        jobs = lineage.runs(connection, tenant_id, scope_id, ids=family)
        successor = None if memory.successor is None else memories.read(connection, memory.successor)
        now = clock.now(connection)
        is_hub = fate.is_hub(connection, runtime, scope_id, memory_id=memory_id)
        scope = names.read_scope(connection, scope_id)
    # By its foreign key.
    assert scope is not None
    # Not stored but computed, from the settings as they are now.
    expiry = capacity.expiry_half_life(runtime, LinkedMemory(memory, 0, is_vital(memory)))
    fades = None if is_hub else fades_at(memory, runtime.settings.decay.faded_strength, expiry)
    return Why(
        agent=scope.agent,
        user=scope.user,
        memory=memory,
        evidence=turns,
        parents=parents,
        successor=None if successor is None else successor.memory,
        runs=jobs,
        strength=capacity.strength_of(runtime, memory, now),
        fades_at=fades,
        fate=fate.describe(runtime, memory, fading_at=fades, is_hub=is_hub),
    )


@where_stored
def pin(runtime: Runtime, tenant_id: int, memory_id: UUID, *, pinned: bool) -> Memory:
    """Pin or unpin; pinning brings back what expired or was evicted. `Conflict` for one that is otherwise retired."""
    with transaction(runtime.engine, tenant_id) as connection:
        stored = _need(connection, memory_id)
        # Reviving makes a row current again, which only one transaction of a scope may do at a time.
        _hold(connection, tenant_id, stored)
        if pinned and stored.memory.retired_reason in RECOVERABLE:
            fate.revive_row(connection, stored.scope_id, stored.memory)
        if not memories.pin(connection, stored.scope_id, memory_id, pinned=pinned):
            raise _retired(stored.memory)
        changed = _need(connection, memory_id)
    drop_context(runtime, changed.scope_id)
    return changed.memory


@where_stored
def invalidate(runtime: Runtime, tenant_id: int, memory_id: UUID) -> Memory:
    """Close the interval now and keep the row as history; repeating it changes nothing.

    `Conflict` for a memory that was retired for another reason.
    """
    with transaction(runtime.engine, tenant_id) as connection:
        stored = _need(connection, memory_id)
        _hold(connection, tenant_id, stored)
        closed = memories.invalidate(connection, stored.scope_id, memory_id, until=clock.now(connection))
        changed = _need(connection, memory_id)
        # Closed already by an earlier call: the same answer again.
        if closed is None and changed.memory.retired_reason is not Retirement.INVALIDATED:
            raise _retired(changed.memory)
    drop_context(runtime, changed.scope_id)
    return changed.memory


@in_scopes_shard
def need_visible(runtime: Runtime, tenant_id: int, scope: Scope, memory_id: UUID) -> Memory:
    """The memory, if the scope may see it. Raises `NotFound` as if there were none."""
    with transaction(runtime.engine, tenant_id) as connection:
        row = names.need_scope(connection, tenant_id, scope)
        found = names.over_visible(connection, row, lambda place, scopes: _among(place, scopes, memory_id))
    return _one(found, memory_id)


@in_scopes_shard
def need_own(runtime: Runtime, tenant_id: int, scope: Scope, memory_id: UUID) -> Memory:
    """The memory, if it belongs to the scope itself and not to all users of the agent. Raises `NotFound`."""
    with transaction(runtime.engine, tenant_id) as connection:
        row = names.need_scope(connection, tenant_id, scope)
        found = _among(connection, (row.id,), memory_id)
    return _one(found, memory_id)


def _among(connection: Connection, scope_ids: Sequence[int], memory_id: UUID) -> tuple[Memory, ...]:
    """The memory, if it is of one of the scopes; else none."""
    stored = memories.read(connection, memory_id)
    return () if stored is None or stored.scope_id not in scope_ids else (stored.memory,)


def _one(found: Sequence[Memory], memory_id: UUID) -> Memory:
    if not found:
        raise NotFound(f"no memory {memory_id}", field="id")
    return found[0]


def _need(connection: Connection, memory_id: UUID) -> ScopedMemory:
    stored = memories.read(connection, memory_id)
    if stored is None:
        raise NotFound(f"no memory {memory_id}", field="id")
    return stored


def _hold(connection: Connection, tenant_id: int, stored: ScopedMemory) -> None:
    """Lock the memory's scope. `NotFound` when it is gone: erased, or in another shard now."""
    if not names.lock_scope(connection, tenant_id, stored.scope_id):
        raise NotFound(f"no memory {stored.memory.id}", field="id")


def _retired(memory: Memory) -> Conflict:
    after = f"; {memory.successor} took its place" if memory.successor else ""
    return Conflict(f"memory {memory.id} is no longer current ({memory.retired_reason}){after}", field="id")
