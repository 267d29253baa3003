"""The first promise under the plainest faults: a worker is killed again and again, and Redis is emptied."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from harness import load, oracle
from harness.fleet import Fleet, is_ready
from harness.ledger import Ledger
from harness.waiting import wait_for_more, wait_until
from redis import Redis
from sqlalchemy import Engine

from memory_app.runtime import Runtime

pytestmark = pytest.mark.faults

TURNS, SESSIONS = 2_000, 40


def test_killed_workers_and_a_flushed_redis(
    fleet: Fleet,
    runtime: Runtime,
    tenant: int,
    owner: Engine,
    ledger: Ledger,
    report: Callable[..., None],
) -> None:
    # given a worker, a finder, Beat, and clients that record
    worker = fleet.worker()
    fleet.finder()
    fleet.beat()
    wait_until(lambda: is_ready(worker), "the worker is ready", seconds=30)
    calls = load.plan(seed=1, turns=TURNS, sessions=SESSIONS)
    under_way = load.play(calls, load.in_process(runtime, tenant), ledger, seconds=12, seed=1)

    # when the worker is killed three times and Redis is flushed twice, always in the middle of work
    url = runtime.settings.redis.url.get_secret_value()
    for round in range(3):
        wait_for_more(lambda: oracle.applied(owner), TURNS // 8, "work goes on", seconds=40)
        worker.kill()
        if round < 2:
            with Redis.from_url(url, protocol=2) as redis:
                redis.flushall()
        worker = fleet.worker()
    under_way.retries()

    # then everything accepted took effect once and in order, without anyone's help
    recovery = oracle.wait_for_quiet(owner, seconds=90)
    verdict = oracle.judge(owner, ledger)
    report(verdict, recovery)
    assert verdict.broken == ()
    assert (verdict.accepted, verdict.applied, verdict.dead) == (TURNS, TURNS, 0)
