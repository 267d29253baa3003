"""Ports on loopback: the usual one, or a free one."""

from __future__ import annotations

import contextlib
import socket
from pathlib import Path

from memory_app.errors import Misconfigured
from memory_app.local.embedded import place

HOST = "127.0.0.1"


def is_open(port: int) -> bool:
    """Whether nobody listens on the port."""
    with socket.socket() as probe, contextlib.suppress(OSError):
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind((HOST, port))
        return True
    return False


def choose(usual: int, *, file: Path) -> int:
    """The port of the last time, if it is still free: an address that was written down stays true.

    At first ``usual`` if nobody listens there, else any free one. ``file`` keeps what was chosen in place of which.
    """
    candidates = [usual]
    last = (place.read(file) or "").split()
    # Another usual port than the last time was set by a person, who wants that one.
    if len(last) == 2 and last[0] == str(usual):
        candidates.insert(0, int(last[1]))
    port = next((port for port in candidates if port and is_open(port)), None) or _free()
    place.write(file, f"{usual} {port}")
    return port


def demand(port: int) -> int:
    """``port`` itself; `Misconfigured` when somebody listens there."""
    if not is_open(port):
        raise Misconfigured(f"port {port} is taken; choose another with --port, or leave it out")
    return port


def _free() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])
