"""Look after the embedded servers, which are daemons that nobody else would start again.

What counts is whether a process is there, never whether it answers in time: on a busy machine a healthy server may be
silent for a while, and ending it would cut off everybody.
"""

from __future__ import annotations

import time
from pathlib import Path

import structlog

from memory_app.local import embedded
from memory_app.local.embedded.lifetime import Pause

log = structlog.get_logger(__name__)

LOOK_SECONDS = 1.0
# So often in a row must a server be gone, since another process may be starting it just now.
LOOKS = 3


class Watch:
    """Starts a server of a folder again when its process is gone. Parts wait for it and go on."""

    def __init__(self, folder: Path, *, durable: bool, pause: Pause = time.sleep) -> None:
        self._folder = folder
        self._durable = durable
        self._pause = pause
        self._look_at = time.monotonic() + LOOK_SECONDS
        self._looks_without = 0

    def tend(self) -> None:
        """Look, if the last look is a moment old. Starting takes as long as a recovery; raises `Misconfigured`."""
        if time.monotonic() < self._look_at:
            return
        gone = embedded.gone(self._folder)
        self._looks_without = self._looks_without + 1 if gone else 0
        try:
            if self._looks_without >= LOOKS:
                self._looks_without = 0
                log.warning("servers_died", servers=gone)
                embedded.restart(self._folder, durable=self._durable, pause=self._pause)
                log.warning("servers_restarted", servers=gone)
        finally:
            # Counted from the end: a restart takes longer than the time between two looks.
            self._look_at = time.monotonic() + LOOK_SECONDS
