"""One real worker process: it follows hints, outlives whatever stands in its queues, and shows no arguments."""

from __future__ import annotations

import base64
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import garbage
import pytest
from celery import Celery
from pydantic import SecretStr
from redis import Redis as RedisClient
from sqlalchemy import create_engine, text
from sqlalchemy.pool import NullPool

from memory_app import queue, redis_url
from memory_app.local import embedded
from memory_app.local.embedded import Servers
from memory_app.queue import broker_settings
from memory_app.records.records import NewTurn, Role, Stage
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime, build
from memory_app.settings import Database, Embedding, Redis, Settings
from memory_app.tenancy.rows import keys
from memory_app.turns.record import record
from memory_app.turns.rows.stages import TicketRow
from memory_app.turns.tickets import TERMINAL, ticket

ROOT = Path(__file__).parents[3]
TEMPLATE = "template_migrated"
CANARY = "zanzibarquux"
WAIT_SECONDS = 200
COMMAND = (
    *(sys.executable, "-m", "celery", "-A", "workers.app", "worker", "-Q", ",".join(queue.QUEUES)),
    *("--concurrency", "1", "--without-gossip", "--without-mingle"),
)


@dataclass(frozen=True, slots=True)
class Place:
    """What the worker of this file works on; a producer's live parts, and the worker itself."""

    runtime: Runtime
    tenant: int
    process: subprocess.Popen[bytes]
    log: Path

    @property
    def prefix(self) -> str:
        return self.runtime.settings.redis.prefix

    @property
    def redis_url(self) -> str:
        return self.runtime.settings.redis.url.get_secret_value()

    def said(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")

    def is_alive(self) -> bool:
        return self.process.poll() is None


@pytest.fixture(scope="module")
def settings(servers: Servers, template: Servers) -> Iterator[Settings]:
    name = f"test_{uuid4().hex[:12]}"
    made = embedded.create_database(servers, name, template=TEMPLATE)
    yield Settings(
        _env_file=None,
        database=Database(url=SecretStr(made.app_url), owner_url=SecretStr(made.owner_url)),
        redis=Redis(url=SecretStr(made.redis_url), prefix=f"test-{uuid4().hex[:12]}:"),
        embedding=Embedding(provider="hash", dimensions=256),
    )
    embedded.drop_database(servers, name)


@pytest.fixture(scope="module")
def place(settings: Settings, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    assert settings.database.owner_url is not None
    owner_url = settings.database.owner_url.get_secret_value()
    with create_engine(owner_url, poolclass=NullPool).begin() as connection:
        tenant = keys.ensure_tenant(connection, "acme")
    log = tmp_path_factory.mktemp("worker") / "log"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MEMORY_")} | {
        "MEMORY_DATABASE__URL": settings.database.url.get_secret_value(),
        "MEMORY_REDIS__URL": settings.redis.url.get_secret_value(),
        "MEMORY_REDIS__PREFIX": settings.redis.prefix,
        "MEMORY_EMBEDDING__PROVIDER": "hash",
        "PYTHONUNBUFFERED": "1",
    }
    runtime = build(settings)
    with log.open("wb") as output:
        process = subprocess.Popen(
            COMMAND,
            cwd=ROOT,
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        here = Place(runtime, tenant, process, log)
        wait_until(lambda: " ready." in here.said() or not here.is_alive(), "the worker is ready")
        yield here
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        with RedisClient.from_url(settings.redis.url.get_secret_value(), protocol=2) as client:
            for key in client.scan_iter(f"{settings.redis.prefix}*"):
                client.delete(key)
        runtime.close()


def wait_until(condition: Callable[[], bool], description: str) -> None:
    pause, end = threading.Event(), time.monotonic() + WAIT_SECONDS
    while not condition():
        assert time.monotonic() < end, f"waited {WAIT_SECONDS} s in vain until {description}"
        pause.wait(0.05)


def say(place: Place, words: str = "I live in Paris these days.") -> TicketRow:
    """Record a turn and wait until the worker is through with it."""
    scope = Scope("ada", "bob", f"session {uuid4().hex[:6]}")
    (accepted,) = record(place.runtime, place.tenant, scope, [NewTurn(Role.USER, words)])

    def is_done() -> bool:
        return ticket(place.runtime, place.tenant, accepted.id, wait_seconds=5).stage in TERMINAL

    wait_until(is_done, "the worker is through with the turn")
    return ticket(place.runtime, place.tenant, accepted.id)


def message(task: str, *, body: object = ((), {}, {}), **changes: Any) -> bytes:
    """A message as Celery puts it into a Redis list, with some parts changed."""
    envelope: dict[str, Any] = {
        "body": base64.b64encode(json.dumps(body).encode()).decode(),
        "content-encoding": "utf-8",
        "content-type": "application/json",
        "headers": {"lang": "py", "task": task, "id": uuid4().hex, "argsrepr": "()", "kwargsrepr": "{}"},
        "properties": {
            "correlation_id": uuid4().hex,
            "delivery_mode": 2,
            "delivery_info": {"exchange": "", "routing_key": "ingest"},
            "priority": 0,
            "body_encoding": "base64",
            "delivery_tag": uuid4().hex,
        },
    }
    return json.dumps(envelope | changes).encode()


def push(place: Place, *messages: bytes) -> None:
    with RedisClient.from_url(place.redis_url, protocol=2) as client:
        for name in queue.QUEUES:
            client.rpush(f"{place.prefix}{name}", *messages)


def is_empty(place: Place) -> bool:
    with RedisClient.from_url(place.redis_url, protocol=2) as client:
        return not any(client.llen(f"{place.prefix}{name}") for name in queue.QUEUES)


def test_a_hint_is_enough_to_index_and_extract_a_turn(place: Place) -> None:
    done = say(place)
    assert done.stage is Stage.EXTRACTED
    assert len(done.memory_ids) >= 1


@pytest.mark.one_shard
def test_many_hints_at_once_do_each_turns_work_once(place: Place) -> None:
    with ThreadPoolExecutor(8) as pool:
        done = list(pool.map(lambda n: say(place, f"I have a cat named Tom{n}."), range(16)))
    assert {one.stage for one in done} == {Stage.EXTRACTED}
    owner_url = place.runtime.settings.database.owner_url
    assert owner_url is not None
    with create_engine(owner_url.get_secret_value(), poolclass=NullPool).connect() as connection:
        repeated = connection.execute(
            text("SELECT sum(row_count) FROM terms WHERE term = 0"),
        ).scalar_one()
        stored = connection.execute(
            text("SELECT (SELECT count(*) FROM turns) + (SELECT count(*) FROM memories)")
        ).scalar_one()
    assert repeated == stored, "every row is counted once"


def test_whatever_stands_in_a_queue_stops_nothing(place: Place) -> None:
    push(
        place,
        *garbage.pieces().values(),
        message("os.system", body=(["true"], {}, {})),
        message(queue.EXTRACT_SESSION),
        message(queue.EXTRACT_SESSION, body=([], {"session_id": "abc"}, {})),
        message(queue.EXTRACT_SESSION, body=([], {"session_id": [1]}, {})),
        message(queue.EXTRACT_SESSION, body=([], {"session_id": 2**80}, {})),
        message(queue.EXTRACT_SESSION, body=([], {"session_id": 999_999}, {})),
    )
    assert say(place).stage is Stage.EXTRACTED
    wait_until(lambda: is_empty(place), "the queues are empty")
    assert place.is_alive()
    assert say(place).stage is Stage.EXTRACTED
    least = len(queue.QUEUES) * len(garbage.dropped())
    wait_until(lambda: place.runtime.drops.read().total >= least, "what was dropped is counted")
    assert garbage.CANARY not in place.said()


@contextmanager
def watched(place: Place) -> Iterator[tuple[Celery, list[dict[str, Any]]]]:
    """A stranger's application on the same broker, and all events seen while the block runs."""
    stranger = Celery("stranger", set_as_current=False)
    stranger.conf.update(broker_settings(redis_url.read(place.redis_url), place.prefix))
    seen: list[dict[str, Any]] = []
    listening = threading.Event()
    with stranger.connection_for_read() as connection, ThreadPoolExecutor(1) as pool:
        receiver = stranger.events.Receiver(connection, handlers={"*": seen.append})
        receiver.on_consume_ready = lambda *_, **__: listening.set()
        watching = pool.submit(receiver.capture, limit=None, timeout=None, wakeup=False)
        try:
            assert listening.wait(WAIT_SECONDS)
            yield stranger, seen
        finally:
            receiver.should_stop = True
        watching.result(timeout=WAIT_SECONDS)
    stranger.close()


def test_what_a_message_carries_is_shown_neither_in_events_nor_in_the_log(place: Place) -> None:
    with watched(place) as (stranger, seen):
        for name in (queue.INDEX_TURNS, queue.EXTRACT_SESSION, "memory.unheard_of"):
            # As any producer sends it, without a thought for who reads along.
            stranger.send_task(name, args=[CANARY], kwargs={"words": CANARY}, queue=queue.INGEST)
        say(place, f"I live in {CANARY} these days.")

        def count(kind: str) -> int:
            return sum(event["type"] == kind for event in seen)

        wait_until(lambda: count("task-received") >= 3, "two of these messages and a hint were received")
        wait_until(lambda: count("task-succeeded") >= 1, "the hint was followed")
    received = [event for event in seen if event["type"] == "task-received"]
    assert {event["args"] for event in received} == {"()"}
    # Of our own hints the ids; of what a stranger sent nothing.
    shown = [event["kwargs"] for event in received]
    assert shown.count("{…}") >= 2
    assert all(
        re.fullmatch(r"\{…\}|session_id=\d+(, shard=\d+)?|shard=\d+", arguments) for arguments in shown
    )
    assert CANARY not in repr(seen)
    assert CANARY not in place.said()
