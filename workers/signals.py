"""What happens around a worker's life: logging set up by us, connections closed by the process that made them."""

from __future__ import annotations

from typing import Any

from celery.signals import setup_logging, worker_process_init, worker_process_shutdown, worker_shutdown

from memory_app.log import configure
from memory_app.settings import Settings
from workers import discretion, parts


@setup_logging.connect  # type: ignore[untyped-decorator]
def _set_up_logging(**_: Any) -> None:
    log = Settings().log
    configure(level=log.level, form=log.form)
    discretion.install()


@worker_process_init.connect  # type: ignore[untyped-decorator]
def _start_child(**_: Any) -> None:
    """Load the embedder before the first task, so that the first turn does not wait for it."""
    parts.close()
    parts.runtime()


@worker_process_shutdown.connect  # type: ignore[untyped-decorator]
@worker_shutdown.connect  # type: ignore[untyped-decorator]
def _end(**_: Any) -> None:
    parts.close()
