"""``sleep``, ``synthesize``, ``consolidate``, ``decay``, ``undo``: jobs over one agent and user, done at once."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

import typer

from memory_app.console.connect import Tenant, connect
from memory_app.console.output import AsJson, out, write_json, write_table
from memory_app.console.scope import Agent, User
from memory_app.console.settings import Data
from memory_app.dispatch.perform import check_done, perform_here
from memory_app.jobs.rows.runs import Run
from memory_app.records.run import RunState
from memory_app.records.scope import Scope

app = typer.Typer()


@app.command()
def sleep(
    agent: Agent = "assistant",
    user: User = "me",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the report and change nothing.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Without any cool-down.")] = False,
    cool_down_seconds: Annotated[
        float | None,
        typer.Option("--cool-down", help="Seconds for which the last cycle is enough.", show_default=False),
    ] = None,
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
        "cool_down_seconds": cool_down_seconds,
        "max_clusters": max_clusters,
        "max_inspected": max_inspected,
        "min_cluster_size": min_cluster_size,
        "similarity": similarity,
        "min_strength": min_strength,
        "summary_chars": summary_chars,
    }
    with connect(data, tenant) as memory:
        scope = Scope(agent, user)
        run = perform_here(memory, scope, memory.sleep(scope, **options))
    if as_json:
        write_json(run)
    elif run.state is RunState.DONE:
        _show(run, dry_run=dry_run)
    check_done(run)


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
        run = perform_here(memory, scope, enqueued)
    if as_json:
        write_json(run)
    elif run.state is RunState.DONE:
        counts = (f"{name} {value}" for name, value in run.report.items() if isinstance(value, int | str))
        out.print(f"run {run.id}: {', '.join(counts)}", markup=False, highlight=False)
    check_done(run)


@app.command()
def consolidate(
    kind: Annotated[
        str | None, typer.Option(help="Only memories of this kind, such as fact.", show_default=False)
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the report and change nothing.")] = False,
    agent: Agent = "assistant",
    user: User = "me",
    tenant: Tenant = "default",
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Let all memories that say the same become one, firm ones too. `memory undo RUN` takes it back."""
    scope = Scope(agent, user)
    with connect(data, tenant) as memory:
        run = perform_here(memory, scope, memory.consolidate(scope, kind=kind, dry_run=dry_run))
    if as_json:
        write_json(run)
    elif run.state is RunState.DONE:
        _show_freed(run, dry_run=dry_run)
    check_done(run)


@app.command()
def decay(
    agent: Agent = "assistant",
    user: User = "me",
    tenant: Tenant = "default",
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Retire memories that have faded or are too many, and delete those retired long ago, without waiting for Beat."""
    scope = Scope(agent, user)
    with connect(data, tenant) as memory:
        run = perform_here(memory, scope, memory.decay(scope))
    if as_json:
        write_json(run)
    elif run.state is RunState.DONE:
        report = run.report
        counts = f"{report['retired']} retired, {report['purged']} deleted, {report['current']} current"
        out.print(f"run {run.id}: {counts}", markup=False, highlight=False)
    check_done(run)


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
    _show_freed(run, dry_run=dry_run)


def _show_freed(run: Run, *, dry_run: bool) -> None:
    report = run.report
    verb = "would free" if dry_run else "freed"
    clusters = f"{len(report['clusters'])} clusters, {verb} {report['freed']}"
    out.print(f"run {run.id}: inspected {report['inspected']}, {clusters}", markup=False, highlight=False)
    if report["reason"]:
        out.print(report["reason"], markup=False, highlight=False)
