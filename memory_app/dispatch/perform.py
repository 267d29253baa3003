"""Do a job that a command asked for in the process of the command, so that commands work without workers."""

from __future__ import annotations

from uuid import UUID

from memory_app import MemoryApp
from memory_app.dispatch.job_table import JOBS
from memory_app.errors import Permanent
from memory_app.jobs import jobs
from memory_app.jobs.rows.runs import Run
from memory_app.records.run import RunState
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.tenancy.shards import in_scopes_shard


def perform_here(memory: MemoryApp, scope: Scope, enqueued: Run) -> Run:
    """Do the run of the scope, and return it as it ended; `check_done` says whether it did."""
    _perform(memory.runtime, memory.tenant_id, scope, enqueued.id)
    # A worker may have been faster.
    return memory.run(enqueued.id, wait_seconds=600)


def check_done(run: Run) -> None:
    """Raise `Permanent` for a run that failed or is not over. After the output, so that --json prints it, too."""
    if run.state is not RunState.DONE:
        raise Permanent(f"run {run.id} {run.state}: {run.reason or 'it goes on in the background'}")


@in_scopes_shard
def _perform(runtime: Runtime, _tenant_id: int, _scope: Scope, run_id: UUID) -> None:
    jobs.perform(runtime, run_id, JOBS)
