"""Undo a run from the images of the rows that it changed: all of them, or none and the reasons why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection

from memory_app.errors import Conflict
from memory_app.jobs.rows.runs import ScopeRun
from memory_app.memories.merging import listed
from memory_app.memories.rows import merges, sources
from memory_app.records.run import Change
from memory_app.sleep.rows import images
from memory_app.sleep.rows.images import RowImage

READ_COUNTS = frozenset({"recall_count", "last_recalled"})
"""Being recalled is no change of a row."""

CHANGES = {
    "successor": "was merged into another memory",
    "retired_at": "was brought back",
    "repeat_count": "was said again",
    "feedback_score": "was rated",
    "pinned": "was pinned or unpinned",
    "valid_until": "was ended",
}
"""What a difference of a column means. Only the first that differs is named: it explains the others."""


def undo(connection: Connection, tenant_id: int, run: ScopeRun) -> None:
    """Restore every row as before the run, under the lock on its scope. Raises `Conflict` naming what blocks it."""
    # Reports of consolidation had neither field before it kept images.
    if not run.report.get("applied", True):
        raise Conflict(f"run {run.id} changed nothing; there is nothing to undo", field="id")
    rows = images.rows_of_run(connection, run.scope_id, run.id)
    if not rows and _names_changes(run.report):
        raise Conflict(f"run {run.id} is too long ago; what it changed is not kept any more", field="id")
    # Rows that the run stored are deleted; only memories derived from them since can prevent that.
    inserted = [row.id for row in rows if row.change is Change.INSERT]
    obstacles = list(filter(None, map(_obstacle, rows)))
    # A row whose merge was undone by hand is as before already, so nothing of it can be in the way.
    pending = [row.id for row in rows if row.change is Change.UPDATE and not _is_restored(row)]
    for id, twin in merges.twins(connection, run.scope_id, pending, besides=inserted):
        obstacles.append(f"{id} was stored again as {twin}")
    for id, source in sources.derived(connection, run.scope_id, inserted):
        obstacles.append(f"{id} was derived from {source} since")
    if obstacles:
        raise Conflict(f"run {run.id} cannot be undone: {listed(obstacles)}", field="id")
    images.restore(connection, tenant_id, run.scope_id, run_id=run.id, inserted=inserted)


def _names_changes(report: Mapping[str, Any]) -> bool:
    """Whether a report tells of changes. Those of earlier releases count them by sort, and kept no images."""
    if "changes" in report:
        return bool(report["changes"])
    return any(report.get(name) for name in ("freed", "consolidated", "patterns", "links"))


def _obstacle(row: RowImage) -> str | None:
    """Return why a row cannot be restored, or None, also for one that is as before already (its merge was undone)."""
    if row.state is None:
        # Undo would delete an inserted row anyway.
        return None if row.change is Change.INSERT else f"{row.id} is gone"
    # Of a row that the run deleted there is no state after it to compare with.
    if _is_restored(row) or row.after is None:
        return None
    changed = _differences(row.after, row.state)
    if not changed:
        return None
    return f"{row.id} {_meaning(changed, row.state)} since"


def _differences(values: Mapping[str, Any], state: Mapping[str, Any]) -> list[str]:
    """Return the names of the columns in which the states differ."""
    names = [name for name in values if name not in READ_COUNTS]
    return [name for name in names if state.get(name) != values[name]]


def _meaning(changed: Sequence[str], state: Mapping[str, Any]) -> str:
    is_retired = "retired_at" in changed and state["retired_at"] is not None
    # With a successor it was merged or superseded, for which `CHANGES` has words.
    if is_retired and "successor" not in changed:
        return f"was {state['retired_reason']}"
    meanings = [meaning for name, meaning in CHANGES.items() if name in changed]
    return meanings[0] if meanings else f"changed ({', '.join(changed)})"


def _is_restored(row: RowImage) -> bool:
    if row.state is None or row.before is None:
        return False
    return not _differences(row.before, row.state)
