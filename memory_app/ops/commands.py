"""``doctor`` checks all parts and says what to do; ``status`` counts what is stored and what is waiting."""

from __future__ import annotations

from enum import IntEnum
from pathlib import Path
from typing import Annotated

import typer

from memory_app.console.output import AsJson, out, write_json
from memory_app.console.settings import Data, find_settings
from memory_app.errors import MemoryAppError
from memory_app.ops import doctor as doctor_service
from memory_app.ops import status as status_service
from memory_app.ops import status_view
from memory_app.ops.check import Check, State
from memory_app.ops.doctor import is_well
from memory_app.ops.status import Status

app = typer.Typer()

COLOURS = {State.OK: "green", State.WARN: "yellow", State.FAIL: "red"}


class Monitor(IntEnum):
    """Exit statuses as monitors take them."""

    OK = 0
    WARNING = 1
    CRITICAL = 2
    UNKNOWN = 3


@app.command()
def doctor(
    monitor: Annotated[
        bool,
        typer.Option(help="One line, and exit status 0 ok, 1 warning, 2 failure, 3 not checked."),
    ] = False,
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Check servers, settings, workers and due work; exit status 1 when something fails."""
    if monitor:
        raise typer.Exit(_monitored(data))
    checks = doctor_service.diagnose(find_settings(data))
    if as_json:
        write_json({"ok": is_well(checks), "checks": checks})
    else:
        for check in checks:
            _write(check)
    if not is_well(checks):
        raise typer.Exit(1)


def _monitored(data: Path | None) -> Monitor:
    """Print one line for a monitor and return its exit status."""
    try:
        checks = doctor_service.diagnose(find_settings(data))
    except MemoryAppError as error:
        _print(f"UNKNOWN - {error.message}")
        return Monitor.UNKNOWN
    by_state = {state: [check for check in checks if check.state is state] for state in State}
    worst = by_state[State.FAIL] or by_state[State.WARN]
    if not worst:
        _print(f"OK - {len(checks)} checks")
        return Monitor.OK
    status = Monitor.CRITICAL if by_state[State.FAIL] else Monitor.WARNING
    _print(f"{status.name} - " + "; ".join(f"{check.name}: {check.found}" for check in worst))
    return status


@app.command()
def status(
    tenant: Annotated[str | None, typer.Option(help="Only this tenant.")] = None,
    once: Annotated[
        bool, typer.Option(help="Print it once; so it is anyway where the output is no terminal.")
    ] = False,
    every: Annotated[float, typer.Option(min=0.5, help="Seconds between two looks.")] = 2.0,
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Backlog, workers, what waits and why, failed turns, the jobs of the last day and cost; live in a terminal."""
    settings = find_settings(data)

    def look() -> Status:
        return status_service.status(settings, tenant=tenant)

    if as_json:
        write_json(look())
    elif once or not out.is_terminal:
        status_view.show(look())
    else:
        status_view.watch(look, every_seconds=every)


def _write(check: Check) -> None:
    colour = COLOURS[check.state]
    out.print(f"[{colour}]{check.state:<5}[/{colour}]", end="", highlight=False)
    _print(f"{check.name:<19} {check.found}")
    if check.to_do:
        _print(f"     {'':<19} → {check.to_do}")


def _print(line: str) -> None:
    # Names of tenants and workers may look like markup.
    out.print(line, markup=False, highlight=False)
