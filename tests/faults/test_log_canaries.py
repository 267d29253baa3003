"""F29, the half about logs: whatever falls over, in whatever library, nothing is written but types, places and ids."""

from __future__ import annotations

import subprocess
import sys
from uuid import uuid4

import pytest
from celery import Celery
from celery.events.event import get_exchange
from free_ports import free_port
from harness.canary import CANARY, KINDS, MAIN_FALLS
from harness.fleet import ROOT, Fleet, Member, is_ready
from harness.waiting import wait_until
from kombu import Producer

from memory_app.queue import INGEST, broker_settings
from memory_app.settings import Settings

pytestmark = pytest.mark.faults

FORMS = ("json", "console")
SILENT = {"reject", "ignore", "retry", "nothing", "exit"}
"""Kinds of ending of which Celery tells at the level DEBUG only: those that are no failure, and an exit."""

KINDS_AND_PLACES = (
    ("own_event", "ZeroDivisionError", "own_logger"),
    ("a constant text", "FloatingPointError", "foreign_logger"),
    ("failed with FloatingPointError after 7 of …", "somebody.else"),
    ("a deaf logger says …", "BufferError"),
    ("LookupError < JSONDecodeError", "chained", "raw_decode"),
    ("ValidationError", "pydantic.main"),
    ("ExceptionGroup < RecursionError",),
    ("IntegrityError 23505 < UniqueViolation 23505", "psycopg.cursor"),
    ("DataError 22P02 < InvalidTextRepresentation 22P02", "sqlalchemy.engine"),
    ("ProgrammingError 42703 < UndefinedColumn 42703",),
    ("DecodeError < JSONDecodeError", "json.decoder"),
    ("HTTPStatusError", "raise_for_status"),
    ("BadRequestError 400", "openai._base_client"),
    ("InterruptedError", "uncaught_exception", "fall"),
    ("exception calling callback for …", "InterruptedError"),
    ("exception_ignored", "ProcessLookupError", "__del__"),
    ("BlockingIOError", "asyncio", "fall"),
    ("ConnectionAbortedError", "call"),
    ("Exception in ASGI application", "NotADirectoryError", "falling_app"),
    ("Exception in 'lifespan' protocol", "IsADirectoryError", "falling_lifespan"),
    ("uncaught_exception", "ArithmeticError < KeyError", "main"),
)
"""Of each crash a line with all these words."""

FALLING_COMMAND = f"""
from memory_app.main import cli, commands

def fall():
    words = "{CANARY}"
    raise ArithmeticError(words)

commands.app = fall
cli.main()
"""

WARNINGS = (("UserWarning", "crashes.py"), ("FutureWarning", "crashes.py"))


@pytest.mark.parametrize(
    ("form", "level"),
    [
        pytest.param(form, level, marks=() if level == "DEBUG" else pytest.mark.slow)
        for form in FORMS
        for level in ("DEBUG", "INFO", "WARNING", "ERROR")
    ],
)
def test_F29_a_crash_of_a_library_is_logged_by_types_and_places(
    environment: dict[str, str], settings: Settings, form: str, level: str
) -> None:
    owner_url = settings.database.owner_url
    assert owner_url is not None
    ended = subprocess.run(
        [sys.executable, "-m", "harness.crashes", form, level],
        cwd=ROOT,
        env={
            **environment,
            "PYTHONPATH": "tests/faults",
            "MEMORY_DATABASE__URL": owner_url.get_secret_value(),
        },
        capture_output=True,
        encoding="utf-8",
        timeout=100,
    )

    written = ended.stdout + ended.stderr
    assert ended.returncode != 0
    expect(written, *KINDS_AND_PLACES, *(WARNINGS if level != "ERROR" else ()))


@pytest.mark.parametrize(
    ("form", "level", "pool"),
    [
        pytest.param(
            form, level, pool, marks=() if (form, pool) == ("console", "prefork") else pytest.mark.slow
        )
        for form in FORMS
        for level in ("DEBUG", "INFO")
        for pool in ("prefork", "threads")
        if level == "DEBUG" or pool == "prefork"
    ],
)
def test_F29_a_crash_of_a_worker_is_logged_by_types_and_places(
    fleet: Fleet, settings: Settings, form: str, level: str, pool: str
) -> None:
    chosen = {"MEMORY_LOG__FORM": form, "MEMORY_LOG__LEVEL": level}
    command = ("-m", "celery", "-A", "harness.crashing", "worker", "-Q", INGEST, "-c", "1", "--pool", pool)
    worker = fleet.start("worker", command, **chosen)
    wait_until(lambda: is_ready(worker), "the worker is ready", seconds=60)

    ids = send_crashes(settings, pool)

    last = list(ids)[-1]
    wait_until(lambda: said_of_failure(worker, last), "the last task is done", seconds=60)
    expect(
        worker.said(),
        ("ZeroDivisionError < LookupError", "harness.crashing", "crash"),
        ("ExceptionGroup < LookupError", "harness.crashing"),
        ("DataError 22P02 < InvalidTextRepresentation 22P02", "psycopg.cursor"),
        ("Received unregistered task of type KeyError",),
        ("Can't decode message body: DecodeError < JSONDecodeError",),
        ("task_failed", "not_found"),
        *((task_id,) for task_id, kind in ids.items() if level == "DEBUG" or kind not in SILENT),
    )


