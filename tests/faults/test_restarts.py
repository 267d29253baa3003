"""Asked to go, doubled, missing, short of descriptors: parts come and go while work goes on."""

from __future__ import annotations

import contextlib
import json
import resource
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest
from free_ports import free_port
from harness import load
from harness.api import is_live, over_http, takes_turns, turns_of
from harness.fleet import Member
from harness.raw import Raw, head
from harness.stage import Stage, seen_through
from harness.waiting import wait_until
from sqlalchemy import text
from tcp_proxy import Link, Proxy, postgres_address, postgres_through, proxied

pytestmark = pytest.mark.faults

GRACE_SECONDS = 40


def test_F09_rolling_restart_of_the_api_under_load(stage: Stage, api_key: str) -> None:
    """A new one is ready before the old one is asked to go: no client sees a failed request."""
    stage.fleet.finder()
    stage.fleet.worker()
    old = started_api(stage, api_key)
    with proxied(("127.0.0.1", old[0])) as balancer:
        under_way = stage.clients(turns=600, seconds=8, send=over_http(lambda: balancer.port, api_key))
        for _ in range(3):
            new = started_api(stage, api_key)
            balancer.upstream = ("127.0.0.1", new[0])
            # It takes one connection after the other: all before this one are links now.
            wait_until(lambda: is_live(balancer.port), "the new API answers behind the balancer", seconds=30)
            wait_until(
                lambda port=old[0]: not links_to(balancer, port),
                "no client waits for the old API",
                seconds=30,
            )
            assert seconds_to_stop(*old, api_key) < GRACE_SECONDS
            old = new
        assert under_way.retries() == 0, "no failed request"
        assert under_way.failures == []
        stage.settle(under_way)


def started_api(stage: Stage, key: str) -> tuple[int, Member]:
    port = free_port()
    api = stage.fleet.api(port)
    wait_until(lambda: is_live(port), "the API answers", seconds=30)
    wait_until(lambda: takes_turns(port, key), "a turn is accepted", seconds=30)
    return port, api


def seconds_to_stop(port: int, api: Member, key: str) -> float:
    """Ask it to go while a request is under way, which is answered nevertheless."""
    body = json.dumps({"role": "user", "content": "I bought kettle number 2 in Oslo."}).encode()
    with contextlib.closing(Raw(port)) as caller:
        headers = (f"Content-Length: {len(body)}", "Expect: 100-continue")
        caller.send(head("POST", turns_of(port), *headers, key=key))
        assert caller.answer().status == 100
        caller.send(body)
        api.signal_main(signal.SIGTERM)
        assert caller.answer().status == 202
    return wait_until(lambda: not api.is_alive(), "the API ends after SIGTERM", seconds=GRACE_SECONDS)


def links_to(balancer: Proxy, port: int) -> list[Link]:
    return [link for link in list(balancer.links) if upstream_port(link) == port]


def upstream_port(link: Link) -> int | None:
    """None once the link is cut."""
    try:
        return int(link.server.getpeername()[1])
    except OSError:
        return None


@pytest.mark.slow
def test_F09_workers_restarted_again_and_again(stage: Stage) -> None:
    """SIGTERM, twice SIGTERM, SIGQUIT: each ends within its grace, and the next one goes on."""
    stage.fleet.finder()
    old = stage.worker()
    under_way = stage.clients(turns=1_000, seconds=30)
    for signals in (
        (signal.SIGTERM,),
        (signal.SIGTERM, signal.SIGTERM),
        (signal.SIGQUIT,),
        (signal.SIGTERM,),
    ):
        new = stage.worker()
        for number in signals:
            old.signal_main(number)
        seconds = wait_until(lambda old=old: not old.is_alive(), "the old worker ends", seconds=GRACE_SECONDS)
        assert seconds < GRACE_SECONDS
        old = new
    stage.settle(under_way)


def test_F18_F20_only_beat_and_no_finder(stage: Stage, tmp_path: Path) -> None:
    """Three Beats instead of finders: all hints are lost, and Beat's question finds the rows."""
    schedule = tmp_path / "schedule.toml"
    schedule.write_text('[find-due]\ntask = "memory.find_due"\nevery_seconds = 1\n', encoding="utf-8")
    under_way = stage.clients(seconds=1)
    under_way.retries()
    with stage.redis() as redis:
        redis.flushall()
    for _ in range(3):
        stage.fleet.beat(MEMORY_SCHEDULE_FILE=str(schedule))
    stage.fleet.worker()
    stage.settle(under_way)


