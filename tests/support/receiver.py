"""A receiver of webhooks: a real HTTP or HTTPS server on loopback that keeps what it gets and answers as it is told."""

from __future__ import annotations

import json
import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any


@dataclass(frozen=True, slots=True)
class Message:
    """A request as it came."""

    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]

    @property
    def events(self) -> list[dict[str, Any]]:
        events: list[dict[str, Any]] = json.loads(self.body)["data"].get("events", [])
        return events


@dataclass(frozen=True, slots=True)
class Reply:
    """What is answered. ``until``: not before that is set. ``drip``: a head without an end, until that is set."""

    status: int = 204
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    until: Event | None = None
    drip: Event | None = None


@dataclass
class Receiver:
    """``replies`` are given in turn; the last one again and again."""

    port: int = 0
    scheme: str = "http"
    replies: list[Reply] = field(default_factory=lambda: [Reply()])
    messages: list[Message] = field(default_factory=list)
    on_message: Callable[[Message], None] = lambda _: None
    _lock: Lock = field(default_factory=Lock)

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}/hook?from=memory"

    def targets(self) -> list[str]:
        """The ids that events are about, in the order in which they came, doubles included."""
        return [event["target"] for message in self.messages for event in message.events]

    def event_ids(self) -> list[str]:
        return [event["id"] for message in self.messages for event in message.events]

    def take(self, message: Message) -> Reply:
        with self._lock:
            self.messages.append(message)
            reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        self.on_message(message)
        return reply


@contextmanager
def receiving(*replies: Reply, certificate: tuple[Path, Path] | None = None) -> Iterator[Receiver]:
    """A receiver that runs. ``certificate`` (with its key) makes it speak TLS."""
    receiver = Receiver(replies=list(replies) or [Reply()])

    class Request(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            reply = receiver.take(Message(self.path, headers, body))
            # The sender may go away, which some tests want.
            with suppress(OSError):
                self._answer(reply)

        def _answer(self, reply: Reply) -> None:
            if reply.until is not None:
                reply.until.wait(60)
            if reply.drip is not None:
                self.wfile.write(b"HTTP/1.1 200 OK\r\n")
                while not reply.drip.wait(0.05):
                    self.wfile.write(b"X-More: 1\r\n")
                    self.wfile.flush()
                return
            self.send_response(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(reply.body)))
            self.end_headers()
            self.wfile.write(reply.body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Request)
    server.daemon_threads = True
    # Who is cut off or does not trust it is no error of a test.
    server.handle_error = lambda *_: None  # type: ignore[method-assign]
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        receiver.scheme = "https"
    receiver.port = server.server_address[1]
    thread = Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        for reply in replies:
            for signal in (reply.until, reply.drip):
                if signal is not None:
                    signal.set()
        server.shutdown()
        server.server_close()
        thread.join(10)