@pytest.mark.parametrize("form", FORMS)
def test_F29_a_crash_of_a_workers_main_process_logs_types_and_places(fleet: Fleet, form: str) -> None:
    worker = fleet.start(
        "worker",
        ("-m", "celery", "-A", "harness.crashing", "worker", "-Q", INGEST, "-c", "1"),
        **{"MEMORY_LOG__FORM": form, "MEMORY_LOG__LEVEL": "DEBUG", MAIN_FALLS: "1"},
    )
    wait_until(lambda: not worker.is_alive(), "the worker has fallen over", seconds=60)

    expect(worker.said(), ("Unrecoverable error", "ArithmeticError < KeyError", "harness.crashing", "start"))


@pytest.mark.parametrize("form", FORMS)
def test_F29_events_that_flower_cannot_read_log_types_and_places(
    fleet: Fleet, settings: Settings, form: str
) -> None:
    port = free_port()
    options = ("flower", "--address=127.0.0.1", f"--port={port}", "--logging=debug")
    flower = fleet.start(
        "flower",
        ("-m", "workers.flower", "-A", "harness.crashing", *options),
        MEMORY_LOG__FORM=form,
        FLOWER_UNAUTHENTICATED_API="true",
    )
    wait_until(lambda: "Capturing events" in flower.said(), "Flower listens", seconds=60)

    def is_met() -> bool:
        send_event(settings)  # Again and again: who listens when is not said.
        return "Can't decode message body" in flower.said()

    wait_until(is_met, "Flower stumbles", seconds=60)
    expect(flower.said(), ("Can't decode message body: DecodeError < JSONDecodeError", "kombu"))


def test_F29_a_crash_of_a_command_is_one_line_without_words(environment: dict[str, str]) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", FALLING_COMMAND, "fall"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        encoding="utf-8",
        timeout=60,
    )

    assert ended.returncode == 1
    assert len(ended.stderr.splitlines()) == 1
    expect(ended.stdout + ended.stderr, ("command_broke", "ArithmeticError", "fall"))


def expect(written: str, *lines: tuple[str, ...]) -> None:
    """The canary is nowhere, nor the list of local variables; and for each of ``lines`` there is one with its words."""
    assert [line for line in written.splitlines() if CANARY in line or "locals" in line] == []
    plain = [line.replace("\\u2026", "…") for line in written.splitlines()]
    missing = [words for words in lines if not any(all(word in line for word in words) for line in plain)]
    assert missing == []


def said_of_failure(worker: Member, task_id: str) -> bool:
    return any(task_id in line and "task_failed" in line for line in worker.said().splitlines())


def send_crashes(settings: Settings, pool: str) -> dict[str, str]:
    """Messages that the consumer and kombu stumble over, then every failure of a task of ours and of a plain one.

    The last task is one of ours that fails as expected. Ids of the tasks that are known, and how each fails.
    """
    producer = Celery("producer", set_as_current=False)
    producer.conf.update(broker_settings(settings.broker_address, settings.redis.prefix))
    producer.send_task(CANARY, args=(CANARY,), kwargs={CANARY: CANARY}, queue=INGEST)
    producer.send_task("crash.plain", args=(CANARY,) * 9, queue=INGEST)
    with producer.producer_pool.acquire() as raw:
        raw.publish(CANARY, routing_key=INGEST, content_type="application/json", content_encoding="utf-8")
    ids: dict[str, str] = {}

    def send(task: str, kind: str) -> None:
        task_id = str(uuid4())
        ids[task_id] = kind
        producer.send_task(task, kwargs={"kind": kind, "words": CANARY}, queue=INGEST, task_id=task_id)

    for task in ("crash.ours", "crash.plain"):
        for kind in KINDS:
            if (task, kind) == ("crash.plain", "memory") or (pool, kind) == ("threads", "exit"):
                continue  # Celery ends the worker, or loses the thread; our tasks see to that, or do no such thing.
            send(task, kind)
    send("crash.ours", "expected")
    producer.close()
    return ids


def send_event(settings: Settings) -> None:
    """An event of a task that cannot be read."""
    producer = Celery("producer", set_as_current=False)
    producer.conf.update(broker_settings(settings.broker_address, settings.redis.prefix))
    with producer.connection_for_write() as connection, connection.channel() as channel:
        exchange = get_exchange(connection, name=producer.conf.event_exchange)
        Producer(channel, exchange).publish(
            CANARY, routing_key="task.failed", content_type="application/json", content_encoding="utf-8"
        )
    producer.close()
