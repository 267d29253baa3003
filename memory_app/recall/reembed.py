"""Re-embed: move every vector of another model to the current one, in the background, while search goes on.

A row says by its model's name whether it was moved, so a run may end at any moment and the next goes on where it was.
Rows of the scope are searched by both models' vectors meanwhile. No transaction is open while the embedder works.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

import structlog

from memory_app import queue
from memory_app.db.db import transaction
from memory_app.errors import MemoryAppError, Permanent
from memory_app.hot import hints
from memory_app.language.framing import unframed
from memory_app.language.redaction import NO_RULES, Rules
from memory_app.language.text import embedded_text
from memory_app.memories.rows import reembedding, scope_models
from memory_app.memories.rows.reembedding import FIRST, StaleRow, StaleScope
from memory_app.recall.rows import scope_index
from memory_app.recall.scope_index import index_scope
from memory_app.runtime import Runtime
from memory_app.tenancy import redaction
from memory_app.tenancy.rows import names
from memory_app.tenancy.shards import in_each

log = structlog.get_logger(__name__)

BATCH = 64
MOST_SCOPES = 50
"""Scopes and models looked up at once; the next look finds the rest."""


@dataclass(frozen=True, slots=True)
class Reembedded:
    """What one call did: rows moved, rows the embedder refused, scopes that are through. ``left`` counts the rows of
    the scopes at hand that still wait; ``is_done`` says that no scope waits any more."""

    moved: int = 0
    refused: int = 0
    scopes: int = 0
    left: int = 0
    is_done: bool = False


OnProgress = Callable[[Reembedded], None]


def reembed(
    runtime: Runtime, *, most_seconds: float | None = None, on_progress: OnProgress | None = None
) -> Reembedded:
    """Embed everything that has a vector of another model, over all tenants; stops after ``most_seconds``.

    Calls the embedder. Two calls at once do some rows twice and lose none. Raises the embedder's transient errors: what
    was moved stays moved.
    """
    until = None if most_seconds is None else time.monotonic() + most_seconds
    reports = in_each(runtime, lambda here: _reembed(here, until, on_progress))
    return Reembedded(
        moved=sum(report.moved for report in reports),
        refused=sum(report.refused for report in reports),
        scopes=sum(report.scopes for report in reports),
        left=sum(report.left for report in reports),
        is_done=all(report.is_done for report in reports),
    )


def _reembed(runtime: Runtime, until: float | None, on_progress: OnProgress | None) -> Reembedded:
    run = _Run(runtime, until, on_progress)
    visited: set[StaleScope] = set()
    while not run.is_over():
        # A scope with rows that the embedder refuses waits for ever: each is visited once.
        waiting = [stale for stale in _waiting(runtime) if stale not in visited]
        if not waiting:
            run.report = replace(run.report, is_done=not visited or run.report.refused == 0)
            break
        for stale in waiting:
            run.move_scope(stale)
            visited.add(stale)
            if run.is_over():
                break
    report = run.report
    if report.moved or report.refused:
        log.info("rows_reembedded", moved=report.moved, refused=report.refused, done=report.is_done)
    return report


def reembed_on_hint(runtime: Runtime, *, most_seconds: float) -> Reembedded:
    """Like `reembed`, for a task: sends a new hint for what remains when the time is over."""
    # Cleared before the work, so that a hint sent meanwhile is not taken for one under way.
    try:
        hints.clear(runtime.hot, runtime.hint_name(queue.REEMBED))
    except MemoryAppError as error:
        log.warning("hint_not_cleared", error=error.kind)
    report = reembed(runtime, most_seconds=most_seconds)
    # If nothing moved (the embedder refused the rows), another hint now would not help; Beat sends one later.
    if report.moved and not report.is_done:
        runtime.hint(queue.REEMBED)
    return report


def _waiting(runtime: Runtime) -> tuple[StaleScope, ...]:
    with transaction(runtime.engine, None) as connection:
        return reembedding.stale_scopes(connection, model=runtime.embedder.model, limit=MOST_SCOPES)


@dataclass(slots=True)
class _Run:
    """One call of `reembed` and how far it is."""

    runtime: Runtime
    until: float | None
    on_progress: OnProgress | None
    report: Reembedded = Reembedded()

    def is_over(self) -> bool:
        return self.until is not None and time.monotonic() >= self.until

    def move_scope(self, stale: StaleScope) -> None:
        with transaction(self.runtime.engine, stale.tenant_id) as connection:
            remaining = reembedding.count(connection, stale)
        self.tell(left=remaining)
        if self.runtime.owner is not None and self._is_indexed(stale):
            # The indexes for the new vectors come first, so that a moved row is found by the next question.
            index_scope(self.runtime, self.runtime.owner, tenant_id=stale.tenant_id, scope_id=stale.scope_id)
        for table in reembedding.TABLES:
            self._move_table(stale, table)
        if not self.is_over():
            self._finish(stale)

    def _is_indexed(self, stale: StaleScope) -> bool:
        """Return whether the scope has search indexes for any model; a big scope may have none because of the limit."""
        with transaction(self.runtime.engine, stale.tenant_id) as connection:
            return bool(scope_models.indexed(connection, stale.scope_id))

    def _move_table(self, stale: StaleScope, table: str) -> None:
        after = FIRST
        while not self.is_over():
            with transaction(self.runtime.engine, stale.tenant_id) as connection:
                rows = reembedding.read(connection, stale, table, after=after, limit=BATCH)
                rules = redaction.rules_by_scope(connection, self.runtime, [stale.scope_id])
            if not rows:
                return
            # Between transactions, since it may take seconds: what another worker moved meanwhile is not written again.
            vectors = self._embedded(rows, rules.get(stale.scope_id, NO_RULES))
            with transaction(self.runtime.engine, stale.tenant_id) as connection:
                # Several rows are written, in any order: alone, as everybody who writes to memories does.
                if not names.lock_scope(connection, stale.tenant_id, stale.scope_id):
                    return
                # Recall looks there for the models it needs vectors of.
                scope_models.add(connection, [stale.scope_id], self.runtime.embedder.model)
                moved = reembedding.write(
                    connection, stale, table, vectors=vectors, model=self.runtime.embedder.model
                )
            after = rows[-1].id
            refused = len(rows) - len(vectors)
            # Rows may have come in since they were counted, so the difference may fall below zero.
            remaining = max(self.report.left - len(rows), 0)
            self.tell(moved=moved, refused=refused, left=remaining)

    def _embedded(self, rows: Sequence[StaleRow], rules: Rules) -> list[tuple[UUID, Sequence[float]]]:
        """Embed the rows; one that the embedder refuses keeps its old vector and is found by words."""
        try:
            vectors = self.runtime.embedder.embed([_indexed_text(row, rules) for row in rows])
        except Permanent as error:
            if len(rows) == 1:
                log.error("row_not_reembedded", row=str(rows[0].id), error=error.kind)
                return []
            # One bad text fails the whole batch, so each text is tried alone.
            return [pair for row in rows for pair in self._embedded([row], rules)]
        return [(row.id, vector.tolist()) for row, vector in zip(rows, vectors, strict=True)]

    def _finish(self, stale: StaleScope) -> None:
        """Drop the old model of the scope, unless rows still have it: refused ones, or new ones of an older process."""
        with transaction(self.runtime.engine, stale.tenant_id) as connection:
            is_through = scope_models.remove(connection, stale.scope_id, stale.model)
        if not is_through:
            return
        if self.runtime.owner is not None:
            scope_index.drop_unused(self.runtime.owner, stale.scope_id, keep=_models_of(self.runtime, stale))
        self.tell(scopes=1)

    def tell(self, *, moved: int = 0, refused: int = 0, scopes: int = 0, left: int | None = None) -> None:
        report = self.report
        self.report = replace(
            report,
            moved=report.moved + moved,
            refused=report.refused + refused,
            scopes=report.scopes + scopes,
            left=report.left if left is None else left,
        )
        if self.on_progress is not None:
            self.on_progress(self.report)


def _indexed_text(row: StaleRow, rules: Rules) -> str:
    """Return the text by which a turn or a memory is embedded, as when it was written."""
    text = redaction.for_provider(row.text, rules)
    # Only a turn has a speaker. A memory is compared without the frame around it ("I think that …").
    if row.speaker is None or row.at is None:
        return unframed(text)
    return embedded_text(row.speaker, row.at, text)


def _models_of(runtime: Runtime, stale: StaleScope) -> tuple[str, ...]:
    with transaction(runtime.engine, stale.tenant_id) as connection:
        return scope_models.indexed(connection, stale.scope_id)
