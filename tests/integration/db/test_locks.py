"""Waits for locks: timed, counted where they fail, and told with who is waited for."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Thread

import pytest
from counts import count
from sqlalchemy import Connection, Engine, text

from memory_app import Scope
from memory_app.db import lock_waits
from memory_app.db.db import limit_waits, transaction, wait_briefly
from memory_app.errors import StoreUnavailable
from memory_app.ops import lock_check
from memory_app.ops.check import State
from memory_app.ops.metrics import PipelineCollector
from memory_app.ops.status import status
from memory_app.runtime import Runtime
from memory_app.tenancy.rows import names

SCOPE = Scope("ada", "mira")
PATIENCE_SECONDS = 60.0


@pytest.fixture
def scope_id(runtime: Runtime, tenant: int) -> int:
    with transaction(runtime.engine, tenant) as connection:
        return names.ensure_scope(connection, tenant, SCOPE).id


@pytest.fixture
def blocker(owner: Engine, scope_id: int) -> Iterator[Connection]:
    """Somebody who holds the scope and goes for lunch."""
    with owner.connect() as connection, connection.begin():
        connection.execute(text("SET LOCAL application_name = 'lunch'"))
        connection.execute(text("SELECT id FROM scopes WHERE id = :id FOR UPDATE"), {"id": scope_id})
        yield connection


def lock(runtime: Runtime, tenant: int, scope_id: int, *, limit: Callable[[Connection], None]) -> None:
    with transaction(runtime.engine, tenant) as connection:
        limit(connection)
        names.lock_scope(connection, tenant, scope_id)


@contextmanager
def waiting(runtime: Runtime, tenant: int, scope_id: int, *, holder: Connection) -> Iterator[None]:
    """Somebody waits for the scope meanwhile, for at least as long as `lock_check` takes for long; at the end the
    ``holder`` lets go."""

    def wait() -> None:
        lock(runtime, tenant, scope_id, limit=lambda connection: limit_waits(connection, milliseconds=0))

    thread = Thread(target=wait)
    thread.start()
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        with transaction(runtime.engine, None) as connection:
            if lock_waits.waits(connection).longest_seconds >= lock_check.LONG_SECONDS:
                break
        assert time.monotonic() < deadline, "nobody waits"
        time.sleep(0.05)
    yield
    holder.rollback()
    thread.join(PATIENCE_SECONDS)
    assert not thread.is_alive()


def test_a_lock_that_is_free_is_timed(runtime: Runtime, tenant: int, scope_id: int) -> None:
    before = count("memory_lock_seconds_count", lock="scope")

    lock(runtime, tenant, scope_id, limit=wait_briefly)

    assert count("memory_lock_seconds_count", lock="scope") == before + 1


@pytest.mark.one_shard
def test_a_wait_that_is_given_up_is_counted_with_its_lock(
    runtime: Runtime, tenant: int, scope_id: int, blocker: Connection
) -> None:
    labels = {"lock": "scope", "reason": "timeout"}
    before = count("memory_lock_failures_total", **labels)

    with pytest.raises(StoreUnavailable):
        lock(runtime, tenant, scope_id, limit=lambda connection: limit_waits(connection, milliseconds=400))

    assert count("memory_lock_failures_total", **labels) == before + 1


@pytest.mark.one_shard
def test_work_that_gives_way_is_no_time_out(
    runtime: Runtime, tenant: int, scope_id: int, blocker: Connection
) -> None:
    before = {
        reason: count("memory_lock_failures_total", reason=reason) for reason in ("timeout", "gave_way")
    }

    with pytest.raises(StoreUnavailable):
        lock(runtime, tenant, scope_id, limit=wait_briefly)

    # A machine that hangs for another tenth of a second makes it a time-out; one of them it is.
    rise = {reason: count("memory_lock_failures_total", reason=reason) - n for reason, n in before.items()}
    assert sum(rise.values()) == 1


@pytest.mark.one_shard
def test_a_write_that_waits_for_a_row_is_counted_under_rows(
    runtime: Runtime, tenant: int, scope_id: int, blocker: Connection
) -> None:
    labels = {"lock": "rows", "reason": "timeout"}
    before = count("memory_lock_failures_total", **labels)

    with pytest.raises(StoreUnavailable), transaction(runtime.engine, tenant) as connection:
        limit_waits(connection, milliseconds=400)
        connection.execute(text("UPDATE scopes SET seeded_at = now() WHERE id = :id"), {"id": scope_id})

    assert count("memory_lock_failures_total", **labels) == before + 1


def test_two_that_wait_for_each_other_are_counted_once(runtime: Runtime, tenant: int, scope_id: int) -> None:
    with transaction(runtime.engine, tenant) as connection:
        other_id = names.ensure_scope(connection, tenant, Scope("ada", "noor")).id
    before = count("memory_lock_failures_total", reason="deadlock")
    errors: list[StoreUnavailable] = []
    both_hold = [False, False]

    def cross(place: int, first: int, second: int) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        try:
            with transaction(runtime.engine, tenant) as connection:
                limit_waits(connection, milliseconds=0)
                names.lock_scope(connection, tenant, first)
                both_hold[place] = True
                while not all(both_hold) and time.monotonic() < deadline:
                    time.sleep(0.01)
                names.lock_scope(connection, tenant, second)
        except StoreUnavailable as error:
            errors.append(error)

    threads = [
        Thread(target=cross, args=(place, *ids))
        for place, ids in enumerate(((scope_id, other_id), (other_id, scope_id)))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_SECONDS)

    assert len(errors) == 1
    assert count("memory_lock_failures_total", reason="deadlock") == before + 1


# --- what an operator is told -------------------------------------------------------------------------------------


def test_where_nobody_waits_nothing_is_said(runtime: Runtime, tenant: int, owner: Engine) -> None:
    checks = list(lock_check.look(runtime.engine, owner))

    assert [(check.name, check.state) for check in checks] == [
        ("locks", State.OK),
        ("open transactions", State.OK),
    ]
    assert status(runtime.settings, tenant="acme").locks.count == 0


@pytest.mark.one_shard
def test_doctor_names_the_session_that_is_waited_for(
    runtime: Runtime, tenant: int, scope_id: int, blocker: Connection
) -> None:
    pid = blocker.execute(text("SELECT pg_backend_pid()")).scalar_one()
    with waiting(runtime, tenant, scope_id, holder=blocker):
        check, _ = lock_check.look(runtime.engine, None)
        report = status(runtime.settings, tenant="acme")
        shown = {
            sample.name: sample.value
            for family in PipelineCollector(runtime).collect()
            for sample in family.samples
            if sample.name.startswith("memory_lock_waiting")
        }

    assert check.state is State.WARN
    assert f"pid {pid} (role " in check.found and "lunch" in check.found
    assert f"pg_terminate_backend({pid})" in check.to_do
    assert report.locks.count == 1
    assert shown["memory_lock_waiting"] == 1
    assert shown["memory_lock_waiting_seconds"] >= lock_check.LONG_SECONDS


def test_a_transaction_that_was_left_open_is_told_where_nobody_waits(
    runtime: Runtime, owner: Engine, blocker: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock_check, "IDLE_SECONDS", 0.0)
    pid = blocker.execute(text("SELECT pg_backend_pid()")).scalar_one()

    waits, idle = lock_check.look(runtime.engine, owner)

    assert (waits.state, idle.state) == (State.OK, State.WARN)
    assert f"pid {pid} (role " in idle.found and "lunch, idle for" in idle.found
    assert f"pg_terminate_backend({pid})" in idle.to_do


def test_of_a_session_of_its_own_role_its_state_is_told(runtime: Runtime, tenant: int, scope_id: int) -> None:
    with transaction(runtime.engine, tenant) as holder:
        names.lock_scope(holder, tenant, scope_id)
        with (
            waiting(runtime, tenant, scope_id, holder=holder),
            transaction(runtime.engine, None) as connection,
        ):
            (blocker,) = lock_waits.blockers(connection, limit=3)

    assert blocker.state == "idle in transaction"
    assert blocker.open_seconds is not None and blocker.open_seconds >= blocker.longest_seconds > 0
    assert "idle in transaction for" in lock_check.describe(blocker)
