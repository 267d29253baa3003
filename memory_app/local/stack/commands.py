"""The command line of each part. The same whether ``memory up`` runs it or a person does by hand."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from memory_app import queue

CELERY = (sys.executable, "-m", "celery", "--app", "workers.app", "--quiet")
MEMORY = (sys.executable, "-m", "memory_app")


def worker(queues: Sequence[str], *, name: str, concurrency: int) -> tuple[str, ...]:
    """A Celery worker of ``queues``."""
    return (
        *CELERY,
        "worker",
        "--pool",
        # Tasks that only wait for a language model share a process; others would wait for Python's global lock.
        "threads" if waits(queues) else "prefork",
        "--queues",
        ",".join(queues),
        "--hostname",
        f"{name}@%h",
        "--concurrency",
        str(concurrency),
        # Workers need not know of each other: rows say what is to be done, and which of it is taken.
        "--without-gossip",
        "--without-mingle",
    )


def waits(queues: Sequence[str]) -> bool:
    """Whether a worker of these queues mostly waits for the network."""
    return set(queues) == {queue.MODEL}


def beat(schedule: Path) -> tuple[str, ...]:
    """Celery Beat. ``schedule`` is the file in which it remembers its last runs."""
    return (*CELERY, "beat", "--schedule", str(schedule), "--pidfile=")


def flower() -> tuple[str, ...]:
    """Flower; its settings, and above all its login, come from ``FLOWER_…`` in the environment."""
    return (sys.executable, "-m", "workers.flower", "--app", "workers.app", "--quiet", "flower")


def finder() -> tuple[str, ...]:
    return (*MEMORY, "finder")


def serve() -> tuple[str, ...]:
    return (*MEMORY, "serve")
