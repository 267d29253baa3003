"""What people say stays out of logs, Redis, Flower and answers to errors, on good paths and on bad ones (I7).

The requests are made from the API's own description and the messages from the tasks that the workers know, so that a
new field, a new operation and a new task are among them by themselves.
"""

from __future__ import annotations

import http.client
import json
from base64 import b64encode
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from inspect import signature
from threading import Event, Thread
from typing import Any
from uuid import uuid4

import all_shards
import pytest
from celery import Celery
from free_ports import free_port
from harness import oracle
from harness.api import ask, is_live
from harness.doors import Doors, Request
from harness.fleet import is_ready
from harness.model import ASK_SOON
from harness.page_doors import PageVisitor
from harness.parrot import parrot
from harness.stage import Stage
from harness.waiting import wait_until
from redis import Redis
from redis.exceptions import RedisError
from sqlalchemy import Engine, text
from trace_receiver import receiving

from memory_app.agents.agents import AgentChange, change_agent
from memory_app.queue import INGEST, RECORD_TURN, ROUTES, broker_settings
from memory_app.records.scope import Scope
from memory_app.tenancy.rows import keys
from workers.app import app

pytestmark = pytest.mark.faults

CANARY = "zanzibar-canary-7731"
SAID = f"I bought a kettle from {CANARY}@example.org with the number 1 in Lima."
SECONDS = 150
"""Most that is waited for one thing."""

TASKS = "/api/tasks?limit=1000"
PATH = "/v1/agents/ada/users/bob/sessions/s"
NAMES = {
    "agent": "eva",
    "user": "mia",
    "session": "s",
    "key": "thing:kettle",
    "webhook": str(uuid4()),
    "to": "ada",
    "name": "search_memory",
    "id": str(uuid4()),
}
"""Of the generated requests. An error may repeat whose session, person or agent the caller asked for."""

DEADLY = ("index-loop", "kill")
"""Ends of turns that are set aside, each in its own way."""

REFUSES_WORDS = """
    CREATE FUNCTION public.refuse_words() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN RAISE EXCEPTION 'not these words: %', NEW.text USING ERRCODE = 'check_violation'; END $$"""
