"""Redis away, emptied, full, slow, half-open, replaced, written to by strangers: the rows know what is to be done."""

from __future__ import annotations

import base64
import json
import pickle
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from free_ports import free_port
from harness import oracle
from harness.fleet import WORKER, kept_running
from harness.redis_server import RedisServer, redis_server, sentinel_of
from harness.stage import Stage, seen_through
from harness.waiting import wait_until
from tcp_proxy import proxied, redis_address, redis_through

from memory_app.dispatch.finder import find_due
from memory_app.queue import EXTRACT_SESSION, INDEX_TURNS, INGEST, QUEUES

pytestmark = pytest.mark.faults

RESUME_SECONDS = 60
"""Bound for half-open connections: work goes on within this time."""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RedisServer]:
    with redis_server(tmp_path / "redis", free_port()) as server:
        yield server


@pytest.mark.slow
def test_F08_a_stranger_with_the_same_redis(stage: Stage) -> None:
    """One with no prefix disturbs nothing; one who takes our queues steals hints, which finders send again."""
    prefix = stage.runtime.settings.redis.prefix
    stage.fleet.finder()
    stage.worker()
    command = [word.replace("workers.app", "harness.foreign") for word in WORKER]
    for name, taken in (("apart", ""), ("thief", prefix)):
        options = ("-Q", ",".join(QUEUES), "-n", f"{name}@stranger", "--pool", "solo", "-l", "INFO")
        stranger = stage.fleet.start("stranger", (*command, *options), FOREIGN_PREFIX=taken)
        stage.wait_for(stranger)
    stage.settle(stage.clients())
    wait_until(lambda: "unregistered task" in stranger.said(), "the thief took hints", seconds=5)


def test_F10_redis_away_from_the_start_and_for_long(stage: Stage, server: RedisServer) -> None:
    """Everything is accepted and worked off while there is no Redis at all; workers follow when it comes."""
    server.kill()
    with seen_through(stage, redis_url=server.url, MEMORY_FINDER__DRAIN_AFTER_SECONDS="1") as away:
        worker = away.fleet.worker()
        away.fleet.finder()
        under_way = away.clients(turns=200, seconds=1)
        under_way.retries()
        oracle.wait_for_quiet(stage.owner, seconds=60)
        assert under_way.p99() < 20, "accepting does not wait for Redis"
        server.start()
        away.wait_for(worker)
        away.settle(away.clients(turns=200, seconds=2, run="after", seed=2))


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [(), ("--appendonly", "yes"), ("--save", "1 1")],
    ids=["nothing kept", "append-only", "snapshots"],
)
def test_F11_redis_killed_and_restarted(stage: Stage, server: RedisServer, options: tuple[str, ...]) -> None:
    server.kill()
    server.start(*options)
    with seen_through(stage, redis_url=server.url) as stage:
        stage.fleet.finder()
        stage.worker()
        under_way = stage.clients(seconds=6)
        for _ in range(3):
            stage.wait_for_progress(80)
            server.kill()
            server.start()
        stage.settle(under_way)


@pytest.mark.slow
def test_F12_a_replica_takes_over(stage: Stage, server: RedisServer, tmp_path: Path) -> None:
    """The address leads to another server; the old one, now a replica, answers READONLY on what is still open."""
    with (
        redis_server(
            tmp_path / "replica",
            free_port(),
            *("--replicaof", f"127.0.0.1 {server.port}", "--enable-debug-command", "yes"),
        ) as replica,
        proxied(("127.0.0.1", server.port)) as proxy,
        seen_through(stage, redis_url=f"redis://127.0.0.1:{proxy.port}/0") as stage,
    ):
        stage.fleet.finder()
        with kept_running(stage.worker):
            under_way = stage.clients(seconds=8)
            stage.wait_for_progress(80)
            replica.command("REPLICAOF", "NO", "ONE")
            proxy.upstream = ("127.0.0.1", replica.port)
            server.command("REPLICAOF", "127.0.0.1", str(replica.port))
            stage.wait_for_progress(80)
            replica.command("DEBUG", "SLEEP", "2")
            replica.command("CLIENT", "KILL", "TYPE", "normal")
            stage.wait_for_progress(80)
            server.kill()
            stage.settle(under_way)


