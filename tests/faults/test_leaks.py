"""What people say stays out of logs, Redis, Flower and answers to errors, on good paths and on bad ones (I7)."""

from __future__ import annotations

import http.client
import json
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from inspect import signature
from threading import Event, Thread
from typing import Any
from uuid import uuid4

import pytest
from celery import Celery
from harness import doors, oracle
from harness.api import call, free_port, is_live
from harness.stage import Stage
from harness.waiting import wait_until
from redis import Redis
from redis.exceptions import RedisError
from sqlalchemy import Engine, text
from trace_receiver import receiving

from memory_app.queue import INGEST, RECORD_TURN, ROUTES, broker_settings
from memory_app.tenancy.rows import keys
from workers.app import app

pytestmark = pytest.mark.faults

CANARY = "zanzibar-canary-7731"
SAID = f"I bought a kettle from {CANARY}@example.org with the number 1 in Lima."
TASKS = "/api/tasks?limit=1000"
PATH = "/v1/agents/ada/users/bob/sessions/s"


@pytest.mark.slow
@pytest.mark.parametrize("form", ["json", "console"])
def test_F29_nothing_that_was_said_leaves_the_database(stage: Stage, owner: Engine, form: str) -> None:
    port, flower = free_port(), free_port()
    with owner.begin() as connection:
        _, api_key = keys.create(connection, "acme", rights=keys.RIGHTS)
        # A database that quotes what it refuses.
        connection.execute(text(REFUSES_WORDS))
    with receiving() as receiver:
        loud = {
            "MEMORY_LOG__LEVEL": "DEBUG",
            "MEMORY_LOG__FORM": form,
            "MEMORY_TRACING__ENDPOINT": receiver.address,
            "MEMORY_TRACING__RATIO": "1",
            "OTEL_BSP_SCHEDULE_DELAY": "100",
        }
        stage.fleet.api(port, **loud)
        stage.fleet.finder(**loud)
        worker = stage.fleet.worker(app="harness.rigged", RIGGED_TASK_SECONDS="6", **loud)
        options = ("flower", "--address=127.0.0.1", f"--port={flower}")
        stage.fleet.start(
            "flower",
            ("-m", "workers.flower", "-A", "workers.app", *options),
            FLOWER_UNAUTHENTICATED_API="true",
            **loud,
        )
        stage.wait_for(worker)
        wait_until(lambda: is_live(port), "the API answers", seconds=30)
        wait_until(lambda: page(flower, "/api/workers"), "Flower answers", seconds=30)

        # when turns are taken, repeated, refused, failed, and end in exceptions that quote them; through every door
        description = call(port, "GET", "/openapi.json")[1]
        with overheard(stage.redis_url) as heard:
            answers = [
                (method, path, *call(port, method, path, key=api_key, body=body))
                for method, path, body in (
                    *requests(),
                    *doors.requests(description, SAID, {**NAMES, "id": str(uuid4())}),
                )
            ]
            # and every task runs, with what it wants and with words instead
            send_every_task(stage)
            wait_until(lambda: set_aside(stage) >= len(DEADLY), "the deadly turns are set aside", seconds=90)
            oracle.wait_for_quiet(stage.owner, seconds=90)
            with stage.redis() as redis:
                kept = [everything(redis, key) for key in redis.scan_iter("*")]
        # a turn that comes over the broker passes through Redis, and leaves no trace elsewhere
        send_over_the_broker(stage, api_key)
        wait_until(lambda: is_relayed(stage), "the turn over the broker is applied", seconds=60)
        with stage.redis() as redis:
            left = [everything(redis, key) for key in redis.scan_iter("*")]
        wait_until(lambda: tasks_of(flower) >= every_task(), "Flower heard of every task", seconds=60)
        wait_until(lambda: len(receiver.spans()) > 100, "traces arrive", seconds=60)
        traces = list(receiver.bodies)

    # then the canary is nowhere but in the database
    operations = sum(len(methods) for methods in description["paths"].values())
    reached = {(method, path) for method, path, _, _ in answers}
    refused = [(method, path, body) for method, path, status, body in answers if status >= 400]
    assert len(reached) >= operations - STREAMS
    assert len(refused) >= operations
    assert [(method, path) for method, path, body in refused if CANARY in json.dumps(body)] == [], (
        "error bodies"
    )
    assert len([status for *_, status, _ in answers if status < 300]) >= 40
    assert [(m, p, s) for m, p, s, _ in answers if s >= 500 and "memories" not in p] == []
    told = "".join(heard)
    assert [found for found in forms(CANARY) if found in told] == [], "what Redis was told"
    assert CANARY not in repr(kept) + repr(left), "what Redis keeps"
    pages = [page(flower, path) for path in (TASKS, "/api/workers", "/tasks", "/broker")]
    tasks = json.loads(pages[0]).values()
    assert [field for task in tasks for field in task.items() if CANARY in str(field)] == [], "Flower's tasks"
    assert CANARY not in "".join(pages), "Flower"
    for path in ("/metrics", "/health/live", "/health/ready"):
        assert CANARY not in page(port, path), path
    assert CANARY not in json.dumps(call(port, "GET", "/v1/audit?limit=500", key=api_key)[1]), "the audit log"
    assert [body for body in traces if CANARY.encode() in body] == [], "traces"
    assert [name for name, said in stage.fleet.logs() if CANARY in said] == [], "logs"
    print(f"canary ({form}): {len(answers)} requests to {operations} operations, {len(every_task())} tasks")


