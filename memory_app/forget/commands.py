"""``forget-agent``, ``forget-tenant``: remove an agent, or all of a tenant, for good."""

from __future__ import annotations

from typing import Annotated

import typer

from memory_app import MemoryApp
from memory_app.console.connect import Tenant, connect
from memory_app.console.output import AsJson, out, say, write_json, write_table
from memory_app.console.settings import Data
from memory_app.errors import Permanent
from memory_app.jobs.rows.runs import Run
from memory_app.records.run import OPEN, RunState

app = typer.Typer()

LOOK_SECONDS = 1.0

DryRun = Annotated[bool, typer.Option("--dry-run", help="Count what would go, and delete nothing.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]


@app.command("forget-agent")
def forget_agent(
    agent: Annotated[str, typer.Argument(help="The agent, by the name that the app uses.")],
    dry_run: DryRun = False,
    yes: Yes = False,
    tenant: Tenant = "default",
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Delete an agent with all that it knows of everybody; the people stay, with what other agents know of them.

    A worker does it, and the command shows how far it is. It may be interrupted: the erasure goes on.
    """
    if not dry_run and not yes:
        typer.confirm(
            f"Delete agent {agent!r} of tenant {tenant!r} with all that it knows for good?",
            abort=True,
            err=True,
        )
    with connect(data, tenant) as memory:
        run = follow(memory, memory.forget_agent(agent, dry_run=dry_run))
    show_erased(run, dry_run=dry_run, as_json=as_json)


@app.command("forget-tenant")
def forget_tenant(
    tenant: Annotated[str, typer.Argument(help="The tenant, by its name.")],
    dry_run: DryRun = False,
    yes: Yes = False,
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Delete everybody and every agent of a tenant, and revoke its keys. Each person and agent has a receipt.

    The name, the revoked keys, the audit log and the receipts stay. A worker does it, and the command shows how far it
    is. It may be interrupted: the erasure goes on.
    """
    if not dry_run and not yes:
        typer.confirm(
            f"Delete all that tenant {tenant!r} has, and revoke its keys, for good?", abort=True, err=True
        )
    with connect(data, tenant) as memory:
        run = follow(memory, memory.forget_tenant(dry_run=dry_run))
    show_erased(run, dry_run=dry_run, as_json=as_json)


def follow(memory: MemoryApp, run: Run) -> Run:
    """Wait until an erasure that waits for its turn is over, and show each step."""
    shown = ""
    while run.state in OPEN:
        report = run.report or {"stage": "queued"}
        rows = sum(report.get("counts", {}).values())
        step = f"run {run.id}: {report['stage']}" + (f", {rows} rows so far" if rows else "")
        if step != shown:
            say(step)
            shown = step
        run = memory.run(run.id, wait_seconds=LOOK_SECONDS)
    return run


def show_erased(run: Run, *, dry_run: bool, as_json: bool) -> None:
    """Show how many rows went, and the receipt. Raises `Permanent` for a run that failed."""
    if as_json:
        write_json(run)
        return
    if run.state is RunState.FAILED:
        raise Permanent(f"run {run.id} failed: {run.reason}")
    report = run.report or {}
    counts = report.get("counts", {})
    title = "would be deleted" if dry_run else "deleted"
    write_table(title, ("table", "rows"), [(name, rows) for name, rows in sorted(counts.items()) if rows])
    if report.get("erasure"):
        out.print(f"receipt: {report['erasure']}", highlight=False)
