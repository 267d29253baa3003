"""Ports of loopback for servers of tests."""

from __future__ import annotations

import contextlib
import secrets
import socket

HOST = "127.0.0.1"
PORTS = range(15_000, 32_000)
"""None of those that Linux and macOS give to outgoing connections."""


def free_port() -> int:
    """A port to which nothing is bound at the moment.

    No outgoing connection takes it before the server does, or while the server is away for a moment.
    """
    while True:
        port = PORTS.start + secrets.randbelow(len(PORTS))
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind((HOST, port))
            return port
