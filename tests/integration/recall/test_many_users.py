"""What one person's call reads does not grow with the number of other people the agent knows."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from sqlalchemy import Engine, text

from memory_app import MemoryApp, Scope
from memory_app.db.db import transaction
from memory_app.runtime import Runtime

USERS = 3_000
MOST_ROWS = 60
"""Of the tables that resolve a scope, read by one call: a few lookups, each of some rows."""

ME = Scope("assistant", "user 7", "chat")

_CROWD = text(
    """
    WITH agent AS (
        INSERT INTO agents (tenant_id, name) VALUES (:tenant, 'assistant') RETURNING id),
    crowd AS (
        INSERT INTO users (tenant_id, name)
        SELECT :tenant, 'user ' || n FROM generate_series(1, :users) AS n RETURNING id),
    met AS (
        INSERT INTO scopes (tenant_id, agent_id, user_id)
        SELECT :tenant, agent.id, crowd.id FROM agent, crowd RETURNING id)
    INSERT INTO sessions (tenant_id, scope_id, name) SELECT :tenant, id, 'chat' FROM met
    """
)
_READ = text(
    """
    SELECT sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0))::bigint FROM pg_stat_user_tables
    WHERE relname IN ('agents', 'users', 'scopes', 'sessions')
    """
)

CALLS: dict[str, Callable[[MemoryApp], object]] = {
    "record": lambda memory: memory.record(ME, "I like the sea."),
    "recall": lambda memory: memory.recall(Scope("assistant", "user 7"), "Do I like the sea?"),
    "context": lambda memory: memory.context(ME, "Do I like the sea?"),
    "remember": lambda memory: memory.remember(Scope("assistant", "user 7"), "They like the sea."),
}


@pytest.fixture(params=["statistics of an empty table", "fresh statistics"])
def crowded(request: pytest.FixtureRequest, runtime: Runtime, owner: Engine, tenant: int) -> MemoryApp:
    """An agent that knows thousands of people; the planner may not have heard of it yet."""
    with owner.begin() as connection:
        connection.execute(text("ANALYZE agents, users, scopes, sessions"))
        connection.execute(_CROWD, {"tenant": tenant, "users": USERS})
        if request.param == "fresh statistics":
            connection.execute(text("ANALYZE agents, users, scopes, sessions"))
    return MemoryApp(runtime, tenant_id=tenant)


@pytest.mark.parametrize("name", CALLS)
def test_a_call_reads_few_rows_to_find_its_scope(crowded: MemoryApp, name: str) -> None:
    CALLS[name](crowded)
    before = _rows_read(crowded)
    CALLS[name](crowded)
    assert _rows_read(crowded) - before <= MOST_ROWS


def _rows_read(memory: MemoryApp) -> int:
    """By whichever connection of the pool, so far."""
    engine = memory.runtime.engine
    with transaction(engine, memory.tenant_id) as connection:
        connection.execute(text("SELECT pg_stat_force_next_flush()"))
    with transaction(engine, memory.tenant_id) as connection:
        return int(connection.execute(_READ).scalar_one())
