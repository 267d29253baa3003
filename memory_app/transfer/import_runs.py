"""The imports of a person: those that were asked for, and how far each is."""

from __future__ import annotations

from uuid import UUID

from memory_app.db.db import transaction
from memory_app.errors import NotFound
from memory_app.jobs.rows import listed_runs, runs
from memory_app.jobs.rows.listed_runs import ListedRun
from memory_app.jobs.rows.runs import ScopeRun
from memory_app.records.run import RunName
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.tenancy.rows import names
from memory_app.tenancy.shards import in_scopes_shard

PAGE_LIMIT = 200


@in_scopes_shard
def list_imports(
    runtime: Runtime, tenant_id: int, scope: Scope, *, limit: int = 50, before: UUID | None = None
) -> tuple[ListedRun, ...]:
    """Imports into the scope, newest first; ``before`` is the last of the page before. None for an unknown scope,
    since an import makes it."""
    with transaction(runtime.engine, tenant_id) as connection:
        row = names.find_scope(connection, tenant_id, scope)
        if row is None:
            return ()
        only = (RunName.IMPORT_FILE,)
        return listed_runs.of_scope(
            connection, row.id, names=only, limit=min(limit, PAGE_LIMIT), before=before
        )


@in_scopes_shard
def read_import(runtime: Runtime, tenant_id: int, scope: Scope, run_id: UUID) -> ScopeRun:
    """One of them. `NotFound` for a run of another scope or of another job."""
    with transaction(runtime.engine, tenant_id) as connection:
        row = names.need_scope(connection, tenant_id, scope)
        run = runs.read(connection, run_id)
    if not isinstance(run, ScopeRun) or run.scope_id != row.id or run.name != RunName.IMPORT_FILE:
        raise NotFound(f"no import {run_id} for this agent and user", field="id")
    return run
