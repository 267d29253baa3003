"""The bounds of a worker whose tasks are threads of one process, where Celery's own limits do not reach.

A thread cannot be ended. So when a task has outlived its time limit, or the process has grown beyond its memory limit,
the whole process goes: it takes no new task, lets the others end, and then leaves whatever still hangs. Whoever
supervises it starts another; what hung was counted as started and is tried alone in a process of its own.
"""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass, field
from threading import Event, Lock, Thread

import psutil
import structlog
from celery import Celery

log = structlog.get_logger(__name__)

LOOK_SECONDS = 1.0

GRACE_SECONDS = 45.0
"""Longer than a question to a model with its repair."""


@dataclass(slots=True)
class Bounds:
    """Tasks under way and when each must have ended, by the monotonic clock. Safe between threads."""

    memory_limit_kb: int
    ends_at: dict[str, float] = field(default_factory=dict)
    over: Event = field(default_factory=Event)
    _lock: Lock = field(default_factory=Lock)

    def began(self, task_id: str, seconds: float) -> None:
        with self._lock:
            self.ends_at[task_id] = time.monotonic() + seconds

    def ended(self, task_id: str) -> None:
        with self._lock:
            self.ends_at.pop(task_id, None)

    def broken(self) -> str | None:
        """Which bound does not hold any more, in a word."""
        with self._lock:
            if any(end < time.monotonic() for end in self.ends_at.values()):
                return "time"
        return "memory" if _resident_kb() > self.memory_limit_kb else None


def _resident_kb() -> int:
    """What this process holds now.

    Not its peak, as Celery takes it for processes that it forks: a peak is inherited from whoever started this process,
    and a notebook of two gigabytes would never get a worker that stays.
    """
    return int(psutil.Process().memory_info().rss) // 1024


def watch(app: Celery) -> Bounds:
    """Keep this process within its bounds, from a thread of its own, until `Bounds.over` is set."""
    bounds = Bounds(app.conf.worker_max_memory_per_child)
    Thread(target=_keep, args=(bounds,), name="bounds", daemon=True).start()
    return bounds


def _keep(bounds: Bounds) -> None:
    while not bounds.over.wait(LOOK_SECONDS):
        broken = bounds.broken()
        if broken is not None:
            log.error("worker_gives_up", bound=broken, tasks=len(bounds.ends_at))
            # A warm shutdown: no new tasks, and those under way may end.
            os.kill(os.getpid(), signal.SIGTERM)
            bounds.over.wait(GRACE_SECONDS)
            # An exit in order would wait for the thread that hangs.
            os._exit(1)
