"""How long it takes to remember one statement in a scope that is full already, beside the barest SQL.

Run ``python -m benchmarks.remember --memories 20000 --other-users 10``. Servers of its own are started in a temporary
folder. The time of the embedder is measured apart: it is spent before the transaction and depends on the model alone.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import islice
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from memory_app import MemoryApp, Scope, Statement
from memory_app.bench import stage
from memory_app.bench.figures import Times, time_figures
from memory_app.bench.plain_rows import unjudged_row
from memory_app.bench.prose import statements
from memory_app.bench.rows import bulk
from memory_app.db import db
from memory_app.memories.remember import prepare, remember
from memory_app.memories.rows import memories, neighbours, scope_models
from memory_app.memories.rows import terms as term_store
from memory_app.providers.embedders import Embedder
from memory_app.providers.embedders.embedder import Vectors
from memory_app.recall import scope_index
from memory_app.tenancy.access import owner_url
from memory_app.tenancy.policy import Policy
from memory_app.tenancy.rows import names

SCOPE = Scope("assistant", "me")
BATCH = 500

WARM_UP_CALLS = 150
"""After the rows of others were written, the server tidies up for a while."""

console = Console()


class _RolledBack(Exception):
    """Ends a transaction whose effect is not wanted."""


@dataclass
class Timed:
    """An embedder that notes how long it was at work."""

    inner: Embedder
    seconds: float = field(default=0.0)

    @property
    def model(self) -> str:
        return self.inner.model

    @property
    def dimensions(self) -> int:
        return self.inner.dimensions

    @property
    def thresholds(self) -> Any:
        return self.inner.thresholds

    def embed(self, texts: Sequence[str]) -> Vectors:
        began = time.perf_counter()
        try:
            return self.inner.embed(texts)
        finally:
            self.seconds += time.perf_counter() - began


def main(
    count: Annotated[int, typer.Option("--memories", help="Memories in the scope.")] = 20_000,
    other_users: Annotated[int, typer.Option("--other-users", help="Others with as many each.")] = 10,
    calls: Annotated[int, typer.Option("--calls", help="Calls of each kind.")] = 300,
) -> None:
    """Fill a scope, add statements of every sort, add others' rows, and add again."""
    with stage.prepared(None, say=console.log) as app:
        console.log(f"writing {count} memories")
        scope_id = fill(app, count)
        with console.status("building the scope's own indexes"):
            scope_index.index_big_scopes(app.runtime)
        bulk.settle(owner_url(app.runtime.settings), tables=("memories", "terms"))
        alone = measure(app, scope_id, calls, seed=10)
        show(f"{count} memories in the scope", alone)
        if other_users:
            console.log(f"copying them to {other_users} other users")
            fill_others(app, scope_id, other_users)
            among = measure(app, scope_id, calls, seed=11)
            show(f"the same among {count * other_users} of others", among)
            growth = among["new"].p95_ms / alone["new"].p95_ms
            console.print(f"a new statement among others' rows: {growth:.2f} times the time alone (p95)")


def fill(app: MemoryApp, count: int) -> int:
    """The scope's id, with ``count`` memories in it, written past the ladder, which would need long."""
    with db.transaction(app.runtime.engine, app.tenant_id) as connection:
        scope_id = names.ensure_scope(connection, app.tenant_id, SCOPE).id
    said = statements(count, seed=1)
    while batch := list(islice(said, BATCH)):
        prepared = prepare(app.runtime, [Statement("fact", text) for text in batch], policy=Policy())
        with db.transaction(app.runtime.engine, app.tenant_id) as connection:
            scope_models.add(connection, [scope_id], app.runtime.embedder.model)
            for item in prepared:
                row = unjudged_row(item, model=app.runtime.embedder.model, now=datetime.now(UTC))
                memories.insert(connection, app.tenant_id, scope_id, new=row)
            term_store.add(connection, app.tenant_id, [(scope_id, item.keywords) for item in prepared])
    return scope_id


def fill_others(app: MemoryApp, scope_id: int, users: int) -> None:
    for place in range(users):
        with db.transaction(app.runtime.engine, app.tenant_id) as connection:
            other = names.ensure_scope(connection, app.tenant_id, Scope("assistant", f"other-{place}"))
            bulk.copy_memories(connection, scope_id, [other.id])
    bulk.settle(owner_url(app.runtime.settings), tables=("memories", "terms"))


