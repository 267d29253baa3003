"""What comes through our transport from a real server: what we and any Celery producer send, and no garbage."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import uuid4

import garbage
import pytest
from celery import Celery
from kombu import Consumer, Queue
from redis import Redis

from memory_app import queue
from memory_app.broker import dropped
from memory_app.broker.message import DropReason, task_fault
from memory_app.broker.sweep import sweep
from memory_app.queue import INGEST, QUEUES, ROUTES, Sender, broker_settings
from memory_app.redis_url import Address, read

SECONDS = 60.0


@pytest.fixture
def address(redis_url: str) -> Address:
    return read(redis_url)


@pytest.fixture
def prefix(raw: Redis) -> Iterator[str]:
    prefix = f"test-{uuid4().hex}:"
    yield prefix
    if left := list(raw.scan_iter(f"{prefix}*")):
        raw.delete(*left)


def take(address: Address, prefix: str, messages: int) -> list[str]:
    """Names of the tasks that a consumer of ours gets, so many of them."""
    app = Celery("taker", set_as_current=False)
    app.conf.update(broker_settings(address, prefix))
    names: list[str] = []

    def note(_: object, message: object) -> None:
        names.append(message.headers["task"])  # type: ignore[attr-defined]
        message.ack()  # type: ignore[attr-defined]

    queues = [Queue(name) for name in QUEUES]
    with (
        app.connection_for_read() as connection,
        Consumer(connection, queues, callbacks=[note], accept=["json"]),
    ):
        while len(names) < messages:
            connection.drain_events(timeout=SECONDS)
    app.close()
    return names


def test_what_we_send_comes_through(address: Address, prefix: str, raw: Redis) -> None:
    sender = Sender(address, prefix=prefix)
    assert sender.send(queue.INDEX_TURNS)
    assert sender.send(queue.EXTRACT_SESSION, session_id=7)
    sender.close()
    assert sorted(take(address, prefix, 2)) == [queue.EXTRACT_SESSION, queue.INDEX_TURNS]
    assert raw.keys(f"{prefix}dropped*") == []


def test_what_any_celery_producer_sends_comes_through(address: Address, prefix: str, raw: Redis) -> None:
    producer = Celery("producer", broker=address.broker_url(), set_as_current=False)
    producer.conf.broker_transport_options = {"global_keyprefix": prefix}
    fields = {
        "agent": "ada",
        "user": "bob",
        "session": "s",
        "role": "user",
        "content": "Grüße",
        "api_key": "k",
    }
    producer.send_task(queue.RECORD_TURN, kwargs=fields, queue=INGEST)
    producer.send_task(queue.RECORD_TURN, kwargs=fields, queue=INGEST, expires=60, priority=3)
    producer.close()
    waiting = [message for key in raw.scan_iter(f"{prefix}{INGEST}*") for message in raw.lrange(key, 0, -1)]
    assert [task_fault(message, ROUTES) for message in waiting] == [None, None]
    assert take(address, prefix, 2) == [queue.RECORD_TURN] * 2


def test_garbage_before_a_message_is_dropped_and_counted(address: Address, prefix: str, raw: Redis) -> None:
    pieces = {**garbage.dropped(), "huge": garbage.huge(9)}
    raw.lpush(f"{prefix}{INGEST}", *pieces.values())
    raw.lpush(f"{prefix}model", b"null")
    raw.lpush(f"{prefix}{INGEST}", garbage.envelope())
    assert take(address, prefix, 1) == [queue.INDEX_TURNS]
    drops = dropped.connect(address, prefix=prefix, timeout_seconds=5)
    report = drops.read()
    drops.close()
    assert report.total == len(pieces) + 1
    assert report.counts["too_large"] == 1
    assert report.counts["unknown_task"] == 5
    assert report.seconds_ago is not None and report.seconds_ago <= 60
    assert garbage.CANARY.encode() not in b"".join(raw.hgetall(f"{prefix}dropped:all"))


def test_a_queue_of_garbage_keeps_no_other_queue_from_its_turn(
    address: Address, prefix: str, raw: Redis
) -> None:
    for name in QUEUES:
        raw.lpush(f"{prefix}{name}", *[b"garbage"] * 5_000)
    raw.rpush(f"{prefix}maintenance", garbage.envelope(task=queue.SLEEP, queue="maintenance"))
    assert take(address, prefix, 1) == [queue.SLEEP]
    assert raw.llen(f"{prefix}ingest") > 3_000


def test_garbage_among_the_unacknowledged_goes_away(address: Address, prefix: str, raw: Redis) -> None:
    for number, value in enumerate(
        (b"null", b"[1, 2]", b"garbage", b'["text", "", "ingest"]', b'[{}, "", "x"]')
    ):
        raw.hset(f"{prefix}unacked", f"tag{number}", value)
        raw.zadd(f"{prefix}unacked_index", {f"tag{number}": 1})
    app = Celery("restorer", set_as_current=False)
    app.conf.update(broker_settings(address, prefix))
    with app.connection_for_read() as connection, Consumer(connection, [Queue(INGEST)], accept=["json"]):
        connection.default_channel.qos.restore_visible(num=10)
    app.close()
    assert raw.hlen(f"{prefix}unacked") == raw.zcard(f"{prefix}unacked_index") == 0


def test_bindings_that_are_none_are_passed_over(address: Address, prefix: str, raw: Redis) -> None:
    raw.sadd(f"{prefix}_kombu.binding.some", b"garbage", b"a\x06\x16b\x06\x16c")
    app = Celery("binder", set_as_current=False)
    app.conf.update(broker_settings(address, prefix))
    with app.connection_for_read() as connection:
        assert connection.default_channel.get_table("some") == [("a", "b", "c")]
    app.close()


def test_only_garbage_is_swept_out_and_the_rest_keeps_its_order(raw: Redis, prefix: str) -> None:
    name = f"{prefix}{INGEST}"
    good = [garbage.envelope(headers={"id": f"good-{number}"}) for number in range(5)]
    waiting = [b"null", good[0], b"null", b"[]", good[1], good[2], b"null", good[3], good[4], b""]
    raw.lpush(name, *waiting)
    removed = sweep(raw, name, lambda value: task_fault(value, ROUTES))
    assert raw.lrange(name, 0, -1) == list(reversed(good))
    assert removed == {DropReason.MALFORMED: 4, DropReason.NOT_JSON: 1}


def test_what_is_large_is_not_read_to_be_swept(raw: Redis, prefix: str) -> None:
    name = f"{prefix}{INGEST}"
    raw.lpush(name, b"null", b"x" * 2_000_000, b"null")
    assert sweep(raw, name, lambda value: task_fault(value, ROUTES)) == {DropReason.MALFORMED: 1}
    assert raw.llen(name) == 2
