"""What a receipt counts: every table that a person has rows in, and what comes while the erasure runs."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import Engine, text

from memory_app.db.db import transaction
from memory_app.db.tables import metadata
from memory_app.dispatch.finder import drain
from memory_app.forget.forget import forget_user
from memory_app.forget.rows import persons
from memory_app.jobs import jobs
from memory_app.records.records import NewTurn, Role
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.tenancy.rows import names
from memory_app.turns.record import record

OF_A_SCOPE = {table.name for table in metadata.tables.values() if "scope_id" in table.c}


def test_every_table_with_rows_of_a_person_is_counted() -> None:
    assert {*persons.TABLES} == OF_A_SCOPE


@pytest.mark.one_shard
def test_what_comes_while_the_erasure_runs_is_counted(runtime: Runtime, tenant: int, owner: Engine) -> None:
    """Somebody has added rows, in a known scope and in one with a new agent, and commits only later."""
    record(runtime, tenant, Scope("ada", "mira", "chat"), [NewTurn(Role.USER, "Hello.")])
    with transaction(runtime.engine, tenant) as connection:
        known = names.need_scope(connection, tenant, Scope("ada", "mira")).id
    with owner.connect() as connection:
        # Of its defaults only: the scope of a new agent is seen by nobody until it is committed.
        connection.execute(
            text("SELECT set_config('memory.tenant', CAST(:id AS text), false)"), {"id": tenant}
        )
        connection.execute(
            text("INSERT INTO agents (tenant_id, name) SELECT id, 'new' FROM tenants WHERE id = :id"),
            {"id": tenant},
        )
        added = connection.execute(
            text(
                """INSERT INTO scopes (tenant_id, agent_id, user_id)
            SELECT a.tenant_id, a.id, u.id FROM agents a JOIN users u ON u.tenant_id = a.tenant_id
            WHERE a.name = 'new' RETURNING id"""
            )
        ).scalar_one()
        for scope in (known, added):
            connection.execute(
                text("INSERT INTO checkpoints (tenant_id, scope_id, content) VALUES (:tenant, :scope, '{}')"),
                {"tenant": tenant, "scope": scope},
            )
        with ThreadPoolExecutor(1) as pool:
            erasing = pool.submit(forget_user, runtime, tenant, "mira")
            wait_until_blocked(owner)
            connection.commit()
            run = erasing.result(60)
    # On a slow machine it waited for too long, and is a worker's now.
    drain(runtime)
    report = jobs.read(runtime, tenant, run.id).report

    assert report is not None
    assert report["counts"]["checkpoints"] == 2
    assert report["counts"]["scopes"] == 2
    with owner.connect() as connection:
        assert connection.execute(text("SELECT count(*) FROM scopes")).scalar_one() == 0


def wait_until_blocked(owner: Engine) -> None:
    waiting = text(
        "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
    )
    deadline = datetime.now(UTC) + timedelta(seconds=30)
    with owner.connect() as connection:
        while connection.execute(waiting).scalar_one() == 0:
            assert datetime.now(UTC) < deadline, "the erasure does not wait"
            connection.rollback()
