"""Long at moderate load with mild faults: in the end the processes hold what they held at the beginning (I9)."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from dataclasses import dataclass
from itertools import cycle
from threading import Event

import psutil
import pytest
from free_ports import free_port
from harness import oracle
from harness.api import is_live, over_http
from harness.fleet import BESIDE_MODEL, Member
from harness.stage import Stage
from harness.table import Held
from harness.waiting import wait_until
from sqlalchemy import text

from memory_app.dispatch import finder

pytestmark = [pytest.mark.faults, pytest.mark.slow]

MINUTES = float(os.environ.get("SOAK_MINUTES", "1.5"))
TURNS_PER_SECOND = 20
FAULT_SECONDS = 5.0

MORE_MEMORY = 1.2
"""Growth of a part that is put down to caches and fragmentation."""

POOLS = 12
"""Connections that pools may hold more at the second look than at the first: after a peak they hold more than without.
What leaks with each fault, one every five seconds, is soon above it."""


@dataclass(frozen=True, slots=True)
class Holdings:
    """What the system holds when it is quiet; memory of each part with its children."""

    megabytes: dict[str, float]
    descriptors: int
    database_connections: int
    redis_clients: int
    redis_keys: int
    redis_megabytes: float

    def by_name(self) -> dict[str, float]:
        """All figures, with the words for the table."""
        memory = {f"memory of {name}, MB": value for name, value in self.megabytes.items()}
        return {
            **memory,
            "memory of all, MB": round(sum(self.megabytes.values()), 1),
            "descriptors": self.descriptors,
            "database connections": self.database_connections,
            "Redis clients": self.redis_clients,
            "Redis keys": self.redis_keys,
            "Redis memory, MB": self.redis_megabytes,
        }


@pytest.mark.timeout(int(MINUTES * 60 * 2 + 400))
def test_F34_soak(stage: Stage, api_key: str, show_held: Callable[[Held], None]) -> None:
    port, fleet = free_port(), stage.fleet
    worker = stage.worker(queues=BESIDE_MODEL)
    members = [worker, fleet.model_worker(), fleet.finder(), fleet.beat(), fleet.api(port)]
    stage.wait_for(members[1])
    wait_until(lambda: is_live(port), "the API answers", seconds=30)
    send = over_http(lambda: port, api_key)

    # given the state after a first load. A child that Celery starts anew has all descriptors of its parent, some ten
    # connections to Redis among them, which the first ones do not have: those go before anything is counted.
    for child in worker.children():
        child.send_signal(signal.SIGKILL)
    first_load = stage.clients(turns=600, sessions=40, seconds=20, run="first", send=send)
    disturb(stage, worker, first_load.is_done)
    first_load.retries()
    first = when_quiet(stage, members)

    # when the load goes on for long, with a mild fault every few seconds
    turns = int(MINUTES * 60 * TURNS_PER_SECOND)
    under_way = stage.clients(turns=turns, sessions=40, seconds=MINUTES * 60, seed=2, run="second", send=send)
    disturb(stage, worker, under_way.is_done)
    stage.settle(under_way, fault=f"F34 soak of {MINUTES:g} minutes")

    # then nothing has piled up
    last = when_quiet(stage, members)
    show_held(Held(f"soak of {MINUTES:g} minutes", first.by_name(), last.by_name()))
    for name, megabytes in last.megabytes.items():
        assert megabytes < first.megabytes[name] * MORE_MEMORY, f"memory of {name}"
    assert last.descriptors <= first.descriptors + POOLS
    assert last.database_connections <= first.database_connections + POOLS
    assert last.redis_clients <= first.redis_clients + POOLS
    assert last.redis_keys <= first.redis_keys * 2 + 20, "one stream for each of the new users, and no more"


def disturb(stage: Stage, worker: Member, is_over: Callable[[], bool]) -> None:
    """A child killed, connections ended, Redis emptied, in turn."""
    over = Event()
    with stage.redis() as redis:
        for fault in cycle((kill_a_child, end_connections, lambda _stage, _worker: redis.flushall())):
            over.wait(FAULT_SECONDS)
            if is_over():
                return
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
        names = f"{stage.runtime.settings.redis.prefix}hint:"
        # The finder claims these two over and over, and sends nothing.
        own = {f"{names}{name}".encode() for name in (finder.PROBE, finder.CAPS)}
        wait_until(lambda: set(redis.scan_iter(f"{names}*")) <= own, "hints have run out", seconds=30)
        memory, clients = redis.info("memory"), redis.info("clients")
        keys = redis.dbsize()
    with stage.owner.connect() as connection:
        statement = text("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()")
        connections = connection.execute(statement).scalar_one()
    running = {member.name: [psutil.Process(member.pid), *member.children()] for member in members}
    return Holdings(
        megabytes={
            name: round(sum(each.memory_info().rss for each in group) / 1e6, 1)
            for name, group in running.items()
        },
        descriptors=sum(each.num_fds() for group in running.values() for each in group),
        database_connections=connections,
        redis_clients=clients["connected_clients"],
        redis_keys=keys,
        redis_megabytes=round(memory["used_memory"] / 1e6, 2),
    )
