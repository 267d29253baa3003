"""``sleep``, ``synthesize``, ``undo``: jobs over one agent and user at once, and taking back what a run did."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

import typer

from memory_app import MemoryApp
from memory_app.console.connect import Tenant, connect
from memory_app.console.output import AsJson, out, write_json, write_table
from memory_app.console.scope import Agent, User
from memory_app.console.settings import Data
from memory_app.dispatch.job_table import JOBS
from memory_app.errors import Permanent
from memory_app.jobs import jobs
from memory_app.jobs.rows.runs import Run
from memory_app.records.run import RunState
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.tenancy.shards import in_scopes_shard

app = typer.Typer()


@app.command()
def sleep(
    agent: Agent = "assistant",
    user: User = "me",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the report and change nothing.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Without any cool-down.")] = False,
    max_clusters: Annotated[int | None, typer.Option(help="Most clusters merged.")] = None,
    max_inspected: Annotated[int | None, typer.Option(help="Most memories looked at.")] = None,
    min_cluster_size: Annotated[int | None, typer.Option(help="Smaller clusters are left.")] = None,
    similarity: Annotated[float | None, typer.Option(help="Cosine at which memories may become one.")] = None,
    min_strength: Annotated[float | None, typer.Option(help="Firm memories are left.")] = None,
    summary_chars: Annotated[int | None, typer.Option(help="Longest summary.")] = None,
    tenant: Tenant = "default",
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Let what says the same become one, name patterns, link likenesses. `memory undo RUN` takes it back."""
    options: dict[str, Any] = {
        "dry_run": dry_run,
        "force": force,
        "max_clusters": max_clusters,
        "max_inspected": max_inspected,
        "min_cluster_size": min_cluster_size,
        "similarity": similarity,
        "min_strength": min_strength,
        "summary_chars": summary_chars,
    }
    with connect(data, tenant) as memory:
        scope = Scope(agent, user)
        run = _performed(memory, scope, memory.sleep(scope, **options))
    if as_json:
        write_json(run)
    elif run.state is RunState.DONE:
        _show(run, dry_run=dry_run)
    _check_done(run)


@app.command()
def synthesize(
    type: Annotated[
        str,
        typer.Argument(
            help="turn: what the latest turns mean. session: what remains of one. deep: what days show together."
        ),
    ],
    session: Annotated[str | None, typer.Option(help="The conversation; not for deep.")] = None,
    max_memories: Annotated[int | None, typer.Option(help="Most memories looked at, for deep.")] = None,
    days: Annotated[int | None, typer.Option(help="How far back, for deep.")] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="For deep: show the report and change nothing.")
    ] = False,
    agent: Agent = "assistant",
    user: User = "me",
    tenant: Tenant = "default",
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Have a language model make memories of turns, a session or some days. `memory undo RUN` takes it back."""
    scope = Scope(agent, user, session)
    with connect(data, tenant) as memory:
        enqueued = memory.synthesize(scope, type, max_memories=max_memories, days=days, dry_run=dry_run)
        run = _performed(memory, scope, enqueued)
    if as_json:
        write_json(run)
    elif run.state is RunState.DONE:
        counts = (f"{name} {value}" for name, value in run.report.items() if isinstance(value, int | str))
        out.print(f"run {run.id}: {', '.join(counts)}", markup=False, highlight=False)
    _check_done(run)


def _performed(memory: MemoryApp, scope: Scope, enqueued: Run) -> Run:
    """The run once it has ended. It is done here, so that the commands work without workers."""
    _perform(memory.runtime, memory.tenant_id, scope, enqueued.id)
    # A worker may have been faster.
    return memory.run(enqueued.id, wait_seconds=600)


def _check_done(run: Run) -> None:
    if run.state is not RunState.DONE:
        raise Permanent(f"run {run.id} {run.state}: {run.reason or 'it goes on in the background'}")


@in_scopes_shard
def _perform(runtime: Runtime, _tenant_id: int, _scope: Scope, run_id: UUID) -> None:
    jobs.perform(runtime, run_id, JOBS)


@app.command()
def undo(
    run_id: Annotated[UUID, typer.Argument(help="The run, as `memory sleep` named it.")],
    tenant: Tenant = "default",
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Take back everything a run did, or nothing."""
    with connect(data, tenant) as memory:
        run = memory.undo(run_id)
    if as_json:
        write_json(run)
    else:
        out.print(f"run {run.id} ({run.name}) was undone", markup=False, highlight=False)


def _show(run: Run, *, dry_run: bool) -> None:
    report = run.report
    rows = [
        (
            # The anchor is not listed among the merged.
            len(cluster["merged"]) + 1,
            cluster["strength_before"],
            cluster["strength_after"],
            cluster.get("summary"),
        )
        for cluster in report["clusters"]
    ]
    if rows:
        write_table("became one", ("memories", "strength before", "after", "summary"), rows)
    verb = "would free" if dry_run else "freed"
    out.print(
        f"run {run.id}: inspected {report['inspected']}, {len(rows)} clusters, {verb} {report['freed']}",
        markup=False,
        highlight=False,
    )
    if report["reason"]:
        out.print(report["reason"], markup=False, highlight=False)