@pytest.mark.slow
def test_F18_beats_killed_and_back(stage: Stage, tmp_path: Path) -> None:
    schedule = tmp_path / "schedule.toml"
    schedule.write_text('[find-due]\ntask = "memory.find_due"\nevery_seconds = 1\n', encoding="utf-8")
    beats = [stage.fleet.beat(MEMORY_SCHEDULE_FILE=str(schedule)) for _ in range(2)]
    stage.worker()
    under_way = stage.clients(seconds=5)
    stage.wait_for_progress(50)
    for beat in beats:
        beat.kill()
    under_way.retries()
    with stage.redis() as redis:
        redis.flushall()
    stage.fleet.beat(MEMORY_SCHEDULE_FILE=str(schedule))
    stage.settle(under_way)


@pytest.mark.slow
def test_F20_two_finders_and_one_dies(stage: Stage) -> None:
    finders = [stage.fleet.finder() for _ in range(2)]
    stage.worker()
    under_way = stage.clients(seconds=5)
    stage.wait_for_progress(50)
    finders[0].kill()
    with stage.redis() as redis:
        redis.flushall()
    stage.settle(under_way)


@pytest.mark.slow
def test_F22_no_connection_is_shared_across_a_fork(stage: Stage) -> None:
    """A connection to the database that one process of the worker has open is open in no other one."""
    url = stage.runtime.settings.database.url.get_secret_value()
    with (
        proxied(postgres_address(url)) as proxy,
        seen_through(stage, database_url=postgres_through(url, proxy)) as through,
    ):
        stage.fleet.finder()
        worker = through.worker(concurrency=2)
        under_way = stage.clients()
        stage.wait_for_progress(100)
        children = [connections_to(proxy.port, child) for child in worker.children()]
        assert len(children) == 2
        assert all(children), "each child has its own connections"
        assert not set.intersection(*children)
        assert not connections_to(proxy.port, psutil.Process(worker.pid)), (
            "the parent has none to be inherited"
        )
        stage.settle(under_way)


def connections_to(port: int, running: psutil.Process) -> set[int]:
    """Ports at the process's own end."""
    connections = running.net_connections(kind="tcp")
    return {each.laddr.port for each in connections if each.raddr and each.raddr.port == port}


@pytest.mark.slow
def test_F32_few_descriptors(stage: Stage) -> None:
    """A worker that may open only a few files does what it can; when it may open more, all is done."""
    stage.fleet.finder()
    worker = stage.worker()
    under_way = stage.clients(seconds=5)
    stage.wait_for_progress(50)
    processes = [psutil.Process(worker.pid), *worker.children()]
    for running in processes:
        running.rlimit(psutil.RLIMIT_NOFILE, (12, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    with stage.owner.begin() as connection:
        connection.execute(
            text(
                """SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                WHERE usename = 'memory_app' AND datname = current_database()"""
            )
        )
    under_way.retries()
    for running in processes:
        if running.is_running():
            running.rlimit(psutil.RLIMIT_NOFILE, (1024, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    stage.settle(under_way)


def test_F33_many_clients_on_one_session(stage: Stage) -> None:
    """50 clients at once: numbers without a gap, one row per key, effects in the order of the numbers."""
    stage.fleet.finder()
    stage.fleet.worker()
    (session,) = load.plan(seed=33, turns=400, sessions=1, most_per_call=1)
    under_way = stage.clients(calls=[[call] for call in session], seconds=0, clients=50)
    under_way.retries()
    verdict = stage.settle(under_way, ordered=False)
    assert verdict.applied == 400


def test_F33_one_key_from_many_clients_at_once(stage: Stage) -> None:
    send = load.in_process(stage.runtime, stage.tenant)
    (session,) = load.plan(seed=34, turns=1, sessions=1)
    with ThreadPoolExecutor(20) as clients:
        receipts = list(clients.map(lambda call: tuple(send(call.scope, call.turns)), session * 20))
    assert len(receipts) == 20
    assert len(set(receipts)) == 1
    with stage.owner.connect() as connection:
        assert connection.execute(text("SELECT count(*) FROM turns")).scalar_one() == 1
