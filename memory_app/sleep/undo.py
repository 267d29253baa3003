"""Undo a run or one merge: all of it or nothing, and never over a later change."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from uuid import UUID

from sqlalchemy import Connection

from memory_app.db import clock
from memory_app.db.db import transaction
from memory_app.errors import Conflict, NotFound
from memory_app.jobs.rows import runs
from memory_app.jobs.rows.runs import Run, ScopeRun
from memory_app.memories import entities, merging
from memory_app.memories.remember import drop_context
from memory_app.memories.rows import fading, memories, merges
from memory_app.records.records import Memory
from memory_app.records.run import RunName, RunState
from memory_app.runtime import Runtime
from memory_app.sleep import restore
from memory_app.tenancy.rows import names
from memory_app.tenancy.shards import where_stored

Undo = Callable[[Connection, int, ScopeRun], None]
"""Undoes a run under the lock on its scope; raises `Conflict` naming what blocks it."""

UNDO: Mapping[str, Undo] = {
    RunName.CONSOLIDATE: restore.undo,
    RunName.MERGE_ENTITIES: entities.undo_merge,
    RunName.SLEEP: restore.undo,
    RunName.SYNTHESIZE_DEEP: restore.undo,
    RunName.END_SESSION: restore.undo,
}
"""How to undo a run, by its name. Runs of other names cannot be undone."""


@where_stored
def undo_run(runtime: Runtime, tenant_id: int, run_id: UUID) -> Run:
    """Undo everything a run did; the run, whose report then says when it was undone.

    Raises `NotFound`, or `Conflict` when it is not done yet, was undone already, changed nothing, cannot be undone by
    its nature, or when a later change rests on it; then nothing is changed.
    """
    with transaction(runtime.engine, tenant_id) as connection:
        run = runs.read(connection, run_id)
        if not isinstance(run, ScopeRun) or not names.lock_scope(connection, tenant_id, run.scope_id):
            raise NotFound(f"no run {run_id}", field="id")
        # The scope is locked before the run, as everywhere; what was read before may have been undone meanwhile.
        run = runs.lock(connection, run_id)
        assert isinstance(run, ScopeRun)
        _check(run)
        UNDO[run.name](connection, tenant_id, run)
        fading.forget_bounds(connection, run.scope_id)
        runs.amend(connection, run_id, {**run.report, "undone_at": clock.now(connection).isoformat()})
        undone = runs.read(connection, run_id)
    # After the commit: dropped before it, the cache could be filled with the old state again.
    drop_context(runtime, run.scope_id)
    assert undone is not None
    return undone


@where_stored
def undo_merge(runtime: Runtime, tenant_id: int, memory_id: UUID) -> tuple[Memory, ...]:
    """Take one merged memory apart: its parts are current again, as they were, and it is gone. The parts.

    Raises `Conflict` naming what blocks it (it was merged or changed since, or it was never merged), and then nothing
    is changed; `NotFound` for an unknown memory.
    """
    with transaction(runtime.engine, tenant_id) as connection:
        stored = memories.read(connection, memory_id)
        if stored is None:
            raise NotFound(f"no memory {memory_id}", field="id")
        # Before the parts are read, so that nobody merges or changes them in between.
        if not names.lock_scope(connection, tenant_id, stored.scope_id):
            raise NotFound(f"no memory {memory_id}", field="id")
        if not merges.parts(connection, stored.scope_id, [memory_id]):
            raise Conflict(
                f"memory {memory_id} was not made by merging; there is nothing to undo", field="id"
            )
        restored = merging.take_apart(connection, tenant_id, stored.scope_id, memory_id=memory_id)
        fading.forget_bounds(connection, stored.scope_id)
        parts = merges.rows(connection, stored.scope_id, restored)
    drop_context(runtime, stored.scope_id)
    return tuple(part.memory for part in parts)


def _check(run: Run) -> None:
    if run.name not in UNDO:
        raise Conflict(f"a run of {run.name} cannot be undone", field="id")
    if run.state is not RunState.DONE:
        raise Conflict(f"run {run.id} is {run.state}; only what is done can be undone", field="id")
    if run.options.get("dry_run"):
        raise Conflict(f"run {run.id} was a dry run; there is nothing to undo", field="id")
    if run.report.get("undone_at"):
        raise Conflict(f"run {run.id} was undone already", field="id")
