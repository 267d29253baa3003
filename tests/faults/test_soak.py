"""Long at moderate load with mild faults: in the end the processes hold what they held at the beginning (I9)."""

from __future__ import annotations

import os
import signal
from dataclasses import asdict, dataclass
from threading import Event

import psutil
import pytest
from harness import oracle
from harness.api import free_port, is_live, over_http
from harness.fleet import Member
from harness.stage import Stage
from harness.waiting import wait_until
from rich.console import Console
from rich.table import Table
from sqlalchemy import text

pytestmark = [pytest.mark.faults, pytest.mark.slow]

MINUTES = float(os.environ.get("SOAK_MINUTES", "1.5"))
TURNS_PER_SECOND = 20
INHERITED = 40
"""A child that Celery starts anew holds its parent's connections to Redis too, the first ones do not: some ten each."""

MORE_MEMORY = 1.2
"""Growth of the processes that is put down to caches and fragmentation."""


@dataclass(frozen=True, slots=True)
class Holdings:
    """What the system holds when it is quiet."""

    process_megabytes: float
    descriptors: int
    database_connections: int
    redis_clients: int
    redis_keys: int
    redis_megabytes: float


@pytest.mark.timeout(int(MINUTES * 60 * 2 + 400))
def test_F34_soak(stage: Stage, api_key: str) -> None:
    port = free_port()
    worker = stage.worker()
    members = [worker, stage.fleet.finder(), stage.fleet.beat(), stage.fleet.api(port)]
    wait_until(lambda: is_live(port), "the API answers", seconds=30)
    send = over_http(lambda: port, api_key)

    # given the state after a first load
    stage.clients(turns=600, sessions=40, seconds=20, run="first", send=send).retries()
    before = when_quiet(stage, members)

    # when the load goes on for long, with a mild fault every few seconds
    turns = int(MINUTES * 60 * TURNS_PER_SECOND)
    under_way = stage.clients(turns=turns, sessions=40, seconds=MINUTES * 60, seed=2, run="second", send=send)
    disturb(stage, worker, under_way.is_done)
    stage.settle(under_way, fault=f"F34 soak of {MINUTES:g} minutes")

    # then nothing has piled up
    after = when_quiet(stage, members)
    show(before, after)
    assert after.process_megabytes < before.process_megabytes * MORE_MEMORY
    assert after.descriptors <= before.descriptors + INHERITED
    assert after.database_connections <= before.database_connections + 4
    assert after.redis_clients <= before.redis_clients + 4
    assert after.redis_keys <= before.redis_keys * 2 + 20, "one stream for each of the new users, and no more"


def disturb(stage: Stage, worker: Member, is_over) -> None:  # type: ignore[no-untyped-def]
    """A child killed, connections ended, Redis emptied, in turn."""
    over = Event()
    with stage.redis() as redis:
        while not is_over():
            for fault in (kill_a_child, end_connections, lambda _stage, _worker: redis.flushall()):
                over.wait(5)
                fault(stage, worker)


def kill_a_child(_stage: Stage, worker: Member) -> None:
    for child in worker.children()[:1]:
        child.send_signal(signal.SIGKILL)


def end_connections(stage: Stage, _worker: Member) -> None:
    with stage.owner.begin() as connection:
        connection.execute(
            text(
                """SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                WHERE datname = current_database() AND pid <> pg_backend_pid() AND pid % 3 = 0"""
            )
        )


def when_quiet(stage: Stage, members: list[Member]) -> Holdings:
    oracle.wait_for_quiet(stage.owner, seconds=90)
    with stage.redis() as redis:
        hints = f"{stage.runtime.settings.redis.prefix}hint:*"
        wait_until(lambda: not list(redis.scan_iter(hints)), "hints have run out", seconds=30)
        memory, clients = redis.info("memory"), redis.info("clients")
        keys = redis.dbsize()
    with stage.owner.connect() as connection:
        statement = text("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()")
        connections = connection.execute(statement).scalar_one()
    running = [each for member in members for each in (psutil.Process(member.pid), *member.children())]
    return Holdings(
        process_megabytes=round(sum(each.memory_info().rss for each in running) / 1e6, 1),
        descriptors=sum(each.num_fds() for each in running),
        database_connections=connections,
        redis_clients=clients["connected_clients"],
        redis_keys=keys,
        redis_megabytes=round(memory["used_memory"] / 1e6, 2),
    )


def show(before: Holdings, after: Holdings) -> None:
    table = Table("held when quiet", title=f"soak of {MINUTES:g} minutes")
    for column in ("before", "after"):
        table.add_column(column, justify="right")
    for name, value in asdict(before).items():
        table.add_row(name.replace("_", " "), str(value), str(getattr(after, name)))
    Console(width=80).print(table)
