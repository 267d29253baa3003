"""Giving work back to a database that is away, or whose row somebody holds locked.

A start is counted before the work and explained after it, because nothing runs after SIGKILL. A worker that is alive
explains its start as soon as it can; otherwise three outages, or three long locks, would look like three deaths, and an
innocent turn would be quarantined.
"""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass, field
from typing import Protocol

import structlog

from memory_app.errors import StoreUnavailable

log = structlog.get_logger(__name__)

PAUSE_SECONDS = 0.5

MOST_KEPT = 1_000
"""What is kept beyond this pushes the oldest out, whose start then counts as a death."""


class GiveBack(Protocol):
    """Gives borrowed work back in one short transaction. May be called late and more than once."""

    def __call__(self, *, briefly: bool) -> None:
        """``briefly``: wait for a locked row for a moment only, instead of standing in line for it."""


@dataclass(slots=True)
class Returns:
    """What this process borrowed and could not give back in time. Safe between threads."""

    _kept: deque[GiveBack] = field(default_factory=lambda: deque(maxlen=MOST_KEPT))

    def give_back(self, *gives: GiveBack, within_seconds: float) -> None:
        """Call each of ``gives`` until it succeeds or the loan has run out; the others are kept for `try_again`.

        Who stands in line for a locked row comes before those who want to borrow it once the loan has run out.
        """
        deadline = time.monotonic() + within_seconds
        open_gives = list(gives)
        try:
            while open_gives := [give for give in open_gives if not _succeeds(give, briefly=False)]:
                if time.monotonic() + PAUSE_SECONDS > deadline:
                    log.warning("start_not_given_back", count=len(open_gives))
                    return
                time.sleep(PAUSE_SECONDS)
        finally:
            # Here, since the time limit of a task may end the wait.
            self._kept.extend(open_gives)

    def try_again(self) -> None:
        """Give back what was kept, up to the first that fails again; it goes to the end of the line.

        Call it before something is borrowed: a worker that says how its last start ended is not taken for dead.
        """
        for _ in range(len(self._kept)):
            try:
                give = self._kept.popleft()
            except IndexError:
                return
            if not _succeeds(give, briefly=True):
                self._kept.append(give)
                return


def _succeeds(give: GiveBack, *, briefly: bool) -> bool:
    try:
        give(briefly=briefly)
    except StoreUnavailable:
        return False
    return True
