"""F35 and F40: whoever reaches Redis puts garbage into the queues, or commands the workers. They live and go on."""

from __future__ import annotations

import threading
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import cycle

import garbage
import pytest
from celery import Celery
from celery.app.control import Control, Inspect
from free_ports import free_port
from harness.api import call, is_live
from harness.fleet import Member
from harness.load import Load
from harness.stage import Stage
from harness.waiting import wait_until

from memory_app.ops.check import State
from memory_app.ops.doctor import diagnose
from memory_app.queue import QUEUES

pytestmark = pytest.mark.faults

MINUTE_SECONDS = 60
MANY = 100_000
START_SECONDS = 120


def start(stage: Stage) -> list[Member]:
    """A worker of each pool, a finder and Beat."""
    workers = [stage.fleet.worker(queues="ingest,maintenance"), stage.fleet.model_worker()]
    stage.fleet.finder()
    stage.fleet.beat()
    stage.wait_for(*workers)
    return workers


def dropped(stage: Stage) -> int:
    return stage.runtime.drops.read().total


def assert_well(workers: list[Member]) -> None:
    """The same processes as in the beginning, and nothing of what messages carried in what they wrote."""
    assert all(worker.is_alive() for worker in workers)
    output = "".join(worker.said() for worker in workers)
    assert garbage.CANARY not in output
    assert "Traceback" not in output


def record_more(stage: Stage, run: str) -> Load:
    """Turns that are all applied while whatever was done before still lasts."""
    load = stage.clients(turns=60, sessions=6, seconds=1, run=run)
    stage.settle(load)
    return load


def test_F35_garbage_in_every_queue(stage: Stage) -> None:
    workers = start(stage)
    pieces = garbage.pieces()
    prefix = stage.runtime.settings.redis.prefix
    with stage.redis() as redis:
        for queue in QUEUES:
            redis.lpush(f"{prefix}{queue}", *pieces.values(), garbage.huge(9))
        for piece in (*pieces.values(), *garbage.commands()):
            redis.publish(f"{prefix}/0.celery.pidbox", piece)
        record_more(stage, "garbage")
        wait_until(
            lambda: not any(redis.llen(f"{prefix}{queue}") for queue in QUEUES),
            "the queues are empty",
            seconds=60,
        )
    expected = len(QUEUES) * len(garbage.dropped())
    wait_until(lambda: dropped(stage) >= expected, "what was dropped is counted", seconds=30)
    assert_well(workers)
    check = next(check for check in diagnose(stage.runtime.settings) if check.name == "messages")
    assert check.state is State.WARN
    assert "malformed" in check.found


