"""Which limits of retention hold for a tenant, and what is older than them. Counts and names of agents, no content."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import Connection, text

from memory_app.records.retention import TURNS
from memory_app.records.run import RunName

COUNTED = 1_000
"""Counting stops there."""

SHOWN = 50
"""Most agents of a tenant that are looked at, by name."""

_LIMITED = text(
    f"""
    SELECT a.name AS agent, a.policy -> 'retention' AS days FROM agents a
    WHERE a.tenant_id = :tenant AND jsonb_typeof(a.policy -> 'retention') = 'object'
      AND a.policy -> 'retention' <> CAST('{{}}' AS jsonb)
    ORDER BY a.name LIMIT {SHOWN}
    """
)
# Of each scope one row of an index. Memories have none by age: they are overdue where the job that deletes them is.
_OVERDUE = text(
    f"""
    SELECT (SELECT count(*) FROM (
                SELECT FROM scopes c JOIN agents a ON a.id = c.agent_id
                JOIN LATERAL (SELECT FROM turns t WHERE t.scope_id = c.id AND t.words_deleted_at IS NULL
                                AND t.accepted_at < now() - make_interval(days => l.days) - CAST(:grace AS interval)
                              LIMIT {COUNTED}) o ON true
                WHERE a.tenant_id = :tenant AND a.name = l.agent AND l.days IS NOT NULL LIMIT {COUNTED}) old) AS turns,
           (SELECT count(*) FROM (
                SELECT FROM schedules s JOIN scopes c ON c.id = s.scope_id JOIN agents a ON a.id = c.agent_id
                WHERE s.tenant_id = :tenant AND s.job = '{RunName.DECAY}' AND a.name = l.agent
                  AND s.due_at < now() - CAST(:grace AS interval) LIMIT {COUNTED}) late) AS people
    FROM unnest(CAST(:agents AS text[]), CAST(:days AS integer[])) WITH ORDINALITY AS l(agent, days, place)
    ORDER BY l.place
    """
)


@dataclass(frozen=True, slots=True)
class Limited:
    """An agent with limits, in days by class. ``overdue_turns`` have words that should be gone: they wait for their
    work, or decay is late, which it is for ``late_people``."""

    agent: str
    days: Mapping[str, int]
    overdue_turns: int = 0
    late_people: int = 0

    def __add__(self, other: Limited) -> Limited:
        """Of the same agent in two shards."""
        return Limited(
            self.agent,
            self.days,
            self.overdue_turns + other.overdue_turns,
            self.late_people + other.late_people,
        )


def limited(connection: Connection, tenant_id: int) -> tuple[Limited, ...]:
    """Agents of the tenant with limits, by name; nothing is counted yet."""
    rows = connection.execute(_LIMITED, {"tenant": tenant_id})
    return tuple(Limited(row.agent, dict(row.days)) for row in rows)


def overdue(
    connection: Connection, tenant_id: int, agents: Sequence[Limited], *, grace: timedelta
) -> tuple[Limited, ...]:
    """The same with what this shard has that should be gone for longer than ``grace``."""
    if not agents:
        return ()
    values = {
        "tenant": tenant_id,
        "agents": [agent.agent for agent in agents],
        "days": [agent.days.get(TURNS) for agent in agents],
        "grace": grace,
    }
    rows = connection.execute(_OVERDUE, values)
    return tuple(
        Limited(agent.agent, agent.days, row.turns, row.people)
        for agent, row in zip(agents, rows, strict=True)
    )
