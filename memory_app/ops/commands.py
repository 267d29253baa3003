"""``doctor`` checks all parts and says what to do; ``status`` counts what is stored and what is waiting."""

from __future__ import annotations

from collections.abc import Mapping
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
    report = status_service.status(find_settings(data), tenant=tenant)
    if as_json:
        write_json(report)
        return
    pipe = report.pipeline
    backlog = f"{shown(pipe.unindexed)} turns to index (oldest {pipe.oldest_unindexed_seconds:.0f} s)"
    backlog += f", {shown(pipe.due_sessions)} sessions to extract (oldest {pipe.oldest_due_seconds:.0f} s)"
    _print(f"backlog: {backlog}")
    for name, queues in (report.workers or {}).items():
        _print(f"worker {name}: {', '.join(queues)}")
    if not report.workers:
        reason = "Redis does not answer" if report.workers is None else "none answers"
        _print(f"workers: {reason}")
    if report.dropped is not None and report.dropped.total:
        _print(f"messages dropped: {_listed(report.dropped.counts)}")
    for reason in report.left_out:
        _print(f"not counted: {reason}")
    columns = ("tenant", "sessions", "turns by stage", "memories by kind", "missed periods")
    rows = [
        (
            name,
            tenant.sessions,
            _listed(tenant.turns),
            _listed(tenant.memories),
            _listed(tenant.missed_periods),
        )
        for name, tenant in report.tenants.items()
    ]
    write_table("tenants", columns, rows)


def _write(check: Check) -> None:
    colour = COLOURS[check.state]
    out.print(f"[{colour}]{check.state:<5}[/{colour}]", end="", highlight=False)
    _print(f"{check.name:<19} {check.found}")
    if check.to_do:
        _print(f"     {'':<19} → {check.to_do}")


def _print(line: str) -> None:
    # Names of tenants and workers may look like markup.
    out.print(line, markup=False, highlight=False)


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.items())
