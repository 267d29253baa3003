"""Failpoints: named places at which a test lets this process die, freeze or wait. Off unless the environment asks.

``MEMORY_FAILPOINTS="extract.before_commit=kill@3,index.after_claim=sleep:5@1"``: at the third passage through the first
place the process kills itself, at the first through the second it waits five seconds. Actions are ``kill`` (SIGKILL),
``stop`` (SIGSTOP) and ``sleep:seconds``; ``@n`` means every n-th passage, counted in each process by itself.
"""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from dataclasses import dataclass
from typing import Final

from memory_app.errors import Misconfigured

VARIABLE: Final = "MEMORY_FAILPOINTS"


@dataclass(frozen=True, slots=True)
class _Failpoint:
    action: str
    seconds: float
    every: int


def _parse(plan: str) -> dict[str, _Failpoint]:
    points = {}
    for part in filter(None, plan.split(",")):
        try:
            name, instruction = part.split("=")
            instruction, _, every = instruction.partition("@")
            action, _, seconds = instruction.partition(":")
            points[name] = _Failpoint(action, float(seconds or 0), int(every or 1))
        except ValueError as error:
            raise Misconfigured(f"{VARIABLE}: {part!r} is not name=action@n") from error
    return points


_PLAN: Final = _parse(os.environ.get(VARIABLE, ""))
_passed: Counter[str] = Counter()


def reach(name: str) -> None:
    """Mark a place. Does nothing unless the environment named it when this process started."""
    if _PLAN:
        _act(name)


def _act(name: str) -> None:
    point = _PLAN.get(name)
    if point is None:
        return
    _passed[name] += 1
    if _passed[name] % point.every:
        return
    if point.action == "sleep":
        time.sleep(point.seconds)
    else:
        # Neither can be caught: what the process would do on its way out is not done.
        os.kill(os.getpid(), signal.SIGSTOP if point.action == "stop" else signal.SIGKILL)