REFUSING = """
    CREATE TRIGGER refuse_words BEFORE INSERT ON {table} FOR EACH ROW
    WHEN (NEW.text LIKE '%harm=database%') EXECUTE FUNCTION public.refuse_words()"""


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("form", ["json", "console"])
def test_F29_nothing_that_was_said_leaves_the_database(stage: Stage, owner: Engine, form: str) -> None:
    with owner.begin() as connection:
        _, api_key = keys.create(connection, "acme", rights=keys.RIGHTS)
        victim, _ = keys.create(connection, "acme", label="to be rotated")
        # A database that quotes what it refuses.
        connection.execute(text(REFUSES_WORDS))
        for table in all_shards.tables("memories"):
            connection.execute(text(REFUSING.format(table=table)))
        webhook = connection.execute(text(WEBHOOK), {"tenant": stage.tenant}).scalar_one()
    for agent, policy in (("eva", dict(ASK_SOON)), ("ada", {})):
        change = AgentChange(frozenset({"policy"}), policy=policy)
        change_agent(stage.runtime, stage.tenant, Scope(agent), change=change)
    with ExitStack() as stack:
        receiver, model = stack.enter_context(receiving()), stack.enter_context(parrot())
        port, flower = start(stage, form, traces=receiver.address, model=model.base_url)
        client = Client(port, api_key)
        _, description = client.ask("GET", "/openapi.json", None)

        # when turns are taken, repeated, refused, failed, and end in exceptions that quote them; at every door
        with overheard(stage.redis_url) as commands:
            for request in requests():
                client.ask(*request)
            doors = Doors(json.loads(description), SAID, NAMES, ids_of(client, str(victim), str(webhook)))
            last = [(method, path) for method, path in doors.operations() if method == "delete"]
            for method, template in doors.operations():
                if (method, template) not in last:
                    client.go_through(doors, method, template)
            # and every task runs, with what it wants and with words instead
            send_every_task(stage, {})
            wait_until(
                lambda: set_aside(stage) >= len(DEADLY), "the deadly turns are set aside", seconds=SECONDS
            )
            oracle.wait_for_quiet(stage.owner, seconds=SECONDS)
            visitor = PageVisitor(port, api_key, SAID, NAMES, doors.ids)
            visitor.go_through()
            oracle.wait_for_quiet(stage.owner, seconds=SECONDS)
            for method, template in last:
                client.go_through(doors, method, template)
            oracle.wait_for_quiet(stage.owner, seconds=SECONDS)
            with stage.redis() as redis:
                stored = [everything(redis, key) for key in redis.scan_iter("*")]
        # what comes over the broker passes through Redis, and leaves no trace elsewhere
        send_every_task(stage, {CANARY: SAID, "scope_id": SAID, "run_id": [SAID]})
        send_over_the_broker(stage, api_key)
        wait_until(lambda: is_relayed(stage), "the turn over the broker is applied", seconds=SECONDS)
        wait_until(lambda: tasks_of(flower) >= every_task(), "Flower heard of every task", seconds=SECONDS)
        with stage.redis() as redis:
            stored += [everything(redis, key) for key in redis.scan_iter("*")]
        wait_until(lambda: len(receiver.spans()) > 100, "traces arrive", seconds=SECONDS)
        traces = list(receiver.bodies)
        listings = {path: client.ask("GET", path, None)[1] for path in LISTINGS}
        listings["events as a stream"] = streamed(port, api_key)
        listings["/v1/keys"] = unnamed(listings["/v1/keys"])
        pages = {path: page(flower, path) for path in (TASKS, "/api/workers", "/tasks", "/broker")}
        pages |= {path: page(port, path) for path in ("/metrics", "/health/live", "/health/ready")}

    # then the canary is nowhere but in the database
    assert client.errors_with(CANARY) == [], "error bodies"
    assert [shape for shape in forms(CANARY) if shape in "".join(commands)] == [], "what Redis was told"
    assert [key for key, value in stored if CANARY in f"{key!r}{value!r}"] == [], "what Redis keeps"
    assert [path for path, shown in pages.items() if CANARY in shown] == [], "Flower, metrics, health"
    assert [path for path, shown in listings.items() if CANARY in shown] == [], "listings"
    assert [body for body in traces if CANARY.encode() in body] == [], "traces"
    assert [name for name, said in stage.fleet.logs() if CANARY in said] == [], "logs"
    # and the doors were gone through, to their ends and against their walls
    operations = list(doors.operations())
    assert {(method, path) for method, path in operations} <= client.succeeded.keys() | client.failed.keys()
    assert len(client.succeeded) >= 50, sorted(set(operations) - client.succeeded.keys())
    assert len(client.failed) >= 40
    assert visitor.statuses[200] > 30 and visitor.statuses[303] > 10 and visitor.statuses[422] > 30
    assert visitor.statuses[500] == 0
    assert all(model.quoted.get(str(kind)) for kind in (500, 429, 400, "not json", "wrong schema"))
    assert len(json.loads(listings["/v1/refused"])["messages"]) >= 1
    assert listings["events as a stream"].count("data:") > 20
    assert len(json.loads(listings["/v1/failed?limit=200"])["turns"]) >= len(DEADLY)
    print(
        f"canary ({form}): {sum(client.statuses.values())} requests to {len(operations)} operations "
        f"{dict(sorted(client.statuses.items()))}, {len(every_task())} tasks, model {model.quoted}, "
        f"the page {dict(sorted(visitor.statuses.items()))}, "
        f"{len(commands)} commands of Redis, {len(traces)} exports of traces"
    )


LISTINGS = (
    "/v1/refused",
    "/v1/failed?limit=200",
    "/v1/audit?limit=500",
    "/v1/usage",
    "/v1/keys",
    "/v1/limits",
    "/v1/events?after=oldest&limit=500",
)
"""What an operator reads of the people of a tenant."""


