"""``serve``, ``worker``, ``beat``, ``finder``, ``flower``: one part each, for whoever runs them under a supervisor.

Each refuses to start on a Redis that waiting does not mend, and says why; one that is away is waited for.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path
from threading import Event
from typing import Annotated, NoReturn

import structlog
import typer

from memory_app import blas_threads, queue, runtime, tracing
from memory_app.dispatch import finder as finder_service
from memory_app.errors import Misconfigured
from memory_app.hot.permissions import Part
from memory_app.local.stack import commands
from memory_app.local.stack.folder import open_schedule
from memory_app.log import configure
from memory_app.main.server import serve as serve_http
from memory_app.ops import redis_checks, startup
from memory_app.settings import Settings

log = structlog.get_logger(__name__)

app = typer.Typer()

PROCESSES = 2
"""Of a worker that computes."""

FLOWER_DEFAULTS = {"FLOWER_ADDRESS": "127.0.0.1", "FLOWER_READ_ONLY": "true"}


@app.command()
def serve() -> None:
    """Serve the HTTP API."""
    settings = _logging_settings()
    redis_checks.admit(settings, Part.API)
    serve_http(settings)


@app.command()
def worker(
    queues: Annotated[
        list[str],
        typer.Option("--queue", help=f"One of {', '.join(queue.QUEUES)}; may be given several times."),
    ],
    concurrency: Annotated[
        int | None,
        typer.Option(
            min=1, help="Tasks at the same time. Default: 2 processes, or the threads of a setting."
        ),
    ] = None,
) -> None:
    """Run a Celery worker: of the queue model with threads, of others with a process for each task."""
    unknown = set(queues) - set(queue.QUEUES)
    if unknown:
        raise typer.BadParameter(
            f"unknown queue {sorted(unknown)[0]}; one of {', '.join(queue.QUEUES)}", param_hint="--queue"
        )
    settings = _logging_settings()
    redis_checks.admit(settings, Part.WORKER)
    # Threads where tasks wait for a model, processes where they compute.
    usual = settings.worker.model_threads if commands.waits(queues) else PROCESSES
    _become(commands.worker(queues, name="-".join(queues), concurrency=concurrency or usual))


@app.command()
def beat(
    schedule: Annotated[
        Path | None,
        typer.Option(
            help="File in which Beat remembers its last runs. Default: one of its own in the data folder.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Run Celery Beat; any number may run."""
    settings = _logging_settings()
    redis_checks.admit(settings, Part.BEAT)
    _become(commands.beat(schedule or open_schedule(settings.data_folder)))


@app.command()
def finder() -> None:
    """Look for due work every few seconds and send hints; any number may run."""
    settings = _logging_settings()
    redis_checks.admit(settings, Part.FINDER)
    tracing.start("finder", endpoint=settings.tracing.endpoint, ratio=settings.tracing.ratio)
    parts = runtime.build(settings)
    startup.check_database(parts.engine)
    blas_threads.take_one()
    stopping = Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopping.set())
    log.info("finder_started", every_seconds=parts.settings.finder.every_seconds)
    try:
        finder_service.run(parts, should_stop=stopping.wait)
    finally:
        parts.close()
        tracing.stop()


@app.command()
def flower() -> None:
    """Run Flower, read-only and on loopback unless FLOWER_… says otherwise. It needs a login."""
    if not os.environ.get("FLOWER_BASIC_AUTH"):
        raise Misconfigured(
            "FLOWER_BASIC_AUTH is not set; give a login as name:password, else everybody sees the work"
        )
    redis_checks.admit(_logging_settings(), Part.FLOWER)
    _become(commands.flower(), FLOWER_DEFAULTS)


def _logging_settings() -> Settings:
    settings = Settings()
    configure(level=settings.log.level, form=settings.log.form)
    return settings


def _become(command: tuple[str, ...], defaults: dict[str, str] | None = None) -> NoReturn:
    """Go on as this command, so that signals reach it directly."""
    # Our defaults first: what the operator has set goes before them.
    os.execve(command[0], command, {**(defaults or {}), **os.environ})
