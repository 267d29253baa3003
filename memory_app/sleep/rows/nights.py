"""The newest nights of a tenant, whoever they are about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

from sqlalchemy import Connection, Row, text

from memory_app.jobs.rows.listed_runs import ListedRun
from memory_app.records.run import RunName, RunState


@dataclass(frozen=True, slots=True)
class NightOf:
    """A night that has ended, and whom it is about: one user, or for None all of the agent's."""

    run: ListedRun
    agent: str
    user: str | None


# By the index of changes: the newest ends first, until there are enough.
_LATEST = text(
    f"""
    SELECT r.id, r.name, r.state, r.options, r.report, r.reason, r.created_at, r.finished_at,
           a.name AS agent, u.name AS user
    FROM runs r JOIN scopes c ON c.id = r.scope_id JOIN agents a ON a.id = c.agent_id
    LEFT JOIN users u ON u.id = c.user_id
    WHERE r.tenant_id = :tenant AND r.finished_xact IS NOT NULL AND r.name <> '{RunName.EXTRACT}'
      AND r.name = ANY(:names)
    ORDER BY r.finished_xact DESC, r.id DESC LIMIT :limit
    """
)


def latest(
    connection: Connection, tenant_id: int, *, names: Sequence[str], limit: int
) -> tuple[NightOf, ...]:
    """Ended runs of these names, the one that ended or was undone last first."""
    values = {"tenant": tenant_id, "names": list(names), "limit": limit}
    rows = connection.execute(_LATEST, values)
    return tuple(NightOf(_run(row), row.agent, row.user) for row in rows)


def _run(row: Row[Any]) -> ListedRun:
    columns = {field.name: row._mapping[field.name] for field in fields(ListedRun)}
    return ListedRun(**{**columns, "state": RunState(row.state)})
