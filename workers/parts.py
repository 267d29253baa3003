"""The runtime of a worker process: made in the child after the fork, closed when the child ends."""

from __future__ import annotations

import threading

from memory_app.runtime import Runtime, build
from memory_app.settings import Settings

_lock = threading.Lock()
_parts: Runtime | None = None


def runtime() -> Runtime:
    """The live parts of this process, made at the first use, so that nothing is shared across a fork."""
    global _parts
    with _lock:
        if _parts is None:
            _parts = build(Settings())
        return _parts


def close() -> None:
    """Give back every connection; harmless when nothing was made."""
    global _parts
    with _lock:
        if _parts is not None:
            _parts.close()
            _parts = None
