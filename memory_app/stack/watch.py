"""The embedded servers, looked at now and then: daemons that nobody else would start again."""

from __future__ import annotations

import time
from pathlib import Path

import structlog

from memory_app import embedded
from memory_app.errors import MemoryAppError

log = structlog.get_logger(__name__)

LOOK_SECONDS = 5.0


class Watch:
    """Starts the servers of a folder again when one has died. Parts wait for them and go on."""

    def __init__(self, folder: Path, *, durable: bool) -> None:
        self._folder = folder
        self._durable = durable
        self._looked_at = time.monotonic()

    def tend(self) -> None:
        """Look, if the last look is some seconds old. Starting takes as long as a recovery."""
        if time.monotonic() - self._looked_at < LOOK_SECONDS:
            return
        try:
            if embedded.find(self._folder) is None:
                log.warning("servers_died", folder=str(self._folder))
                embedded.start(self._folder, durable=self._durable)
        except MemoryAppError as error:
            log.error("servers_not_started", error=error.message)
        self._looked_at = time.monotonic()
