"""A provider of our own for tests and trials: a real HTTP server that answers well, badly, slowly or not at all.

Speaks chat completions, responses, embeddings and models of the OpenAI API, Ollama's embeddings, and the call
``/rerank``. What it does is set by rules, in the same process or over HTTP (``POST /control``), so that it can stand
beside real workers. It counts what it is asked. It checks no key and must not be reachable from outside.
"""

from __future__ import annotations

import json
import time
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Lock, Thread
from types import TracebackType

from memory_app.errors import InvalidInput
from memory_app.testing.dialects import SERVERS
from memory_app.testing.responses import responses_body
from memory_app.testing.script import Json, Mode, Rule, Script, parse_rule
from memory_app.testing.wire import chat_body, embeddings_body, ollama_body, rerank_body, stream_events

KEPT_REQUESTS = 10_000
"""Requests remembered for assertions; older ones are only counted."""

HANG_SECONDS = 3600.0
POLL_SECONDS = 0.05

_BODIES: dict[str, Callable[[Json, Rule], object]] = {
    "/v1/chat/completions": chat_body,
    "/v1/responses": responses_body,
    "/v1/embeddings": embeddings_body,
    "/api/embed": ollama_body,
    "/rerank": rerank_body,
    "/v1/rerank": rerank_body,
}

_FAILURES = {
    Mode.RATE_LIMITED: (429, "rate limit reached"),
    Mode.SERVER_ERROR: (500, "internal error"),
    Mode.UNAUTHORIZED: (401, "incorrect key"),
    Mode.NOT_FOUND: (404, "the model does not exist"),
    Mode.BAD_REQUEST: (400, "this request is not possible"),
    Mode.REDIRECT: (307, ""),
}


STREAMED = frozenset({Mode.GOOD, Mode.DRIP, Mode.CUT, Mode.DUPLICATE_TOOL_CALLS, Mode.DIFFERENT_TOOL_CALLS})
"""Modes that leave it to the request whether the answer comes in pieces."""


@dataclass(frozen=True, slots=True)
class StubRequest:
    """One request of a model as it arrived. ``mode`` is how it was answered."""

    path: str
    body: Json
    headers: dict[str, str]
    mode: Mode
    at: float


@dataclass(slots=True)
class Stats:
    """What was asked so far, and how many requests were under way at once."""

    calls: Counter[str] = field(default_factory=Counter)
    modes: Counter[str] = field(default_factory=Counter)
    in_flight: int = 0
    in_flight_most: int = 0

    def as_dict(self) -> Json:
        return {
            "calls": dict(self.calls),
            "modes": dict(self.modes),
            "in_flight": self.in_flight,
            "in_flight_most": self.in_flight_most,
        }


class StubProvider:
    """The server, running in threads of this process from construction until `close`.

    ``address`` is its root; the base URL of the OpenAI API is `base_url`. Port 0 takes a free one. With
    ``share_port`` another socket of the same user may be bound to the port (SO_REUSEPORT), to keep it.
    """

    def __init__(
        self, *rules: Rule, port: int = 0, host: str = "127.0.0.1", share_port: bool = False
    ) -> None:
        self.script = Script(list(rules))
        self.stopping = Event()
        self._requests: deque[StubRequest] = deque(maxlen=KEPT_REQUESTS)
        self._stats = Stats()
        self._lock = Lock()
        self._server = _Server((host, port), _Exchange, bind_and_activate=False)
        self._server.allow_reuse_port = share_port
        try:
            self._server.server_bind()
            self._server.server_activate()
        except BaseException:
            self._server.server_close()
            raise
        self._server.stub = self
        self.address = f"http://{host}:{self._server.server_port}"
        self.base_url = f"{self.address}/v1"
        self._thread = Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    def __enter__(self) -> StubProvider:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def follow(self, *rules: Rule) -> None:
        """Do as these rules say from now on."""
        self.script.follow(*rules)

    @property
    def requests(self) -> list[StubRequest]:
        """The newest requests, oldest first."""
        with self._lock:
            return list(self._requests)

    @property
    def stats(self) -> Stats:
        with self._lock:
            # A copy: the threads of the server go on counting.
            return replace(self._stats, calls=Counter(self._stats.calls), modes=Counter(self._stats.modes))

    def reset(self) -> None:
        """Forget what was counted; the rules stay."""
        with self._lock:
            self._requests.clear()
            # What is under way ends later, and is counted down then.
            self._stats = Stats(in_flight=self._stats.in_flight)

    def close(self) -> None:
        """Stop answering; requests that hang are let go."""
        self.stopping.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def wait_for_in_flight(self, count: int) -> None:
        """Return once ``count`` requests were under way at the same time, or the server stops."""
        while self.stats.in_flight_most < count and not self.stopping.wait(POLL_SECONDS):
            pass

    def began(self, request: StubRequest) -> None:
        with self._lock:
            self._requests.append(request)
            self._stats.calls[request.path] += 1
            self._stats.modes[request.mode] += 1
            self._stats.in_flight += 1
            self._stats.in_flight_most = max(self._stats.in_flight_most, self._stats.in_flight)

    def ended(self) -> None:
        with self._lock:
            self._stats.in_flight -= 1


