"""A worker that nobody waits for leaves the machine to others: it runs at a lower priority, and rests while it works.

Priority alone is not enough: the database works for it as for anybody else, in processes of its own. So the worker
pauses between statements, in proportion to what it did since its last pause, much as Postgres paces its own vacuum.
Many short pauses let others through sooner than a long one after each task.
"""

from __future__ import annotations

import time
from typing import Any

from sqlalchemy import Engine

from memory_app.db import db

LEAST_SECONDS = 0.01
"""Shorter pauses than this are saved up: to wake costs whoever runs meanwhile something, too."""
MOST_SECONDS = 1.0
"""Of one transaction, whose locks others may wait for, and again after a task: what is more is let off."""


class Rest:
    """Rests for ``share`` times the seconds that were worked. For a process that does one task at a time."""

    def __init__(self, share: float) -> None:
        self._share = share
        self._left = MOST_SECONDS
        self._rested_at = time.monotonic()

    def watch(self, engine: Engine) -> None:
        """Rest between the statements of this engine from now on."""
        db.watch(engine, begun=self._begin_transaction, done=self._pause)

    def begin_task(self, **_: Any) -> None:
        """Work begins: the time in which there was none is not to be rested from."""
        self._rested_at = time.monotonic()
        self._left = MOST_SECONDS

    def end_task(self, **_: Any) -> None:
        """Rest from what came after the last statement, too."""
        self._left = MOST_SECONDS
        self._pause()

    def _begin_transaction(self) -> None:
        self._left = MOST_SECONDS

    def owed(self) -> float:
        """Seconds to rest now, for what was done since the last rest."""
        return min(self._share * (time.monotonic() - self._rested_at), self._left)

    def _pause(self) -> None:
        seconds = self.owed()
        if seconds < LEAST_SECONDS:
            return
        time.sleep(seconds)
        self._left -= seconds
        self._rested_at = time.monotonic()
