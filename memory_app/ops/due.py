"""Tell a backlog from a stand-still.

The age of the oldest work alone cannot tell: under a flood it grows although every worker is busy. So the question is
whether a worker has work of that kind in hand.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from memory_app import queue
from memory_app.jobs.life import FINDER, Heard, worker_of
from memory_app.jobs.rows.health import DueWork

# Hints, finders and Beat bring work to its worker within seconds.
LATE_AFTER_SECONDS = 60.0

# Between two pieces of work a worker has none in hand for a moment, so one look says too little.
LOOKS = 3
PAUSE_SECONDS = 0.3


@dataclass(frozen=True, slots=True)
class Lateness:
    """A kind of work that is late. ``is_stalled``: no worker has it in hand, and none will take it soon."""

    kind: str
    seconds: float
    is_stalled: bool

    @property
    def reason(self) -> str:
        what = "nobody is at it" if self.is_stalled else "there is a backlog"
        return f"the oldest has been due for {self.seconds:.0f} s; {what}"


def lateness(look: Callable[[], Sequence[DueWork]], heard: Mapping[str, Heard]) -> tuple[Lateness, ...]:
    """Every kind of work that is late. Looks again after a pause while a kind seems stalled, at most `LOOKS` times."""
    late = _late(look(), heard)
    for _ in range(LOOKS - 1):
        if not any(kind.is_stalled for kind in late):
            break
        time.sleep(PAUSE_SECONDS)
        late = _late(look(), heard)
    return late


def _late(works: Sequence[DueWork], heard: Mapping[str, Heard]) -> tuple[Lateness, ...]:
    late = [work for work in works if work.oldest_seconds > LATE_AFTER_SECONDS]
    return tuple(Lateness(work.kind, work.oldest_seconds, _is_stalled(work, heard)) for work in late)


def _is_stalled(work: DueWork, heard: Mapping[str, Heard]) -> bool:
    return not work.is_held and not _may_wait(work.kind, heard)


def _may_wait(kind: str, heard: Mapping[str, Heard]) -> bool:
    """May work of this kind wait for minutes although every worker is busy?"""
    if kind == "runs":
        # The worker for maintenance may be busy with what is no run, such as an index.
        return _is_busy(queue.MODEL, heard) or _is_busy(queue.MAINTENANCE, heard)
    if kind == "periodic jobs":
        # A finder looks for them every few seconds; Beat when its schedule says so, which may be at night alone.
        return FINDER not in heard or not heard[FINDER].living
    return False


def _is_busy(queue_name: str, heard: Mapping[str, Heard]) -> bool:
    """Has a worker of this queue a task in hand?"""
    worker = worker_of(queue_name)
    return worker in heard and any(sign.tasks > 0 for sign in heard[worker].living)