WEBHOOK = """INSERT INTO webhooks (tenant_id, url, salt, made_with, position)
    VALUES (:tenant, 'https://hooks.invalid/', 'salt', 'another', '00000000-0000000000000001-0-' || repeat('0', 32))
    RETURNING id"""
"""A webhook of which no process has the secret: over HTTP only one with an address that resolves can be made."""


def unnamed(listing: str) -> str:
    """The listing of keys, without whom each is for: the page makes one for an agent whose name is the canary."""
    return json.dumps([{**key, "agent": None, "user": None} for key in json.loads(listing)["keys"]])


def streamed(port: int, key: str) -> str:
    """The events since the beginning, as server-sent events, until none has come for a while."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS)
    headers = {"Authorization": f"Bearer {key}", "Accept": "text/event-stream"}
    connection.request("GET", "/v1/events?after=oldest", headers=headers)
    answer = connection.getresponse()
    lines: list[bytes] = []
    while True:
        line = answer.readline()
        # Between events nothing but a sign of life is sent.
        if not line or line.startswith(b":"):
            break
        lines.append(line)
    connection.close()
    return b"".join(lines).decode()


class Client:
    """Asks the API, and keeps what was refused."""

    def __init__(self, port: int, key: str) -> None:
        self.port, self.key = port, key
        self.statuses: Counter[int] = Counter()
        self.refusals: list[tuple[str, str, int, str]] = []
        self.succeeded: Counter[tuple[str, str]] = Counter()
        self.failed: Counter[tuple[str, str]] = Counter()

    def ask(self, method: str, path: str, body: Any) -> tuple[int, str]:
        status, answer = ask(self.port, method, path, key=self.key, body=body)
        self.statuses[status] += 1
        if status >= 400:
            self.refusals.append((method, path, status, answer))
        return status, answer

    def go_through(self, doors: Doors, method: str, template: str) -> None:
        """Everything that there is to ask of one operation."""
        for request in doors.requests(method, template):
            status, _ = self.ask(*request)
            counts = self.succeeded if status < 400 else self.failed
            counts[method, template] += 1

    def errors_with(self, words: str) -> list[tuple[str, str, int, str]]:
        return [(*refusal[:3], refusal[3][:600]) for refusal in self.refusals if words in refusal[3]]


def start(stage: Stage, form: str, *, traces: str, model: str) -> tuple[int, int]:
    """All processes, as loud as they can be; the ports of the API and of Flower."""
    port, flower = free_port(), free_port()
    settings = {
        "MEMORY_LOG__LEVEL": "DEBUG",
        "MEMORY_LOG__FORM": form,
        "MEMORY_TRACING__ENDPOINT": traces,
        "MEMORY_TRACING__RATIO": "1",
        "OTEL_BSP_SCHEDULE_DELAY": "100",
        "MEMORY_CHAT__BASE_URL": model,
        "MEMORY_CHAT__MODEL": "parrot",
        "MEMORY_CHAT__REST_SECONDS": "1",
        "MEMORY_EXTRACT__RETRY_MAX_SECONDS": "1",
    }
    stage.fleet.api(port, **settings)
    stage.fleet.finder(**settings)
    worker = stage.fleet.worker(app="harness.rigged", RIGGED_TASK_SECONDS="6", **settings)
    options = ("flower", "--address=127.0.0.1", f"--port={flower}")
    stage.fleet.start(
        "flower",
        ("-m", "workers.flower", "-A", "workers.app", *options),
        FLOWER_UNAUTHENTICATED_API="true",
        **settings,
    )
    wait_until(lambda: is_ready(worker), "the worker is ready", seconds=SECONDS)
    wait_until(lambda: is_live(port), "the API answers", seconds=SECONDS)
    wait_until(lambda: page(flower, "/api/workers"), "Flower answers", seconds=SECONDS)
    return port, flower


def ids_of(client: Client, victim: str, webhook: str) -> dict[str, str]:
    """Ids of what Eva knows of Mia, by the part of an address that they belong to; a key and a webhook to rotate."""
    scope = "/v1/agents/eva/users/mia"

    def id_of(path: str, body: Any) -> str:
        status, answer = client.ask("POST", path, body)
        assert status < 300, answer
        found = json.loads(answer)
        return str(found["tickets"][0]["id"] if "tickets" in found else found["id"])

    turn = id_of(f"{scope}/sessions/s/turns", {"role": "user", "content": SAID})
    memory = id_of(f"{scope}/memories", {"kind": "fact", "text": SAID})
    gone = id_of(f"{scope}/sessions/gone/turns", {"role": "user", "content": SAID})
    return {
        "/memories/": memory,
        "/turns/": turn,
        "/trace/": turn,
        "/checkpoints/": id_of(f"{scope}/checkpoints", {}),
        "/runs/": id_of(f"{scope}/sleep", {}),
        "/erasures/": erasure_of(client, gone),
        "/keys/": victim,
        "/webhooks/": webhook,
    }


def erasure_of(client: Client, turn: str) -> str:
    _, answer = client.ask("DELETE", f"/v1/turns/{turn}", None)
    return str(json.loads(answer)["report"]["erasure"])


def every_task() -> set[str]:
    """The tasks of the product, by the Celery application itself."""
    app.loader.import_default_modules()
    return {name for name in app.tasks if name.startswith("memory.")}


def tasks_of(flower: int) -> set[str]:
    return {task["name"] for task in json.loads(page(flower, TASKS) or "{}").values()}


@contextmanager
def producer_of(stage: Stage) -> Iterator[Celery]:
    settings = stage.runtime.settings
    producer = Celery("producer", set_as_current=False)
    producer.conf.update(broker_settings(settings.broker_address, settings.redis.prefix))
    try:
        yield producer
    finally:
        producer.close()


def send_every_task(stage: Stage, fields: dict[str, Any]) -> None:
    """Each with ``fields``; without any, with ids of its form that are nobody's."""
    ids = {"run_id": str(uuid4()), "session_id": 2**40, "scope_id": 2**40}
    with producer_of(stage) as producer:
        for name in sorted(every_task() - {RECORD_TURN}):
            takes = signature(app.tasks[name].run).parameters
            own = {field: value for field, value in ids.items() if field in takes}
            producer.send_task(name, kwargs=fields or own, queue=ROUTES[name])


