"""Fixtures of the fault tests, and the table that is printed after them."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from harness.fleet import Fleet
from harness.ledger import Ledger
from harness.oracle import Verdict
from harness.stage import Stage
from harness.table import FaultRow, Held, render, render_held
from rich.console import Console
from sqlalchemy import Engine

from memory_app.runtime import Runtime, build
from memory_app.settings import Settings

ROWS = "MEMORY_FAULT_ROWS"
"""Names a file to which every row of the table is appended, for runs in several processes."""

SHORT_LEASES = {
    "MEMORY_INDEX__LEASE_SECONDS": "2",
    "MEMORY_EXTRACT__LEASE_SECONDS": "2",
    "MEMORY_EXTRACT__RETRY_BASE_SECONDS": "0.2",
    "MEMORY_FINDER__EVERY_SECONDS": "0.3",
    "MEMORY_LOG__FORM": "json",
}
"""So that what takes 45 s in service takes 2 s here."""


@pytest.fixture
def fleet(environment: dict[str, str], tmp_path: Path) -> Iterator[Fleet]:
    """No process yet. At the end everything is killed, and nothing of it may have said what a turn said."""
    fleet = Fleet({**environment, **SHORT_LEASES}, tmp_path)
    yield fleet
    fleet.kill_all()
    told = [name for name, said in fleet.logs() if " number 1" in said or "I bought" in said]
    assert told == [], "I7: what people said is in no log"


@pytest.fixture
def runtime(settings: Settings) -> Iterator[Runtime]:
    """The live parts of this process, whose Redis may be in any state at the end."""
    runtime = build(settings)
    yield runtime
    runtime.close()


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "ledger.jsonl")


@pytest.fixture
def report(request: pytest.FixtureRequest) -> Callable[..., None]:
    """Put a row into the table: what the oracle found, and the seconds from the fault's end to quiet."""

    def report(
        verdict: Verdict, recovery_seconds: float, *, fault: str | None = None, model_calls: int | None = None
    ) -> None:
        name = fault or request.node.name.removeprefix("test_").replace("_", " ")
        row = FaultRow.of(name, verdict, recovery_seconds, model_calls=model_calls)
        request.node.user_properties.append(("fault", row.as_json()))
        if os.environ.get(ROWS):
            with Path(os.environ[ROWS]).open("a", encoding="utf-8") as file:
                file.write(row.as_json() + "\n")

    return report


@pytest.fixture
def show_held(request: pytest.FixtureRequest) -> Callable[[Held], None]:
    """Put what was held in the beginning and in the end below the table."""
    return lambda held: request.node.user_properties.append(("held", held.as_json()))


@pytest.fixture
def stage(
    fleet: Fleet,
    runtime: Runtime,
    tenant: int,
    owner: Engine,
    ledger: Ledger,
    report: Callable[..., None],
) -> Iterator[Stage]:
    """Everything together. Clients that a failed test left behind are stopped."""
    stage = Stage(fleet, runtime, tenant, owner, ledger, report)
    yield stage
    for under_way in stage.loads:
        under_way.cancel()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The table: fault, accepted, lost, doubled, out of order, dead-lettered, recovery seconds; then what was held."""
    told = [
        (name, json.loads(value))
        for outcome in ("passed", "failed")
        for report in terminalreporter.stats.get(outcome, [])
        if report.when == "call"
        for name, value in report.user_properties
        if name in ("fault", "held")
    ]
    rows = [FaultRow(**value) for name, value in told if name == "fault"]
    if rows:
        terminalreporter.write_sep("=", "faults")
        Console(width=120).print(render(rows))
    for name, value in told:
        if name == "held":
            Console(width=120).print(render_held(Held(**value)))
