"""``doctor`` and ``status``: is it well, and how far has it come?"""

from __future__ import annotations

from typing import Annotated

import typer

from memory_app.console.output import AsJson, out, write_json, write_table
from memory_app.console.settings import Data, find_settings
from memory_app.jobs.rows.health import shown
from memory_app.ops import doctor as doctor_service
from memory_app.ops import status as status_service
from memory_app.ops.check import Check, State
from memory_app.ops.doctor import is_well

app = typer.Typer()

COLOURS = {State.OK: "green", State.WARN: "yellow", State.FAIL: "red"}


@app.command()
def doctor(data: Data = None, as_json: AsJson = False) -> None:
    """Check servers, settings, workers and due work; exit status 1 when something fails."""
    checks = doctor_service.diagnose(find_settings(data))
    if as_json:
        write_json({"ok": is_well(checks), "checks": checks})
    else:
        for check in checks:
            _write(check)
    if not is_well(checks):
        raise typer.Exit(1)


@app.command()
def status(
    tenant: Annotated[str | None, typer.Option(help="Only this tenant.")] = None,
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Sessions, turns by stage, memories by kind, periods that were missed, backlog and workers."""
    found = status_service.status(find_settings(data), tenant=tenant)
    if as_json:
        write_json(found)
        return
    pipe = found.pipeline
    backlog = f"{shown(pipe.unindexed)} turns to index (oldest {pipe.oldest_unindexed_seconds:.0f} s)"
    backlog += f", {shown(pipe.due_sessions)} sessions to extract (oldest {pipe.oldest_due_seconds:.0f} s)"
    out.print(f"backlog: {backlog}", markup=False, highlight=False)
    for name, queues in (found.workers or {}).items():
        out.print(f"worker {name}: {', '.join(queues)}", markup=False, highlight=False)
    if not found.workers:
        why = "Redis does not answer" if found.workers is None else "none answers"
        out.print(f"workers: {why}", markup=False, highlight=False)
    if found.dropped is not None and found.dropped.total:
        out.print(f"messages dropped: {_listed(found.dropped.counts)}", markup=False, highlight=False)
    columns = ("tenant", "sessions", "turns by stage", "memories by kind", "missed periods")
    rows = [
        (name, a.sessions, _listed(a.turns), _listed(a.memories), _listed(a.missed_periods))
        for name, a in found.tenants.items()
    ]
    write_table("tenants", columns, rows)


def _write(check: Check) -> None:
    colour = COLOURS[check.state]
    out.print(f"[{colour}]{check.state:<5}[/{colour}]", end="", highlight=False)
    out.print(f"{check.name:<19} {check.found}", markup=False, highlight=False)
    if check.to_do:
        out.print(f"     {'':<19} → {check.to_do}", markup=False, highlight=False)


def _listed(counts: object) -> str:
    return ", ".join(f"{n} {name}" for name, n in counts.items()) if isinstance(counts, dict) else ""
