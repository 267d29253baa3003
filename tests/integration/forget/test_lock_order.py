"""Erasing a person beside those who write: everybody takes locks in one order, so nobody waits in a circle."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import Connection, Engine, text

from memory_app.db import app_role
from memory_app.db.db import transaction, wait_in_line
from memory_app.forget import forget
from memory_app.forget.erasure import erase_user
from memory_app.memories.rows import scope_models
from memory_app.records.records import NewTurn, Role
from memory_app.records.run import RunState
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime, build
from memory_app.settings import Settings
from memory_app.tenancy.rows import names
from memory_app.turns.record import record
from memory_app.turns.rows import index_work, sessions
from memory_app.turns.rows.index_work import IndexedTurn

pytestmark = pytest.mark.one_shard

CHAT = Scope("ada", "mira", "chat")
BLOCKED = """SELECT count(*) FROM pg_stat_activity
    WHERE wait_event_type = 'Lock' AND datname = current_database()"""
DEADLOCKS = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"


def value(owner: Engine, statement: str) -> int:
    with owner.connect() as connection:
        connection.execute(text("SELECT pg_stat_force_next_flush()"))
        return int(connection.execute(text(statement)).scalar_one())


def erase(runtime: Runtime, tenant: int) -> int:
    """As a worker does, who waits in line; rows that went."""
    with transaction(runtime.engine, tenant) as connection:
        wait_in_line(connection)
        return sum(erase_user(connection, tenant, "mira").counts.values())


def beside_an_erasure(
    runtime: Runtime,
    tenant: int,
    owner: Engine,
    first: Callable[[Connection], object],
    then: Callable[[Connection], object],
) -> None:
    """``first``, and once an erasure waits for it ``then``, in one transaction: both come to their end."""
    before = value(owner, DEADLOCKS)
    with ThreadPoolExecutor(1) as pool:
        with transaction(runtime.engine, tenant) as connection:
            wait_in_line(connection)
            first(connection)
            erasing = pool.submit(erase, runtime, tenant)
            deadline = time.monotonic() + 60
            while value(owner, BLOCKED) == 0:
                assert time.monotonic() < deadline, "the erasure waits for nobody"
            then(connection)
        assert erasing.result(60) > 0
    assert value(owner, DEADLOCKS) == before
    assert value(owner, "SELECT count(*) FROM turns") == 0


def test_who_indexes_turns_and_an_erasure_do_not_wait_in_a_circle(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    (ticket,) = record(runtime, tenant, CHAT, [NewTurn(Role.USER, "I live in Lisbon.")])
    with transaction(runtime.engine, tenant) as connection:
        scope = names.need_scope(connection, tenant, CHAT).id
    vector = [0.0] * runtime.embedder.dimensions
    beside_an_erasure(
        runtime,
        tenant,
        owner,
        lambda connection: scope_models.add(connection, [scope], runtime.embedder.model),
        lambda connection: index_work.index(
            connection,
            [IndexedTurn(scope, ticket.id, vector, {1: 1.0}, 0)],
            model=runtime.embedder.model,
            task_id=None,
        ),
    )


def test_who_notes_the_offset_of_a_person_does_not_wait_for_an_erasure(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    record(runtime, tenant, CHAT, [NewTurn(Role.USER, "I live in Lisbon.")])
    with transaction(runtime.engine, tenant) as connection:
        scope = names.need_scope(connection, tenant, CHAT).id
    beside_an_erasure(
        runtime,
        tenant,
        owner,
        lambda connection: sessions.lock_session(connection, tenant, CHAT),
        lambda connection: names.note_offset(connection, tenant, scope, utc_offset="+02:00"),
    )


@pytest.mark.parametrize(
    "lock",
    [
        "SELECT pg_advisory_xact_lock(hashtextextended('mira', (SELECT id FROM tenants WHERE name = 'acme')))",
        "SELECT id FROM users FOR UPDATE",
        "SELECT id FROM scopes FOR UPDATE",
        "SELECT id FROM sessions FOR UPDATE",
        "SELECT id FROM turns FOR UPDATE",
    ],
)
def test_a_call_leaves_the_erasure_to_a_worker_and_does_not_wait_long(
    settings: Settings, tenant: int, owner: Engine, lock: str
) -> None:
    """Whichever of its locks somebody holds, and however patient the role is: here without an end."""
    with owner.begin() as connection:
        app_role.write_defaults(connection, {"lock_timeout": "0", "statement_timeout": "0"})
    runtime = build(settings)
    try:
        record(runtime, tenant, CHAT, [NewTurn(Role.USER, "I live in Lisbon.")])
        with owner.begin() as connection:
            connection.execute(text(lock))
            assert forget.forget_user(runtime, tenant, "mira").state is RunState.QUEUED
    finally:
        runtime.close()