@contextmanager
def repeated(action: Callable[[], None], *, seconds: float) -> Iterator[None]:
    """Do this again and again from a thread, with a pause of so many seconds between."""
    over = threading.Event()

    def go_on() -> None:
        while not over.wait(seconds):
            action()

    thread = threading.Thread(target=go_on, name="stranger", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_F35_a_piece_of_garbage_a_second_for_a_minute(stage: Stage) -> None:
    port = free_port()
    workers = start(stage)
    stage.fleet.api(port)
    wait_until(lambda: is_live(port), "the API answers", seconds=START_SECONDS)
    wait_until(lambda: call(port, "GET", "/health/ready")[0] == 200, "all is ready", seconds=START_SECONDS)
    pieces = cycle(garbage.pieces().values())
    prefix = stage.runtime.settings.redis.prefix
    states: list[int] = []
    with stage.redis() as redis:

        def push() -> None:
            for queue in QUEUES:
                redis.rpush(f"{prefix}{queue}", next(pieces))
            states.append(call(port, "GET", "/health/ready")[0])

        with repeated(push, seconds=1):
            under_way = stage.clients(turns=600, sessions=16, seconds=MINUTE_SECONDS)
            under_way.retries()
        stage.settle(under_way)
    assert set(states) == {200}, "readiness stays true"
    assert len(states) >= 20
    assert_well(workers)
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
        assert 'memory_dropped_messages_total{reason="malformed"}' in answer.read().decode()


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_F35_a_hundred_thousand_pieces_of_garbage(stage: Stage) -> None:
    workers = start(stage)
    small = [piece for piece in garbage.dropped().values() if len(piece) < 2_000]
    name = f"{stage.runtime.settings.redis.prefix}ingest"
    with stage.redis() as redis:
        for _ in range(MANY // 1_000):
            redis.lpush(name, *(small * (1_000 // len(small) + 1))[:1_000])
        record_more(stage, "behind garbage")
        wait_until(lambda: redis.llen(name) == 0, "the garbage is gone", seconds=60)
    wait_until(lambda: dropped(stage) >= MANY, "all of it is counted", seconds=30)
    assert_well(workers)


CHANGES: tuple[Callable[[Control], object], ...] = (
    lambda control: control.shutdown(),
    lambda control: control.broadcast("cancel_consumer", arguments={"queue": "ingest"}),
    lambda control: control.add_consumer("stranger"),
    lambda control: control.pool_shrink(1),
    lambda control: control.pool_grow(1),
    lambda control: control.pool_restart(),
    lambda control: control.autoscale(0, 0),
    lambda control: control.rate_limit("memory.index_turns", "1/h"),
    lambda control: control.time_limit("memory.index_turns", soft=0.001, hard=0.002),
    lambda control: control.revoke("11111111-2222-4333-8444-555555555555", terminate=True, signal="SIGKILL"),
    lambda control: control.broadcast(
        "revoke_by_stamped_headers", arguments={"headers": {"a": garbage.CANARY}}
    ),
    lambda control: control.broadcast("terminate", arguments={"signal": "KILL", "task_id": garbage.CANARY}),
    lambda control: control.disable_events(),
    lambda control: control.broadcast("election", arguments={"id": "1", "topic": garbage.CANARY}),
    lambda control: control.broadcast("hello", arguments={"from_node": "x", "revoked": {garbage.CANARY: 1}}),
    lambda control: control.broadcast("objgraph"),
    lambda control: control.broadcast("memdump"),
    lambda control: control.broadcast(garbage.CANARY, arguments={garbage.CANARY: 1}),
    lambda control: control.broadcast("ping", arguments={garbage.CANARY: 1}),
    lambda control: control.broadcast("shutdown", pattern="*", matcher="glob"),
)


@contextmanager
def stranger(stage: Stage) -> Iterator[Celery]:
    """A plain Celery application on the same broker, as anybody could write it."""
    settings = stage.runtime.settings
    app = Celery("stranger", broker=stage.redis_url, set_as_current=False)
    app.conf.broker_transport_options = {"global_keyprefix": settings.redis.prefix}
    yield app
    app.close()


def test_F40_commands_from_a_stranger(stage: Stage) -> None:
    workers = start(stage)
    with stranger(stage) as app:
        inspect = app.control.inspect(timeout=3, limit=len(workers))
        wait_until(lambda: len(inspect.ping() or {}) == len(workers), "every worker answers", seconds=60)
        before = inspect.active_queues(), pools(inspect, len(workers))
        for change in CHANGES:
            change(app.control)
        replies = app.control.broadcast("shutdown", reply=True, timeout=3, limit=len(workers))
        assert ["refused" in str(reply) for reply in replies] == [True] * len(workers)
        record_more(stage, "after commands")
        after = inspect.active_queues(), pools(inspect, len(workers))
        answers = [inspect.conf(), inspect.stats(), inspect.revoked(), inspect.registered()]
    assert_same(before, after)
    assert inspect_is_discreet(stage, answers)
    assert_well(workers)
    assert "control_refused" in workers[0].said()


def pools(inspect: Inspect, count: int) -> dict[str, object]:
    """The pool of each of so many workers, once all of them have told it."""
    stats: dict[str, dict[str, object]] = {}

    def is_told() -> bool:
        stats.update(inspect.stats() or {})
        return len(stats) == count

    wait_until(is_told, "every worker tells its state", seconds=60)
    return {name: told["pool"] for name, told in stats.items()}


def assert_same(before: tuple[object, ...], after: tuple[object, ...]) -> None:
    """The same queues, and the same number of processes or threads."""
    queues_before, pools_before = before
    queues_after, pools_after = after
    assert queues_before == queues_after
    sizes = [
        {name: pool["max-concurrency"] for name, pool in pools.items()}  # type: ignore[attr-defined]
        for pools in (pools_before, pools_after)
    ]
    assert sizes[0] == sizes[1]


def inspect_is_discreet(stage: Stage, answers: list[object]) -> bool:
    """No password of a server in what any stranger may ask."""
    database = stage.runtime.settings.database.url.get_secret_value()
    secrets = [url.rpartition("@")[0].rpartition(":")[2] for url in (stage.redis_url, database)]
    text = repr(answers)
    return not any(secret and secret in text for secret in secrets) and garbage.CANARY not in text
