"""Putting back what a run changed, row by row: all of it, or nothing and the reasons why not."""

from __future__ import annotations

from sqlalchemy import Connection

from memory_app.errors import Conflict
from memory_app.jobs.rows.runs import ScopeRun
from memory_app.memories.merging import BLOCKERS_SHOWN
from memory_app.memories.rows import merges, sources
from memory_app.records.run import Change
from memory_app.sleep.rows import images
from memory_app.sleep.rows.images import Touched

READING = frozenset({"recall_count", "last_recalled"})
"""Being read is no change of what a run left behind."""

CHANGES = {
    "successor": "was merged into another memory",
    "retired_at": "was retired or brought back",
    "repeat_count": "was said again",
    "feedback_score": "was rated",
    "pinned": "was pinned or unpinned",
    "valid_until": "was ended",
}
"""What a difference means, the telling ones first."""


def undo(connection: Connection, tenant_id: int, run: ScopeRun) -> None:
    """Every row as before the run, under the lock on its scope. Raises `Conflict` naming each row that blocks it."""
    if not run.report.get("applied"):
        raise Conflict(f"run {run.id} changed nothing; there is nothing to undo", field="id")
    touched = images.touched(connection, run.scope_id, run.id)
    if not touched and run.report.get("changes"):
        raise Conflict(f"run {run.id} is too long ago; what it changed is not kept any more", field="id")
    made = [one.id for one in touched if one.change is Change.INSERT]
    blocked = [told for one in touched if (told := _blocker(one)) is not None]
    back = [one.id for one in touched if one.change is Change.UPDATE and not _is_back(one)]
    for id, twin in merges.twins(connection, run.scope_id, back, besides=made):
        blocked.append(f"{id} was stored again as {twin}")
    for id, source in sources.derived(connection, run.scope_id, made):
        blocked.append(f"{id} was derived from {source} since")
    if blocked:
        shown = "; ".join(blocked[:BLOCKERS_SHOWN])
        more = f"; and {len(blocked) - BLOCKERS_SHOWN} more" if len(blocked) > BLOCKERS_SHOWN else ""
        raise Conflict(f"run {run.id} cannot be undone: {shown}{more}", field="id")
    images.put_back(connection, tenant_id, run.scope_id, run.id, made=made)


def _blocker(one: Touched) -> str | None:
    """Why a row cannot be put back, or None. One that is as it was before already (a merge taken apart) can."""
    if one.state is None:
        return None if one.change is Change.INSERT else f"{one.id} is gone"
    if _is_back(one) or one.after is None:
        return None
    changed = [
        name for name, value in one.after.items() if name not in READING and one.state.get(name) != value
    ]
    if not changed:
        return None
    told = next(
        (said for name, said in CHANGES.items() if name in changed), f"changed ({', '.join(changed)})"
    )
    return f"{one.id} {told} since"


def _is_back(one: Touched) -> bool:
    if one.state is None or one.before is None:
        return False
    return all(one.state.get(name) == value for name, value in one.before.items() if name not in READING)
