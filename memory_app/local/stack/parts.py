"""The parts of the product as child processes: command, environment, how to tell that one is ready, how to stop it.

Listed in the order in which they are stopped: nothing new comes in first, workers finish last.
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

NEEDED = tuple(part for part in PARTS if part != FLOWER)
"""What the product does not work without."""

WORKER_STOP = ((signal.SIGTERM, 25.0), (signal.SIGQUIT, 10.0))
"""Warm: no new task, the running ones end. Then soft: they are interrupted; their rows stay due."""

WORKERS = 3
"""How many answer when all are there."""

MODEL_WORKER_STOP = ((signal.SIGTERM, 35.0),)
"""Warm, for nearly as long as a question may take. Threads cannot be interrupted: the rest ends with the process."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What the parts need to know. ``environment`` is what every part is started with."""

    settings: Settings
    api_port: int
    flower_port: int
    flower_login: str = field(repr=False)
    schedule: Path
    concurrency: int
    environment: Mapping[str, str] = field(repr=False)


def make_parts(plan: Plan) -> tuple[Part, ...]:
    """All parts, in the order of stopping."""
    environment = _environment(plan)
    settings = plan.settings
    began = time.time()
    return (
        Part(
            API,
            commands.serve(),
            _api_environment(plan, environment),
            _answers(plan.api_port, "/health/ready"),
        ),
        Part(BEAT, commands.beat(plan.schedule), environment, lambda: _written_since(plan.schedule, began)),
        Part(FINDER, commands.finder(), environment, lambda: True),
        Part(
            FLOWER,
            commands.flower(),
            _flower_environment(plan, environment),
            _answers(plan.flower_port, "/healthcheck"),
        ),
        Part(
            WORKER,
            commands.worker((queue.INGEST,), name="memory", concurrency=plan.concurrency),
            environment,
            lambda: _are_consumed(queue.INGEST, settings),
            WORKER_STOP,
        ),
        Part(
            MODEL_WORKER,
            commands.worker(
                (queue.MODEL,), name="memory-model", concurrency=plan.settings.worker.model_threads
            ),
            environment,
            lambda: _are_consumed(queue.MODEL, settings),
            MODEL_WORKER_STOP,
        ),
        Part(
            MAINTENANCE_WORKER,
            commands.worker((queue.MAINTENANCE,), name="memory-maintenance", concurrency=1),
            _owner_environment(plan, environment),
            lambda: _are_consumed(queue.MAINTENANCE, settings),
            WORKER_STOP,
        ),
    )


def _environment(plan: Plan) -> dict[str, str]:
    """The application's own door to the servers; the owner's is handed on only to who needs it."""
    kept = {name: value for name, value in plan.environment.items() if name != "MEMORY_DATABASE__OWNER_URL"}
    redis_url = plan.settings.redis.url
    return kept | {
        "MEMORY_DATABASE__URL": plan.settings.database.url.get_secret_value(),
        "MEMORY_REDIS__URL": redis_url.get_secret_value(),
        "MEMORY_BROKER__URL": (plan.settings.broker.url or redis_url).get_secret_value(),
        "MEMORY_DATA_FOLDER": str(plan.settings.data_folder),
        "PYTHONUNBUFFERED": "1",
    }


def _api_environment(plan: Plan, environment: Mapping[str, str]) -> dict[str, str]:
    """With the port, and with the owner's door where the API must look whether there is a key at all."""
    http, owner_url = plan.settings.http, plan.settings.database.owner_url
    own = {"MEMORY_HTTP__PORT": str(plan.api_port)}
    if owner_url is not None and (http.allow_anonymous_tenant or http.host != ports.HOST):
        own["MEMORY_DATABASE__OWNER_URL"] = owner_url.get_secret_value()
    return {**environment, **own}


def _owner_environment(plan: Plan, environment: Mapping[str, str]) -> dict[str, str]:
    """With the owner's door: search indexes of a big scope are built by who owns the table."""
    owner_url = plan.settings.database.owner_url
    return {**environment} | (
        {"MEMORY_DATABASE__OWNER_URL": owner_url.get_secret_value()} if owner_url is not None else {}
    )


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


def _written_since(schedule: Path, began: float) -> bool:
    """Whether Beat has opened its schedule, whose file may carry a suffix."""
    written = [path.stat().st_mtime for path in schedule.parent.glob(f"{schedule.name}*")]
    return any(at >= began - 1 for at in written)


def _are_consumed(wanted: str, settings: Settings) -> bool:
    """Whether a worker answers that takes from this queue."""
    try:
        found = workers_ping.consumers(
            settings.broker_address, prefix=settings.redis.prefix, timeout_seconds=0.5, expected=WORKERS
        )
    except Transient:
        return False
    return any(wanted in queues for queues in found.values())
