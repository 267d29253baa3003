"""A language model whose answers, errors as well as bad ones, quote what it was asked."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from threading import Thread
from typing import Any

PASSING = (500, 429, 401, 404)
"""Statuses of the first answers: of a provider that fails for a while."""

LASTING = ("not json", "wrong schema", 400)
"""The answers after those, in turn: nothing that can be used."""


@dataclass(slots=True)
class Parrot:
    """``quoted`` counts the answers by their kind."""

    base_url: str = ""
    quoted: dict[str, int] = field(default_factory=dict)


@contextmanager
def parrot() -> Iterator[Parrot]:
    """A server that listens on loopback while the block runs."""
    numbers = count()

    class Requests(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = self.rfile.read(int(self.headers["Content-Length"])).decode()
            number = next(numbers)
            kind = (*PASSING, *LASTING)[number] if number < len(PASSING) else LASTING[number % len(LASTING)]
            bird.quoted[str(kind)] = bird.quoted.get(str(kind), 0) + 1
            if isinstance(kind, int):
                self.answer(kind, {"error": {"message": f"cannot do: {asked}", "type": asked[:2_000]}})
            elif kind == "not json":
                self.answer(200, completion(f"You said: {asked}"))
            else:
                self.answer(
                    200, completion(json.dumps({"statements": asked, "memories": [asked], asked[:500]: 1}))
                )

        def answer(self, status: int, body: object) -> None:
            content = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            if status == 429:
                self.send_header("Retry-After", "1")
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Requests)
    bird = Parrot(f"http://127.0.0.1:{server.server_port}/v1")
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield bird
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def completion(content: str) -> dict[str, Any]:
    message = {"role": "assistant", "content": content}
    return {
        "id": "1",
        "object": "chat.completion",
        "created": 1,
        "model": "parrot",
        "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    }
