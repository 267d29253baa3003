"""HTTP as bytes on a socket, for callers that do not behave."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

ANSWER_SECONDS = 60.0
"""Far above every deadline that a test sets, so that a slow machine is no failure."""


@dataclass(slots=True)
class Answer:
    """What came back. ``status`` 0: nothing but the end of the connection."""

    status: int
    headers: dict[str, str]
    body: bytes

    def error(self) -> dict[str, object]:
        found: dict[str, object] = json.loads(self.body)["error"]
        return found


@dataclass(slots=True)
class Raw:
    """One connection."""

    port: int
    receive_buffer: int | None = None
    socket: socket.socket = field(init=False)
    _unread: bytes = b""

    def __post_init__(self) -> None:
        self.socket = socket.socket()
        if self.receive_buffer is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self.receive_buffer)
        self.socket.settimeout(ANSWER_SECONDS)
        self.socket.connect(("127.0.0.1", self.port))

    def send(self, *pieces: bytes) -> Raw:
        for piece in pieces:
            self.socket.sendall(piece)
        return self

    def answer(self) -> Answer:
        """The next answer, or status 0 when the connection ended without one."""
        try:
            head = self._until(b"\r\n\r\n")
        except EOFError:
            return Answer(0, {}, b"")
        first, *lines = head.decode().split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        length = int(headers.get("content-length", "0"))
        while len(self._unread) < length:
            self._more()
        body, self._unread = self._unread[:length], self._unread[length:]
        return Answer(int(first.split()[1]), headers, body)

    def rest(self) -> bytes:
        """Everything until the other side closes."""
        with contextlib.suppress(EOFError):
            while True:
                self._more()
        return self._unread

    def is_open(self) -> bool:
        """Whether the other side has neither answered nor closed."""
        if self._unread:
            return False
        self.socket.setblocking(False)
        try:
            return self.socket.recv(1, socket.MSG_PEEK) == b"!"
        except BlockingIOError:
            return True
        except OSError:
            return False
        finally:
            self.socket.settimeout(ANSWER_SECONDS)

    def close(self) -> None:
        self.socket.close()

    def _until(self, mark: bytes) -> bytes:
        while mark not in self._unread:
            self._more()
        found, _, self._unread = self._unread.partition(mark)
        return found

    def _more(self) -> None:
        try:
            received = self.socket.recv(65_536)
        except ConnectionError as error:
            raise EOFError from error
        if not received:
            raise EOFError
        self._unread += received


def head(method: str, path: str, *headers: str, key: str | None = None) -> bytes:
    """A request's first lines and the empty one."""
    lines = [f"{method} {path} HTTP/1.1", "Host: api", "Content-Type: application/json", *headers]
    if key is not None:
        lines.append(f"Authorization: Bearer {key}")
    return "\r\n".join([*lines, "", ""]).encode()


def request(method: str, path: str, *headers: str, key: str | None = None, body: object = None) -> bytes:
    """A whole request."""
    content = b"" if body is None else json.dumps(body).encode()
    return head(method, path, *headers, f"Content-Length: {len(content)}", key=key) + content


@contextlib.contextmanager
def connections(port: int, number: int, *pieces: bytes) -> Iterator[list[Raw]]:
    """So many connections that all sent these bytes and wait."""
    opened: list[Raw] = []
    try:
        for _ in range(number):
            opened.append(Raw(port).send(*pieces))
        yield opened
    finally:
        for raw in opened:
            raw.close()


@contextlib.contextmanager
def dripping(raw: Raw, drop: bytes, *, seconds: float = 0.05) -> Iterator[None]:
    """Send the same bytes again and again during the block, for as long as somebody takes them."""
    over = threading.Event()

    def drip() -> None:
        with contextlib.suppress(OSError):
            while not over.wait(seconds):
                raw.socket.sendall(drop)

    dripper = threading.Thread(target=drip, name="dripper", daemon=True)
    dripper.start()
    try:
        yield
    finally:
        over.set()
        dripper.join()
