"""Ports on loopback: the usual one, or a free one."""

from __future__ import annotations

import contextlib
import socket

from memory_app.errors import Misconfigured

HOST = "127.0.0.1"


def is_open(port: int) -> bool:
    """Whether nobody listens on the port."""
    with socket.socket() as probe, contextlib.suppress(OSError):
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind((HOST, port))
        return True
    return False


def choose(usual: int) -> int:
    """``usual`` if nobody listens there, else any free port."""
    if usual and is_open(usual):
        return usual
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def demand(port: int) -> int:
    """``port`` itself; `Misconfigured` when somebody listens there."""
    if port and not is_open(port):
        raise Misconfigured(f"port {port} is taken; choose another with --port, or leave it out")
    return choose(port)