# Not those of the other requests: the last doors take away what is there.
NAMES = {"agent": "eva", "user": "mia", "session": "s", "key": "thing:kettle", "name": "search_memory"}
STREAMS = 3
"""Operations at most that answer with a stream without an end."""

DEADLY = ("index-loop", "kill")
"""Ends of turns that are set aside, each in its own way."""

REFUSES_WORDS = """
    CREATE FUNCTION refuse_words() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN RAISE EXCEPTION 'not these words: %', NEW.text; END $$;
    CREATE TRIGGER refuse_words BEFORE INSERT ON memories FOR EACH ROW
    WHEN (NEW.text LIKE '%harm=database%') EXECUTE FUNCTION refuse_words()"""


def every_task() -> set[str]:
    """The tasks of the product, by the Celery application itself."""
    app.loader.import_default_modules()
    return {name for name in app.tasks if name.startswith("memory.")}


def tasks_of(flower: int) -> set[str]:
    return {task["name"] for task in json.loads(page(flower, TASKS) or "{}").values()}


def send_every_task(stage: Stage) -> None:
    """Each with ids of its form that are nobody's, and with words for fields that it does not know."""
    settings = stage.runtime.settings
    producer = Celery("producer", set_as_current=False)
    producer.conf.update(broker_settings(settings.broker_address, settings.redis.prefix))
    ids = {"run_id": str(uuid4()), "session_id": 2**40, "scope_id": 2**40}
    for name in sorted(every_task() - {RECORD_TURN}):
        takes = signature(app.tasks[name].run).parameters
        fields = {field: value for field, value in ids.items() if field in takes}
        producer.send_task(name, kwargs=fields, queue=ROUTES[name])
        producer.send_task(name, kwargs={"surprise": 7}, queue=ROUTES[name])
    producer.close()


def set_aside(stage: Stage) -> int:
    with stage.owner.connect() as connection:
        return int(
            connection.execute(text("SELECT count(*) FROM turns WHERE failed_at IS NOT NULL")).scalar_one()
        )


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
    for harm in ("words", "refused", "index-words", *DEADLY):
        yield "POST", turns, {"role": "user", "content": f"{SAID} harm={harm}"}
    memories = "/v1/agents/ada/users/bob/memories"
    yield "POST", memories, {"kind": "fact", "text": SAID, "importance": SAID}
    yield "POST", memories, {"kind": CANARY, "text": SAID}
    yield "POST", memories, {"kind": "fact", "text": f"{SAID} harm=database"}
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