@pytest.mark.slow
def test_F12_sentinel_promotes_the_replica(stage: Stage, server: RedisServer, tmp_path: Path) -> None:
    """The primary dies, a sentinel makes the replica the new one, and everybody asks the sentinel where it is."""
    replica_of = ("--replicaof", f"127.0.0.1 {server.port}")
    with (
        redis_server(tmp_path / "replica", free_port(), *replica_of) as replica,
        sentinel_of(server, tmp_path / "sentinel", free_port()) as url,
        seen_through(stage, redis_url=url) as stage,
    ):
        stage.fleet.finder(MEMORY_FINDER__DRAIN_AFTER_SECONDS="60")
        with kept_running(stage.worker):
            under_way = stage.clients(turns=600, seconds=12)
            stage.wait_for_progress(80)
            server.kill()
            taken = replica.hints_taken()
            wait_until(replica.is_primary, "the replica is promoted", seconds=30)
            stage.settle(under_way)
            assert replica.hints_taken() > taken + 10, "clients and workers found the new primary"


@pytest.mark.slow
def test_F13_half_open_connections_to_redis(stage: Stage) -> None:
    with (
        proxied(redis_address(stage.redis_url)) as proxy,
        seen_through(stage, redis_url=redis_through(stage.redis_url, proxy)) as stage,
    ):
        stage.fleet.finder()
        stage.worker()
        under_way = stage.clients(seconds=8)
        stage.wait_for_progress(80)
        assert proxy.freeze() > 3
        resumed = stage.wait_for_progress(80, seconds=RESUME_SECONDS)
        stage.settle(under_way, recovery=resumed)


@pytest.mark.slow
@pytest.mark.parametrize("weather", ["latency", "bandwidth", "resets"])
def test_F14_slow_and_broken_connections_to_redis(stage: Stage, weather: str) -> None:
    with (
        proxied(redis_address(stage.redis_url)) as proxy,
        seen_through(stage, redis_url=redis_through(stage.redis_url, proxy)) as stage,
    ):
        stage.fleet.finder()
        stage.worker()
        under_way = stage.clients(turns=300, seconds=6, clients=8)
        stage.wait_for_progress(50)
        proxy.delay_seconds = 0.2 if weather == "latency" else 0
        proxy.bytes_per_second = 10_000 if weather == "bandwidth" else 0
        while not under_way.is_done():
            stage.wait_for_progress(1, seconds=30) if weather != "resets" else proxy.cut()
            if oracle.pending(stage.owner) == 0 and under_way.is_done():
                break
        assert under_way.p99() < 20, "accepting stays quick"
        proxy.delay_seconds = proxy.bytes_per_second = 0
        stage.settle(under_way)


@pytest.mark.slow
def test_F15_redis_flushed_and_keys_deleted_again_and_again(stage: Stage) -> None:
    stage.fleet.finder()
    stage.worker()
    under_way = stage.clients(seconds=6)
    dice = random.Random(15)
    with stage.redis() as redis:
        while not under_way.is_done():
            keys = redis.keys(f"{stage.runtime.settings.redis.prefix}*")
            choice = dice.randrange(4)
            if choice == 0:
                redis.flushall()
            elif choice == 1:
                redis.flushdb()
            elif keys:
                redis.delete(dice.choice(keys))
            stage.wait_for_progress(3)
    stage.settle(under_way)


def test_F16_redis_full(stage: Stage, server: RedisServer) -> None:
    """At its limit Redis refuses what is written: accepting goes on, and a finder does the work without hints."""
    with seen_through(stage, redis_url=server.url) as stage, kept_running(stage.worker):
        stage.fleet.finder(MEMORY_FINDER__DRAIN_AFTER_SECONDS="1")
        under_way = stage.clients(seconds=6)
        stage.wait_for_progress(50)
        server.command("CONFIG", "SET", "maxmemory", "1")
        accepted = len(list(stage.ledger))
        # A load of its own: on a slow machine the first one may be over.
        meanwhile = stage.clients(run="full", turns=60, sessions=4, seconds=1)
        meanwhile.retries()
        assert len(list(stage.ledger)) >= accepted + 60, "accepting goes on"
        stage.wait_for_progress(100)
        server.command("CONFIG", "SET", "maxmemory", "0")
        stage.settle(under_way)


