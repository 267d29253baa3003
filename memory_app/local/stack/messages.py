"""Messages between `launch` and the `fork_server`: JSON, with open files beside it."""

from __future__ import annotations

import json
import socket
import struct
from typing import Any

HEADER = struct.Struct("!I")
"""Length of a message in bytes, before it."""


def send(to: socket.socket, message: dict[str, Any], descriptors: list[int]) -> None:
    content = json.dumps(message).encode()
    # With the first bytes, so that they cannot come with those of another message.
    socket.send_fds(to, [HEADER.pack(len(content))], descriptors)
    to.sendall(content)


def receive(source: socket.socket, *, descriptors: int) -> tuple[dict[str, Any], list[int]] | None:
    """The next message with its descriptors, which are not inherited; None when the other side has ended."""
    header, received, _, _ = socket.recv_fds(
        source, HEADER.size, descriptors, socket.MSG_WAITALL | socket.MSG_CMSG_CLOEXEC
    )
    if len(header) < HEADER.size:
        return None
    content = bytearray()
    (length,) = HEADER.unpack(header)
    while len(content) < length:
        piece = source.recv(length - len(content))
        if not piece:
            return None
        content += piece
    return json.loads(content), received
