"""What people say stays out of logs, Redis, Flower and answers to errors, on good paths and on bad ones (I7)."""

from __future__ import annotations

import http.client
import json
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any

import pytest
from celery import Celery
from harness import load, oracle
from harness.api import call, free_port, is_live
from harness.stage import Stage
from harness.waiting import wait_until
from redis import Redis
from redis.exceptions import RedisError
from sqlalchemy import text

from memory_app.queue import INGEST, RECORD_TURN, broker_settings

pytestmark = pytest.mark.faults

CANARY = "zanzibar-canary-7731"
SAID = f"I bought a kettle from {CANARY}@example.org with the number 1 in Lima."
TASKS = "/api/tasks?limit=1000"
PATH = "/v1/agents/ada/users/bob/sessions/s"


@pytest.mark.slow
def test_F29_nothing_that_was_said_leaves_the_database(stage: Stage, api_key: str) -> None:
    port, flower = free_port(), free_port()
    loud = {"MEMORY_LOG__LEVEL": "DEBUG"}
    stage.fleet.api(port, **loud)
    stage.fleet.finder(**loud)
    worker = stage.fleet.worker(app="harness.rigged", **loud)
    options = ("flower", "--address=127.0.0.1", f"--port={flower}")
    stage.fleet.start(
        "flower", ("-m", "workers.flower", "-A", "workers.app", *options), FLOWER_UNAUTHENTICATED_API="true"
    )
    stage.wait_for(worker)
    wait_until(lambda: is_live(port), "the API answers", seconds=30)
    wait_until(lambda: page(flower, "/api/workers"), "Flower answers", seconds=30)

    # when turns are taken, repeated, refused, failed, and end in exceptions that quote them
    with overheard(stage.redis_url) as heard:
        answers = [call(port, method, path, key=api_key, body=body) for method, path, body in requests()]
        under_way = stage.clients(
            turns=40, sessions=2, seconds=1, send=load.in_process(stage.runtime, stage.tenant)
        )
        under_way.retries()
        oracle.wait_for_quiet(stage.owner, seconds=60)
        with stage.redis() as redis:
            kept = [everything(redis, key) for key in redis.scan_iter("*")]
    # a turn that comes over the broker passes through Redis, and leaves no trace elsewhere
    send_over_the_broker(stage, api_key)
    wait_until(lambda: is_relayed(stage), "the turn over the broker is applied", seconds=60)
    with stage.redis() as redis:
        left = [everything(redis, key) for key in redis.scan_iter("*")]

    wait_until(lambda: "memory.extract_session" in page(flower, TASKS), "Flower heard of it", seconds=60)

    # then the canary is nowhere but in the database
    refused = [body for status, body in answers if status >= 400]
    assert len(refused) >= 5
    assert [body for body in refused if CANARY in json.dumps(body)] == [], "error bodies"
    told = "".join(heard)
    assert [form for form in forms(CANARY) if form in told] == [], "what Redis was told"
    assert CANARY not in repr(kept) + repr(left), "what Redis keeps"
    pages = [page(flower, path) for path in (TASKS, "/api/workers", "/tasks", "/broker")]
    tasks = json.loads(pages[0]).values()
    assert [field for task in tasks for field in task.items() if CANARY in str(field)] == [], "Flower's tasks"
    assert CANARY not in "".join(pages), "Flower"
    assert [name for name, said in stage.fleet.logs() if CANARY in said] == [], "logs"


def requests() -> Iterator[tuple[str, str, Any]]:
    """Good and bad requests, all with the canary in them."""
    turns = f"{PATH}/turns"
    yield "POST", turns, {"role": "user", "content": SAID, "idempotency_key": "one"}
    yield "POST", turns, {"role": "user", "content": SAID, "idempotency_key": "one"}
    yield "POST", turns, {"role": "user", "content": f"{SAID} Not.", "idempotency_key": "one"}
    yield "POST", turns, {"role": CANARY, "content": SAID}
    yield "POST", turns, {"role": "user", "content": SAID, "surprise": SAID}
    yield "POST", turns, {"role": "user", "content": [SAID]}
    yield "POST", turns, {"role": "user", "content": SAID, "at": SAID}
    yield "POST", turns, {"role": "user", "content": SAID * 3_000}
    for harm in ("words", "refused", "index-words"):
        yield "POST", turns, {"role": "user", "content": f"{SAID} harm={harm}"}
    memories = "/v1/agents/ada/users/bob/memories"
    yield "POST", memories, {"kind": "fact", "text": SAID, "importance": SAID}
    yield "POST", memories, {"kind": CANARY, "text": SAID}
    yield "POST", "/v1/agents/ada/users/bob/recall", {"query": SAID, "preset": "nonsense"}
    yield "POST", "/v1/agents/ada/users/bob/recall", {"query": SAID}
    yield "POST", "/v1/agents/ada/users/bob/context", {"query": SAID}
    yield "GET", "/v1/failed", None


def forms(said: str) -> list[str]:
    """The text as it is, and as it stands inside what is written in base 64, as messages and events are."""
    shifted = [b64encode(b" " * shift + said.encode()).decode()[2 * shift : -4] for shift in range(3)]
    return [said, *(form[shift:] for shift, form in enumerate(shifted))]


def is_relayed(stage: Stage) -> bool:
    """Whether the queue is empty and its one good turn is applied."""
    with stage.redis() as redis, stage.owner.connect() as connection:
        waiting = redis.llen(f"{stage.runtime.settings.redis.prefix}{INGEST}")
        statement = text("SELECT count(*) FROM sessions WHERE name = 'b' AND extracted_seq = 1")
        return not waiting and connection.execute(statement).scalar_one() == 1


def send_over_the_broker(stage: Stage, api_key: str) -> None:
    settings = stage.runtime.settings
    producer = Celery("producer", set_as_current=False)
    producer.conf.update(broker_settings(settings.broker_address, settings.redis.prefix))
    fields = {
        "api_key": api_key,
        "agent": "ada",
        "user": "bob",
        "session": "b",
        "role": "user",
        "content": SAID,
    }
    for given in (fields, fields | {"role": CANARY}, fields | {"api_key": CANARY}, fields | {CANARY: 1}):
        producer.send_task(RECORD_TURN, kwargs=given, queue=INGEST)
    producer.close()


@contextmanager
def overheard(url: str) -> Iterator[list[str]]:
    """Every command that Redis gets during the block."""
    heard: list[str] = []
    begun, over = Event(), Event()

    def listen() -> None:
        with Redis.from_url(url, protocol=2, socket_timeout=0.5) as redis, redis.monitor() as monitor:
            begun.set()
            while not over.is_set():
                try:
                    heard.append(str(monitor.next_command()))
                except RedisError:
                    continue

    listening = Thread(target=listen)
    listening.start()
    assert begun.wait(10)
    try:
        yield heard
    finally:
        over.set()
        listening.join()
    assert len(heard) > 20


def everything(redis: Redis, key: bytes) -> object:
    """A key with all it holds."""
    readers = {
        b"string": lambda: redis.get(key),
        b"list": lambda: redis.lrange(key, 0, -1),
        b"hash": lambda: redis.hgetall(key),
        b"set": lambda: redis.smembers(key),
        b"zset": lambda: redis.zrange(key, 0, -1),
    }
    reader = readers.get(redis.type(key))
    return key, reader() if reader else None


def page(port: int, path: str) -> str:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", path)
        return connection.getresponse().read().decode(errors="replace")
    except OSError:
        return ""
    finally:
        connection.close()