class _Server(ThreadingHTTPServer):
    # A request that hangs must not keep the process from ending.
    daemon_threads = True
    allow_reuse_address = True
    # Of five, which is usual, hundreds of callers at the same moment would wait for a second try of TCP.
    request_queue_size = 512
    stub: StubProvider

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that went away is part of the game."""


class _Exchange(BaseHTTPRequestHandler):
    """One connection; answers one request after the other."""

    protocol_version = "HTTP/1.1"
    # Head and body leave together; else each answer waits 40 ms for an acknowledgement.
    wbufsize = 1 << 16
    server: _Server

    def log_message(self, format: str, *args: object) -> None:
        """Nothing is logged: requests hold what people said."""

    def do_GET(self) -> None:
        stub = self.server.stub
        if self.path == "/v1/models":
            models = [{"id": name, "object": "model"} for name in ("stub-small", "stub-large")]
            self._send(200, {"object": "list", "data": models})
        elif self.path == "/stats":
            self._send(200, stub.stats.as_dict())
        elif self.path == "/requests":
            self._send(
                200, {"requests": [{"path": s.path, "body": s.body, "at": s.at} for s in stub.requests]}
            )
        else:
            self._send(404, {"error": {"message": "no such path"}})

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.path == "/control":
            self._control(raw)
        elif self.path in _BODIES:
            self._answer(raw)
        else:
            self._send(404, {"error": {"message": "no such path"}})

    def _control(self, raw: bytes) -> None:
        """``{"rules": [...]}`` or one rule; ``{"reset": true}`` forgets what was counted."""
        stub = self.server.stub
        try:
            instructions = json.loads(raw or b"{}")
            if instructions.pop("reset", False):
                stub.reset()
            if instructions:
                stub.follow(*(parse_rule(rule) for rule in instructions.get("rules", [instructions])))
        except (ValueError, TypeError, AttributeError, InvalidInput) as error:
            self._send(400, {"error": {"message": str(error)}})
        else:
            self._send(200, stub.stats.as_dict())

    def _answer(self, raw: bytes) -> None:
        stub = self.server.stub
        body = json.loads(raw)
        text = json.dumps(body, ensure_ascii=False)
        rule = stub.script.decide(self.path, text)
        headers = {name.lower(): value for name, value in self.headers.items()}
        stub.began(StubRequest(path=self.path, body=body, headers=headers, mode=rule.mode, at=time.time()))
        try:
            # Counted already, so that the last one to come frees them all.
            if rule.until_in_flight:
                stub.wait_for_in_flight(rule.until_in_flight)
            if rule.seconds and rule.mode not in (Mode.HANG, Mode.DRIP):
                stub.stopping.wait(rule.seconds)
            self._perform(body, rule)
        finally:
            stub.ended()

    def _perform(self, body: Json, rule: Rule) -> None:
        if rule.mode is Mode.HANG:
            self.server.stub.stopping.wait(rule.seconds or HANG_SECONDS)
            self.close_connection = True
        elif rule.mode in _FAILURES:
            self._fail(rule)
        elif rule.mode in SERVERS and (refusal := SERVERS[rule.mode].refuse(body)):
            self._send(*refusal)
        elif rule.mode is Mode.ERROR_IN_BODY:
            self._send(200, {"error": {"code": 429, "message": "rate limited upstream; key sk-echoed"}})
        elif rule.mode is Mode.STREAM_ONLY or _is_streamed(self.path, body, rule):
            self._stream(body, rule)
        elif refused := _refused(body, rule.mode):
            self._send(400, {"error": {"message": f"{refused} is not supported", "param": refused}})
        elif rule.mode is Mode.BROKEN_BODY:
            self._write(b"<html>the gateway is not amused</html>", "text/html")
        elif rule.mode is Mode.HUGE:
            self._write_huge(rule.size_bytes)
        else:
            self._write(
                json.dumps(_BODIES[self.path](body, rule)).encode(), mode=rule.mode, pause=rule.seconds
            )

    def _fail(self, rule: Rule) -> None:
        status, message = _FAILURES[rule.mode]
        head = {"Retry-After": rule.retry_after} if rule.retry_after is not None else {}
        if rule.mode is Mode.REDIRECT:
            head["Location"] = f"{self.server.stub.address}/elsewhere"
        # Real providers repeat parts of the request; whoever passes this on leaks it.
        self._send(status, {"error": {"message": f"{message}; key sk-echoed", "type": "stub"}}, head)

    def _send(self, status: int, content: Json, head: dict[str, str] | None = None) -> None:
        raw = json.dumps(content).encode()
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **(head or {})}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def _write(
        self, raw: bytes, kind: str = "application/json", *, mode: Mode = Mode.GOOD, pause: float = 0.0
    ) -> None:
        self._begin(len(raw), kind)
        if mode is Mode.CUT:
            # The head promised twice as much.
            self.wfile.write(raw[: len(raw) // 2])
            self.close_connection = True
        elif mode is Mode.DRIP:
            self._drip(raw, pause or 0.05)
        else:
            self.wfile.write(raw)

    def _stream(self, body: Json, rule: Rule) -> None:
        """Send the events of a chat; with a pause between two of them where they drip."""
        events = stream_events(chat_body(body, rule))
        self._begin(sum(map(len, events)), "text/event-stream")
        if rule.mode is Mode.CUT:
            # The head promised them all.
            events = events[: len(events) // 2]
            self.close_connection = True
        for event in events:
            self.wfile.write(event)
            self.wfile.flush()
            if rule.mode is Mode.DRIP and self.server.stub.stopping.wait(rule.seconds or 0.05):
                break

    def _drip(self, raw: bytes, pause: float) -> None:
        for place in range(len(raw)):
            self.wfile.write(raw[place : place + 1])
            # Each byte by itself, which starts the client's time between two bytes anew.
            self.wfile.flush()
            if self.server.stub.stopping.wait(pause):
                break
        self.close_connection = True

    def _write_huge(self, size: int) -> None:
        head = b'{"choices": [{"message": {"content": "'
        # Five bytes close what the head has opened.
        self._begin(len(head) + size + 5, "application/json")
        self.wfile.write(head)
        block = b"x" * 65_536
        for start in range(0, size, len(block)):
            self.wfile.write(block[: size - start])
        self.wfile.write(b'"}}]}')

    def _begin(self, length: int, kind: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(length))
        self.end_headers()


def _refused(body: Json, mode: Mode) -> str | None:
    """The parameter that this mode does not take, if the request has it."""
    form = body.get("response_format")
    if mode is Mode.NO_SCHEMA and isinstance(form, dict) and form.get("type") == "json_schema":
        return "response_format"
    if mode is Mode.NO_FORMAT and form is not None:
        return "response_format"
    if mode is Mode.NO_TEMPERATURE:
        return next((name for name in ("temperature", "max_tokens") if name in body), None)
    return None


def _is_streamed(path: str, body: Json, rule: Rule) -> bool:
    """Whether the request asks for pieces, and the rule leaves the form of the answer to it."""
    has_usual_form = rule.mode in STREAMED
    return has_usual_form and body.get("stream") is True and path.endswith("/chat/completions")
