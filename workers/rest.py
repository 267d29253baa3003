"""A worker that nobody waits for leaves the machine to others: it runs at a lower priority and rests after each task.

Priority alone is not enough, because the database works for it as for anybody else, in processes of its own.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

MOST_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Rest:
    """Sleeps after each task for ``share`` times the seconds that it took, `MOST_SECONDS` at most.

    For processes that do one task at a time.
    """

    share: float
    _began_at: dict[str, float] = field(default_factory=dict)

    def begin(self, task_id: str, **_: Any) -> None:
        """A task begins."""
        self._began_at[task_id] = time.monotonic()

    def end(self, task_id: str, **_: Any) -> None:
        """It ended: rest. The message is acknowledged and the work committed by then."""
        began_at = self._began_at.pop(task_id, None)
        if began_at is not None:
            time.sleep(self.seconds_after(time.monotonic() - began_at))

    def seconds_after(self, seconds: float) -> float:
        """How long to rest after work of so many seconds."""
        return min(self.share * seconds, MOST_SECONDS)
