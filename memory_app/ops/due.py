"""Whether work that is due gets done: late while somebody is at it is a backlog, late while nobody is, a stand-still.

The age of the oldest work alone cannot tell: under a flood it grows although everybody works.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from memory_app import queue
from memory_app.jobs.life import FINDER, Heard, worker_of
from memory_app.jobs.rows.health import DueWork

LATE_AFTER_SECONDS = 60.0
"""Hints, finders and Beat bring work to its worker within seconds."""

LOOKS = 3
PAUSE_SECONDS = 0.3
"""Between two pieces of work nobody has any in hand for a moment, so one look says too little."""


@dataclass(frozen=True, slots=True)
class Lateness:
    """A kind of work that is late. ``is_stalled``: nobody is at it, and nobody will come to it soon."""

    kind: str
    seconds: float
    is_stalled: bool

    @property
    def reason(self) -> str:
        what = "nobody is at it" if self.is_stalled else "there is a backlog"
        return f"the oldest has been due for {self.seconds:.0f} s; {what}"


def lateness(look: Callable[[], Sequence[DueWork]], heard: Mapping[str, Heard]) -> tuple[Lateness, ...]:
    """Every kind that is late, by the latest of some looks; those that follow are only taken where one is in doubt."""
    late = _late(look(), heard)
    for _ in range(LOOKS - 1):
        if not any(one.is_stalled for one in late):
            break
        time.sleep(PAUSE_SECONDS)
        late = _late(look(), heard)
    return late


def _late(works: Sequence[DueWork], heard: Mapping[str, Heard]) -> tuple[Lateness, ...]:
    return tuple(
        Lateness(work.kind, work.oldest_seconds, is_stalled=not (work.is_held or _may_wait(work.kind, heard)))
        for work in works
        if work.oldest_seconds > LATE_AFTER_SECONDS
    )


def _may_wait(kind: str, heard: Mapping[str, Heard]) -> bool:
    """Whether work of this kind may lie there for minutes although everybody works."""
    if kind == "runs":
        # The worker for maintenance may be busy with what is no run, such as an index.
        workers = [
            heard[worker_of(name)] for name in (queue.MODEL, queue.MAINTENANCE) if worker_of(name) in heard
        ]
        return any(sign.tasks > 0 for worker in workers for sign in worker.living)
    if kind == "periodic jobs":
        # A finder looks for them every few seconds; Beat when its schedule says so, which may be at night alone.
        return FINDER not in heard or not heard[FINDER].living
    return False