@pytest.mark.slow
def test_F16_redis_that_evicts(stage: Stage, server: RedisServer) -> None:
    server.command("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
    with seen_through(stage, redis_url=server.url) as stage, kept_running(stage.worker):
        stage.fleet.finder()
        under_way = stage.clients(seconds=4)
        stage.wait_for_progress(50)
        server.command("CONFIG", "SET", "maxmemory", "2mb")
        under_way.retries()
        server.command("CONFIG", "SET", "maxmemory", "0")
        stage.settle(under_way)


def test_F17_hints_doubled_and_shuffled(stage: Stage) -> None:
    # given the hints of a load that no worker has seen
    under_way = stage.clients(seconds=0)
    under_way.retries()
    find_due(stage.runtime)
    prefix = stage.runtime.settings.redis.prefix
    with stage.redis() as redis:
        hints = redis.lrange(f"{prefix}{INGEST}", 0, -1)
        assert all(any(task.encode() in hint for hint in hints) for task in (INDEX_TURNS, EXTRACT_SESSION))
        # when each is there six times, in any order, for three workers
        again = hints * 5
        random.Random(17).shuffle(again)
        redis.rpush(f"{prefix}{INGEST}", *again)
    stage.fleet.finder()
    for _ in range(3):
        stage.fleet.worker(concurrency=1)
    # then all took effect once
    stage.settle(under_way)


@pytest.mark.slow
def test_F21_F30_garbage_and_forged_messages(stage: Stage, other_tenant: int) -> None:
    """Unknown names, old forms, garbage, pickle, other tenants' ids, huge and mistyped arguments: all are harmless."""
    stage.fleet.finder()
    prefix = stage.runtime.settings.redis.prefix
    with kept_running(stage.fleet.worker) as workers, stage.redis() as redis:
        stage.wait_for(workers[0])
        under_way = stage.clients(seconds=5)
        stage.wait_for_progress(50)
        for queue in QUEUES:
            for message in forged(queue):
                redis.rpush(f"{prefix}{queue}", message)
        stage.settle(under_way)
    said = "".join(worker.said() for worker in workers)
    assert "messages_dropped" in said
    assert "DROP TABLE" not in said and "xxxx" not in said, "what a message carries is in no log"


def forged(queue: str) -> Iterator[bytes]:
    """What somebody who can write to Redis might push."""
    yield b"\x80\x04garbage"
    yield b"{}"
    yield b'{"body": 5}'
    yield b"null"
    yield envelope(queue, "memory.unknown_task", [[], {}, {}])
    yield envelope(queue, "memory.index_turns", [[1, 2, 3], {"surprise": 1}, {}])
    yield envelope(queue, "memory.extract_session", [[], {"session_id": "1; DROP TABLE turns"}, {}])
    yield envelope(queue, "memory.extract_session", [[], {"session_id": 2**80}, {}])
    yield envelope(queue, "memory.extract_session", [[], {"session_id": None}, {}])
    yield envelope(queue, "memory.extract_session", [[], {"session_id": ["x" * 3_000_000]}, {}])
    yield envelope(queue, "memory.extract_session", "not even a list")
    for session_id in range(1, 40):
        yield envelope(queue, "memory.extract_session", [[], {"session_id": session_id}, {}])
    pickled = base64.b64encode(pickle.dumps([[], {}, {}])).decode()
    yield envelope(queue, "memory.index_turns", pickled, content_type="application/x-python-serialize")


def envelope(queue: str, task: str, body: object, *, content_type: str = "application/json") -> bytes:
    """A message as Kombu writes it to a list."""
    encoded = base64.b64encode(json.dumps(body).encode()).decode()
    message = {
        "body": body if content_type != "application/json" else encoded,
        "content-encoding": "utf-8" if content_type == "application/json" else "binary",
        "content-type": content_type,
        "headers": {
            "lang": "py",
            "task": task,
            "id": "forged",
            "retries": 0,
            "argsrepr": "()",
            "kwargsrepr": "{}",
        },
        "properties": {
            "correlation_id": "forged",
            "delivery_mode": 2,
            "delivery_info": {"exchange": "", "routing_key": queue},
            "priority": 0,
            "body_encoding": "base64",
            "delivery_tag": "forged",
        },
    }
    return json.dumps(message).encode()
