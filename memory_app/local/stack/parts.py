"""The parts of the product as child processes: command, environment, how to tell that one is ready, how to stop it.

They are listed in the order in which they are stopped: the API first, so that nothing new comes in, workers last.
"""

from __future__ import annotations

import http.client
import signal
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from memory_app import queue
from memory_app.errors import Transient
from memory_app.jobs import workers_ping
from memory_app.local.stack import commands, ports
from memory_app.local.stack.child import Part
from memory_app.settings import Settings

API, BEAT, FINDER, FLOWER, WORKER, MODEL_WORKER, MAINTENANCE_WORKER = PARTS = (
    "api",
    "beat",
    "finder",
    "flower",
    "worker",
    "worker-model",
    "worker-maintenance",
)

LOCAL_WORKER = "worker-local"
"""One worker of all queues."""

LOCAL = (FINDER, LOCAL_WORKER)
"""What a program on this machine needs beside the servers: without the API, and with the least memory."""

NEEDED = tuple(part for part in PARTS if part != FLOWER)
"""The parts without which the product does not work."""

# Celery's warm shutdown: no new task, and the running ones end. Then the soft one: they are interrupted, and their
# rows stay due.
WORKER_STOP = ((signal.SIGTERM, 25.0), (signal.SIGQUIT, 10.0))

WORKERS = 3
"""Workers that answer when all are there."""

# Warm, for nearly as long as a call of the model may take. Threads cannot be interrupted, so a soft shutdown would
# bring nothing.
MODEL_WORKER_STOP = ((signal.SIGTERM, 35.0),)


@dataclass(frozen=True, slots=True)
class Plan:
    """What the parts have in common. ``environment`` is that of every part."""

    settings: Settings
    api_port: int
    flower_port: int
    flower_login: str = field(repr=False)
    schedule: Path
    concurrency: int
    environment: Mapping[str, str] = field(repr=False)


def make_parts(plan: Plan) -> tuple[Part, ...]:
    """All parts, in the order of stopping."""
    environment = common_environment(plan)
    settings = plan.settings
    start = time.time()
    return (
        Part(
            API,
            commands.serve(),
            environment=_api_environment(plan, environment),
            is_ready=_answers(plan.api_port, "/health/ready"),
        ),
        Part(
            BEAT,
            commands.beat(plan.schedule),
            environment=environment,
            is_ready=lambda: _written_since(plan.schedule, start),
        ),
        Part(FINDER, commands.finder(), environment=environment, is_ready=lambda: True),
        Part(
            FLOWER,
            commands.flower(),
            environment=_flower_environment(plan, environment),
            is_ready=_answers(plan.flower_port, "/healthcheck"),
        ),
        Part(
            WORKER,
            commands.worker((queue.INGEST,), name="memory", concurrency=plan.concurrency),
            environment=environment,
            is_ready=lambda: _are_consumed(queue.INGEST, settings),
            stop_signals=WORKER_STOP,
        ),
        Part(
            MODEL_WORKER,
            commands.worker(
                (queue.MODEL,), name="memory-model", concurrency=plan.settings.worker.model_threads
            ),
            environment=environment,
            is_ready=lambda: _are_consumed(queue.MODEL, settings),
            stop_signals=MODEL_WORKER_STOP,
        ),
        Part(
            MAINTENANCE_WORKER,
            # One process: its jobs are long and heavy, and must not slow the others down.
            commands.worker((queue.MAINTENANCE,), name="memory-maintenance", concurrency=1),
            environment=_owner_environment(plan, environment),
            is_ready=lambda: _are_consumed(queue.MAINTENANCE, settings),
            stop_signals=WORKER_STOP,
        ),
        Part(
            LOCAL_WORKER,
            commands.worker(queue.QUEUES, name="memory-local", concurrency=plan.concurrency),
            environment=_owner_environment(plan, environment),
            is_ready=lambda: _are_consumed(queue.MAINTENANCE, settings, expected=1),
            stop_signals=WORKER_STOP,
        ),
    )


def common_environment(plan: Plan) -> dict[str, str]:
    """The environment of all parts, with the addresses of the servers."""
    environment = dict(plan.environment)
    # The owner's connection is handed on only to the parts that use it.
    environment.pop("MEMORY_DATABASE__OWNER_URL", None)
    redis_url = plan.settings.redis.url
    secret = plan.settings.erasure.secret
    if secret is not None:
        environment["MEMORY_ERASURE__SECRET"] = secret.get_secret_value()
    return environment | {
        "MEMORY_DATABASE__URL": plan.settings.database.url.get_secret_value(),
        "MEMORY_REDIS__URL": redis_url.get_secret_value(),
        "MEMORY_BROKER__URL": (plan.settings.broker.url or redis_url).get_secret_value(),
        "MEMORY_DATA_FOLDER": str(plan.settings.data_folder),
        "PYTHONUNBUFFERED": "1",
    }


def _api_environment(plan: Plan, environment: Mapping[str, str]) -> dict[str, str]:
    """With the port, and the owner's connection if the API uses it."""
    http, owner_url = plan.settings.http, plan.settings.database.owner_url
    own = {"MEMORY_HTTP__PORT": str(plan.api_port)}
    # Where it serves without a key, or to other machines, it first looks whether there is a key at all.
    if owner_url is not None and (http.allow_anonymous_tenant or http.host != ports.HOST):
        own["MEMORY_DATABASE__OWNER_URL"] = owner_url.get_secret_value()
    return {**environment, **own}


def _owner_environment(plan: Plan, environment: Mapping[str, str]) -> dict[str, str]:
    """With the owner's connection: only the owner of a table may build the search indexes of a big scope."""
    owner_url = plan.settings.database.owner_url
    if owner_url is None:
        return dict(environment)
    return {**environment, "MEMORY_DATABASE__OWNER_URL": owner_url.get_secret_value()}


def _flower_environment(plan: Plan, environment: Mapping[str, str]) -> dict[str, str]:
    """Loopback, with a login, and nothing can be changed through it."""
    return {
        **environment,
        "FLOWER_ADDRESS": ports.HOST,
        "FLOWER_PORT": str(plan.flower_port),
        "FLOWER_BASIC_AUTH": plan.flower_login,
        "FLOWER_READ_ONLY": "true",
    }


def _answers(port: int, path: str) -> Callable[[], bool]:
    """Whether an HTTP server answers 200."""

    def ask() -> bool:
        with closing(http.client.HTTPConnection(ports.HOST, port, timeout=5)) as connection:
            try:
                connection.request("GET", path)
                return connection.getresponse().status == 200
            except (OSError, http.client.HTTPException):
                return False

    return ask


def _written_since(schedule: Path, start: float) -> bool:
    """Whether Beat has opened its schedule."""
    # The library behind it may add a suffix to the name. Some file systems count whole seconds only.
    files = schedule.parent.glob(f"{schedule.name}*")
    return any(path.stat().st_mtime >= start - 1 for path in files)


def _are_consumed(queue_name: str, settings: Settings, *, expected: int = WORKERS) -> bool:
    """Whether a worker answers that takes from this queue."""
    try:
        workers = workers_ping.consumers(
            settings.broker_address, prefix=settings.redis.prefix, timeout_seconds=0.5, expected=expected
        )
    except Transient:
        return False
    return any(queue_name in queues for queues in workers.values())
