"""What happens around a worker's life: logging set up by us, connections closed by the process that made them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from celery import Task
from celery.concurrency.thread import TaskPool as ThreadPool
from celery.signals import (
    celeryd_init,
    setup_logging,
    task_postrun,
    task_prerun,
    worker_process_init,
    worker_process_shutdown,
    worker_ready,
    worker_shutdown,
)
from celery.worker.consumer import Consumer

from memory_app import blas_threads
from memory_app.extraction.rules.packs.pack import check_packs
from memory_app.log import configure
from memory_app.queue import INGEST, MAINTENANCE, ROUTES
from memory_app.settings import Settings
from workers import parts, shared_data, threads
from workers.pacing import Rest
from workers.start import one_sentence, require_database


# Celery's signals carry no types: each decorator below says so to mypy.
@setup_logging.connect  # type: ignore[untyped-decorator]
def _set_up_logging(**_: Any) -> None:
    log = Settings().log
    configure(level=log.level, form=log.form, names=ROUTES.keys())


@celeryd_init.connect  # type: ignore[untyped-decorator]
def _look_at_database(**_: Any) -> None:
    """Before the pool: a worker with a wrong password would take hints for ever and do nothing."""
    with one_sentence():
        require_database()


@celeryd_init.connect  # type: ignore[untyped-decorator]
def _check_packs(**_: Any) -> None:
    """A broken language pack ends the start, and not the extraction of whoever writes in that language."""
    with one_sentence():
        check_packs()


@celeryd_init.connect  # type: ignore[untyped-decorator]
def _load_shared_data(options: Mapping[str, Any], **_: Any) -> None:
    """Before the fork: children share it, and one that takes another's place need not load it first."""
    with one_sentence():
        shared_data.load_weights()
    # A worker without a list of queues takes from all of them. What a language model reads, the rules do not.
    if INGEST in (options.get("queues") or [INGEST]):
        shared_data.load_languages()
    shared_data.settle()


@celeryd_init.connect  # type: ignore[untyped-decorator]
def _give_way(options: Mapping[str, Any], **_: Any) -> None:
    """Whoever waits for an answer goes before what nobody waits for. Said before the fork, so children inherit it."""
    if list(options.get("queues") or ()) != [MAINTENANCE]:
        return
    worker = Settings().worker
    os.nice(worker.maintenance_niceness)
    rest = Rest(worker.maintenance_rest)

    def start_child(**_: Any) -> None:
        parts.runtime().directory.servers.watch(rest.watch)

    # Signals hold their receivers weakly, and nobody else holds these.
    worker_process_init.connect(start_child, weak=False)
    task_prerun.connect(rest.begin_task, weak=False)
    task_postrun.connect(rest.end_task, weak=False)


@worker_process_init.connect  # type: ignore[untyped-decorator]
def _start_child(**_: Any) -> None:
    """Load the embedder before the first task, so that the first turn does not wait for it."""
    parts.start_alone()
    blas_threads.take_one()


@worker_ready.connect  # type: ignore[untyped-decorator]
def _start_threads(sender: Consumer, **_: Any) -> None:
    """The same where tasks are threads, which nothing but ourselves keeps within bounds."""
    if not isinstance(sender.pool, ThreadPool):
        return
    parts.runtime()
    blas_threads.take_one()
    bounds = threads.watch(sender.app)

    def begin(task_id: str, task: Task, **_: Any) -> None:
        bounds.began(task_id, task.time_limit or sender.app.conf.task_time_limit)

    def end(task_id: str, **_: Any) -> None:
        bounds.ended(task_id)

    task_prerun.connect(begin, weak=False)
    task_postrun.connect(end, weak=False)


@worker_process_shutdown.connect  # type: ignore[untyped-decorator]
@worker_shutdown.connect  # type: ignore[untyped-decorator]
def _end(**_: Any) -> None:
    parts.close()
