"""Runs of a scope by the names of their jobs, a page at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, bindparam, select

from memory_app.db.expressions import among, before_if_given, columns_of
from memory_app.db.tables.jobs import runs
from memory_app.records.run import RunState


@dataclass(frozen=True, slots=True)
class ListedRun:
    """A run as listed. ``report`` is that of its job, None before it is done."""

    id: UUID
    name: str
    state: RunState
    options: dict[str, Any]
    report: dict[str, Any] | None
    reason: str | None
    created_at: datetime
    finished_at: datetime | None


# Ids are in the order of time, and so is the index of a scope's runs.
_OF_SCOPE = (
    select(*columns_of(runs, ListedRun))
    .where(
        runs.c.scope_id == bindparam("scope"),
        among(runs.c.name, "names"),
        before_if_given(runs.c.id, "before"),
    )
    .order_by(runs.c.created_at.desc(), runs.c.id.desc())
    .limit(bindparam("limit"))
)


def of_scope(
    connection: Connection, scope_id: int, *, names: Sequence[str], limit: int, before: UUID | None = None
) -> tuple[ListedRun, ...]:
    """Runs of these names, newest first. ``before`` is the last of the page before."""
    values = {"scope": scope_id, "names": list(names), "limit": limit, "before": before}
    rows = connection.execute(_OF_SCOPE, values)
    return tuple(ListedRun(**{**row._mapping, "state": RunState(row.state)}) for row in rows)