def set_aside(stage: Stage) -> int:
    statement = text("SELECT count(*) FROM turns WHERE failed_at IS NOT NULL")
    with stage.owner.connect() as connection:
        return int(connection.execute(statement).scalar_one())


def requests() -> Iterator[Request]:
    """Good and bad requests, all with the canary in them, of which some do harm to the worker."""
    turns = f"{PATH}/turns"
    yield "POST", turns, {"role": "user", "content": SAID, "idempotency_key": "one"}
    yield "POST", turns, {"role": "user", "content": SAID, "idempotency_key": "one"}
    yield "POST", turns, {"role": "user", "content": f"{SAID} Not.", "idempotency_key": "one"}
    yield "POST", turns, {"role": CANARY, "content": SAID}
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
    """A good message, bad ones, and one from before its person was erased."""
    good = {
        "api_key": api_key,
        "agent": "ada",
        "user": "bob",
        "session": "b",
        "role": "user",
        "content": SAID,
    }
    before = (datetime.now(UTC) - timedelta(hours=1)).isoformat()
    late = good | {"agent": "eva", "user": "mia", "sent_at": before}
    with producer_of(stage) as producer:
        for fields in (good, good | {"role": CANARY}, good | {"api_key": CANARY}, good | {CANARY: 1}, late):
            producer.send_task(RECORD_TURN, kwargs=fields, queue=INGEST)


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


def everything(redis: Redis, key: bytes) -> tuple[bytes, object]:
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
