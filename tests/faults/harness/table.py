"""The table that a run prints: one row for each fault."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from rich.markup import escape
from rich.table import Table

from harness.oracle import Verdict

COLUMNS = (
    "fault",
    "accepted",
    "lost",
    "doubled",
    "out of order",
    "dead-lettered",
    "recovery s",
    "model calls",
)


@dataclass(frozen=True, slots=True)
class FaultRow:
    """What one fault did. ``recovery_seconds`` is from the end of the fault to the last effect.

    ``model_calls`` are those a language model got, where one was asked.
    """

    fault: str
    accepted: int
    lost: int
    doubled: int
    disordered: int
    dead: int
    recovery_seconds: float
    model_calls: int | None = None

    @classmethod
    def of(
        cls, fault: str, verdict: Verdict, recovery_seconds: float, *, model_calls: int | None = None
    ) -> FaultRow:
        return cls(
            fault,
            verdict.accepted,
            verdict.lost,
            verdict.doubled,
            verdict.disordered,
            verdict.dead,
            round(recovery_seconds, 1),
            model_calls,
        )

    def as_json(self) -> str:
        return json.dumps(asdict(self))


def render(rows: Sequence[FaultRow]) -> Table:
    """The rows in the order of their names, and their sums; of the recovery times the longest."""
    table = Table(*COLUMNS[:1])
    for column in COLUMNS[1:]:
        table.add_column(column, justify="right")
    for row in sorted(rows, key=lambda row: row.fault):
        figures = list(asdict(row).values())[1:]
        table.add_row(escape(row.fault), *("" if figure is None else str(figure) for figure in figures))
    table.add_section()
    sums = [
        sum(getattr(row, name) for row in rows)
        for name in ("accepted", "lost", "doubled", "disordered", "dead")
    ]
    table.add_row("all", *map(str, sums), str(max((row.recovery_seconds for row in rows), default=0)))
    return table


@dataclass(frozen=True, slots=True)
class Held:
    """What the system held when it was quiet, at the beginning and at the end of ``run``: figures by name."""

    run: str
    first: dict[str, float]
    last: dict[str, float]

    def as_json(self) -> str:
        return json.dumps(asdict(self))


def render_held(held: Held) -> Table:
    table = Table("held when quiet", title=held.run)
    for column in ("first", "last"):
        table.add_column(column, justify="right")
    for name in held.first | held.last:
        table.add_row(name, f"{held.first.get(name, 0):g}", f"{held.last.get(name, 0):g}")
    return table
