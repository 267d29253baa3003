"""``forget``: remove a person for good, and print the receipt."""

from __future__ import annotations

from typing import Annotated

import typer

from memory_app.console.connect import Tenant, connect
from memory_app.console.output import AsJson, out, write_json, write_table
from memory_app.console.settings import Data

app = typer.Typer()


@app.command()
def forget(
    user: Annotated[str, typer.Argument(help="The person, by the name that the app uses.")],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Count what would go, and delete nothing.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    tenant: Tenant = "default",
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Delete a person with all agents: turns, memories, entities and what was derived from them alone."""
    if not dry_run and not yes:
        typer.confirm(
            f"Delete everything about {user!r} of tenant {tenant!r} for good?", abort=True, err=True
        )
    with connect(data, tenant) as memory:
        run = memory.forget(user, dry_run=dry_run)
    if as_json:
        write_json(run)
        return
    report = run.report or {}
    counts = report.get("counts", {})
    title = "would be deleted" if dry_run else "deleted"
    write_table(title, ("table", "rows"), [(name, rows) for name, rows in sorted(counts.items()) if rows])
    if report.get("erasure"):
        out.print(f"receipt: {report['erasure']}", highlight=False)