def measure(app: MemoryApp, scope_id: int, calls: int, *, seed: int) -> dict[str, Times]:
    """Milliseconds without the embedder: of what is new, known, alike, a fact that ends another; and of bare SQL."""
    fresh = list(statements(2 * calls + WARM_UP_CALLS, seed=seed))
    known = list(statements(calls, seed=1))
    sorts: dict[str, Iterator[Statement]] = {
        "warm": (Statement("fact", f"{said} ({seed})") for said in fresh[:WARM_UP_CALLS]),
        "new": (Statement("fact", f"{said} ({seed})") for said in fresh[WARM_UP_CALLS:-calls]),
        "known": (Statement("fact", said) for said in known),
        "alike": (Statement("fact", said.replace(":", ", as they say:")) for said in known),
        "moved": (
            Statement(
                "fact",
                f"Person {n % 20} lives in place {n}.",
                subject=f"Person {n % 20}",
                relation="lives_in",
                object=f"place {n}",
            )
            for n in range(calls)
        ),
    }
    times = {sort: time_figures([*_adding(app, some)]) for sort, some in sorts.items()}
    del times["warm"]
    return times | {
        "no deduplication": time_figures(
            [*_adding(app, (Statement("fact", f"{s} [{seed}]") for s in fresh[-calls:]), deduplicate=False)]
        ),
        "SQL: insert the row": time_figures([*_inserting(app, scope_id, fresh[-calls:])]),
        "SQL: its neighbours, exact": time_figures([*_scanning(app, scope_id, fresh[-40:])]),
    }


def _adding(app: MemoryApp, some: Iterator[Statement], *, deduplicate: bool = True) -> Iterator[float]:
    timed = Timed(app.runtime.embedder)
    runtime = replace(app.runtime, embedder=timed)
    for statement in some:
        before, began = timed.seconds, time.perf_counter()
        remember(runtime, app.tenant_id, SCOPE, statement=statement, deduplicate=deduplicate)
        yield time.perf_counter() - began - (timed.seconds - before)


def _inserting(app: MemoryApp, scope_id: int, texts: Sequence[str]) -> Iterator[float]:
    """One row into the same table with the same indexes, and its term counts; rolled back."""
    for item in prepare(app.runtime, [Statement("fact", f"{said} (sql)") for said in texts], policy=Policy()):
        with suppress(_RolledBack), db.transaction(app.runtime.engine, app.tenant_id) as connection:
            began = time.perf_counter()
            row = unjudged_row(item, model=app.runtime.embedder.model, now=datetime.now(UTC))
            memories.insert(connection, app.tenant_id, scope_id, new=row)
            term_store.add(connection, app.tenant_id, [(scope_id, item.keywords)])
            yield time.perf_counter() - began
            raise _RolledBack


def _scanning(app: MemoryApp, scope_id: int, texts: Sequence[str]) -> Iterator[float]:
    """What is compared with a statement, without the scope's own index."""
    for item in prepare(app.runtime, [Statement("fact", said) for said in texts], policy=Policy()):
        model = app.runtime.embedder.model
        comparison = neighbours.Comparison(
            session_id=None,
            kind="fact",
            vector=item.vector,
            model=model,
            canonical_key=item.key,
            subject_keys=[],
            relations=[],
            object_keys=[],
            single_valued=False,
            merge=0.85,
            limit=20,
        )
        with db.transaction(app.runtime.engine, app.tenant_id) as connection:
            began = time.perf_counter()
            (near,) = neighbours.nearest(connection, scope_id, [comparison])
            neighbours.neighbours(connection, scope_id, comparison, near=near, heirs={})
            yield time.perf_counter() - began


def show(title: str, times: dict[str, Times]) -> None:
    table = Table(title=f"Remember one statement, {title} (milliseconds, without the embedder)")
    for column in ("what is added", "calls", "p50", "p95", "p99", "most"):
        table.add_column(column, justify="left" if column == "what is added" else "right")
    for name, found in times.items():
        figures = (found.p50_ms, found.p95_ms, found.p99_ms, found.most_ms)
        table.add_row(name, str(found.count), *(f"{figure:.2f}" for figure in figures))
    console.print(table)


if __name__ == "__main__":
    typer.run(main)
