"""PgBouncer in transaction mode between everything and Postgres: nobody notices, and nobody minds when it restarts."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock

import pytest
from free_ports import free_port
from harness.api import call, is_live, over_http
from harness.load import Receipt
from harness.stage import Stage, seen_through
from harness.waiting import wait_until
from pooler import PgBouncer, pgbouncer

from memory_app.errors import ProviderUnavailable
from memory_app.records.records import NewTurn
from memory_app.records.scope import Scope

pytestmark = [pytest.mark.faults, pytest.mark.slow, pytest.mark.system]

POOL = 3
THREADS = 8
CALLS = 1_000
"""A third of them are questions."""


@dataclass(slots=True)
class Clients:
    """Sends to two APIs in turn: turns, and after every second call a question. ``answers`` counts status codes."""

    ports: tuple[int, int]
    key: str
    answers: Counter[int] = field(default_factory=Counter)
    _numbers: Iterator[int] = field(default_factory=itertools.count)
    _lock: Lock = field(default_factory=Lock)

    def send(self, scope: Scope, turns: Sequence[NewTurn]) -> Sequence[Receipt]:
        with self._lock:
            number = next(self._numbers)
        port = self.ports[number % 2]
        try:
            receipts = over_http(lambda: port, self.key)(scope, turns)
        except ProviderUnavailable as error:
            self._count(int(str(error).split()[-1]))
            raise
        self._count(202)
        if number % 2:
            self._count(self._ask(port, scope))
        return receipts

    def _ask(self, port: int, scope: Scope) -> int:
        path = f"/v1/agents/{scope.agent}/users/{scope.user}/context"
        body = {"query": "What did I buy in Lima?", "session": scope.session}
        return call(port, "POST", path, key=self.key, body=body)[0]

    def _count(self, status: int) -> None:
        with self._lock:
            self.answers[status] += 1


@contextmanager
def everything_through(stage: Stage, pooler: PgBouncer, key: str) -> Iterator[tuple[Stage, Clients]]:
    """Two APIs, two workers and a finder, all through the pooler."""
    url = stage.runtime.settings.database.url.get_secret_value()
    with seen_through(stage, database_url=pooler.url(url)) as through:
        ports = (free_port(), free_port())
        for port in ports:
            through.fleet.api(port)
        through.fleet.finder()
        workers = [through.fleet.worker(), through.fleet.worker()]
        through.wait_for(*workers)
        for port in ports:
            wait_until(lambda port=port: is_live(port), "the API answers", seconds=60)
        yield through, Clients(ports, key)


def errors_logged(stage: Stage) -> list[str]:
    """Lines that say "error" or worse, of all processes."""
    lines = [line for _, log in stage.fleet.logs() for line in log.splitlines() if line.startswith("{")]
    return [line for line in lines if json.loads(line).get("level") in ("error", "critical")]


@pytest.mark.timeout(600)
def test_F37_a_thousand_calls_through_a_pool_of_three(stage: Stage, api_key: str) -> None:
    url = stage.runtime.settings.database.url.get_secret_value()
    with (
        pgbouncer(url, pool_size=POOL) as pooler,
        everything_through(stage, pooler, api_key) as (through, clients),
    ):
        under_way = through.clients(
            turns=CALLS * 2 // 3, most_per_call=1, seconds=0, clients=THREADS, send=clients.send
        )

        assert under_way.retries() == 0
        through.settle(under_way)

        assert set(clients.answers) == {200, 202}
        assert clients.answers.total() >= CALLS - 1
        assert errors_logged(through) == []


@pytest.mark.timeout(600)
def test_F37_pooler_restarted_under_load(stage: Stage, api_key: str) -> None:
    url = stage.runtime.settings.database.url.get_secret_value()
    with (
        pgbouncer(url, pool_size=POOL) as pooler,
        everything_through(stage, pooler, api_key) as (through, clients),
    ):
        for number in range(3):
            accepted, refused = clients.answers[202], clients.answers[503]
            under_way = through.clients(
                run=f"run{number}",
                turns=200,
                most_per_call=1,
                seconds=10,
                clients=THREADS,
                send=clients.send,
            )
            wait_until(lambda goal=accepted + 20: clients.answers[202] >= goal, "turns come in", seconds=60)
            pooler.stop()
            wait_until(lambda goal=refused + THREADS: clients.answers[503] >= goal, "503", seconds=60)
            pooler.start()
            under_way.retries()

        through.settle(under_way)
        assert set(clients.answers) == {200, 202, 503}
        assert all(member.is_alive() for member in through.fleet.members)
