"""A worker of only the queue maintenance pauses while it works; what holds locks is not prolonged for long."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Iterator

import pytest
from own_servers import wait_until
from sqlalchemy import Engine, create_engine, text
from sqlalchemy.pool import NullPool

from memory_app import MemoryApp, Scope, queue
from memory_app.local.embedded import Servers
from memory_app.local.stack import commands
from memory_app.runtime import Runtime
from workers.pacing import MOST_SECONDS, Rest

ME = Scope("assistant", "mira")
WORKED = text("SELECT pg_sleep(0.05)")
PATIENCE_SECONDS = 400.0


@pytest.fixture
def engine(database: Servers) -> Iterator[Engine]:
    """One that nobody else listens to."""
    engine = create_engine(database.app_url, poolclass=NullPool)
    yield engine
    engine.dispose()


def seconds_of(engine: Engine, statements: int) -> float:
    began = time.monotonic()
    with engine.begin() as connection:
        for _ in range(statements):
            connection.execute(WORKED)
    return time.monotonic() - began


def test_it_rests_between_statements_for_a_share_of_what_they_took(engine: Engine) -> None:
    rest = Rest(3)
    rest.watch(engine)
    rest.begin_task()
    assert seconds_of(engine, 2) >= 2 * 0.05 * (1 + 3)


def test_a_transaction_is_prolonged_by_a_second_at_most(engine: Engine) -> None:
    rest = Rest(1_000)
    rest.watch(engine)
    rest.begin_task()
    unbounded = 3 * 0.05 * 1_000
    assert MOST_SECONDS <= seconds_of(engine, 3) < unbounded / 10


def test_waiting_for_work_is_no_work(engine: Engine) -> None:
    rest = Rest(1)
    waited = seconds_of(engine, 20)
    rest.begin_task()
    assert rest.owed() < waited / 2


def test_the_worker_for_maintenance_rests(
    runtime: Runtime, tenant: int, owner: Engine, environment: dict[str, str]
) -> None:
    memory = MemoryApp(runtime, tenant_id=tenant)
    for number in range(3):
        memory.remember(ME, f"Mira keeps {number + 2} hens behind the mill.")
    run = memory.sleep(ME)
    worker = subprocess.Popen(
        commands.worker((queue.MAINTENANCE,), name="resting", concurrency=1),
        env={**environment, "MEMORY_WORKER__MAINTENANCE_REST": "1000"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )

    def is_done() -> bool:
        assert worker.poll() is None, "the worker ended"
        return memory.run(run.id).state == "done"

    try:
        # It gives way to all other processes, from its start on.
        wait_until(is_done, "the cycle is done", seconds=PATIENCE_SECONDS)
    finally:
        worker.send_signal(signal.SIGTERM)
        worker.wait()
    with owner.connect() as connection:
        statement = text("SELECT finished_at - started_at FROM runs WHERE id = :id")
        took = connection.execute(statement, {"id": run.id}).scalar_one()
    # Such a cycle works for a tenth of a second, in several transactions of which each is prolonged by a second.
    assert took.total_seconds() > 2 * MOST_SECONDS
