"""A day of near-identical statements: what is left of them in the evening, and what each rests on.

Run ``python -m benchmarks.busy_day --statements 300``. Prints every memory that is left with its repetitions, its
evidence and what was merged into it. Ends with status 1 if two different things were ever blended.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated
from uuid import UUID

import typer
from rich.console import Console
from rich.table import Table

from memory_app import MemoryApp, Role, Scope, Statement
from memory_app.bench import stage
from memory_app.bench.day import Remark, day
from memory_app.memories.lookup import MemoryFilter, list_memories, why
from memory_app.memories.remember import remember
from memory_app.records.records import Memory, Origin

SCOPE = Scope("assistant", "mira")
SESSION = Scope("assistant", "mira", "today")
console = Console()


@dataclass(frozen=True, slots=True)
class Left:
    """A memory in the evening; ``meanings`` is what the statements behind it said, which should be one thing."""

    memory: Memory
    turns: int
    parts: int
    meanings: frozenset[str]


def main(
    statements: Annotated[int, typer.Option("--statements", help="Statements of the day.")] = 300,
    seed: Annotated[int, typer.Option("--seed", help="Another day.")] = 1,
) -> None:
    """Tell the day, then show what is left."""
    with stage.prepared(None, say=console.log) as app:
        meant = tell(app, statements, seed=seed)
        left = evening(app, meant)
    show(statements, left)
    blended = [one for one in left if len(one.meanings) > 1]
    missing = set(meant.values()) - {meaning for one in left for meaning in one.meanings}
    console.print(
        f"{len(left)} memories for {len(set(meant.values()))} meanings; blended: {len(blended)}; "
        f"lost: {len(missing)}; without evidence: {sum(not one.turns for one in left)}"
    )
    if blended or missing or not all(one.turns for one in left):
        raise typer.Exit(1)


def tell(app: MemoryApp, count: int, *, seed: int) -> Mapping[UUID, str]:
    """Every statement as an extractor would hand it over, with the turn it was said in; what each turn meant."""
    meant = {}
    for said in day(count, seed=seed):
        turn = app.record(SESSION, said.text, role=Role.USER).id
        remember(app.runtime, app.tenant_id, SCOPE, statement=_statement(said, turn))
        meant[turn] = said.meaning
    return meant


def _statement(said: Remark, turn: UUID) -> Statement:
    return Statement(
        "fact",
        said.text,
        subject=said.subject,
        relation=said.relation,
        object=said.object,
        origin=Origin.EXTRACTED,
        evidence=(turn,),
        source="user:mira",
    )


def evening(app: MemoryApp, meant: Mapping[UUID, str]) -> list[Left]:
    """Current memories, most repeated first."""
    found = []
    for memory in list_memories(app.runtime, app.tenant_id, SCOPE, filters=MemoryFilter(limit=500)):
        told = why(app.runtime, app.tenant_id, memory.id)
        turns = [turn.id for turn in told.evidence]
        found.append(Left(memory, len(turns), len(told.parents), frozenset(meant[turn] for turn in turns)))
    return sorted(found, key=lambda one: -one.memory.repeat_count)


def show(count: int, left: list[Left]) -> None:
    table = Table(title=f"What is left of {count} statements")
    for column in ("memory", "said", "evidence", "merged"):
        table.add_column(column, justify="left" if column == "memory" else "right")
    for one in left:
        table.add_row(one.memory.text, str(one.memory.repeat_count), str(one.turns), str(one.parts))
    console.print(table)


if __name__ == "__main__":
    typer.run(main)
