"""What metrics and traces cost: the same requests to APIs that differ in nothing else, in turns.

Each API is a process of its own on the same servers. A round asks each of them for a block of calls, every time in
another order, so that what else the machine does falls on all alike; what counts is the ratio within a round, of the
processor time of the API's process.
"""

from __future__ import annotations

import http.client
import json
import os
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

from memory_app import MemoryApp, Scope
from memory_app.bench.plain_rows import fill
from memory_app.bench.prose import messages
from memory_app.bench.stage import TENANT, Say
from memory_app.errors import Misconfigured
from memory_app.settings import Settings
from memory_app.tenancy import access

BASE = "neither"
SERVE = ("-m", "memory_app", "serve")
UNCOUNTED = """
from prometheus_client import Counter, Histogram
from prometheus_client.metrics import MetricWrapperBase

MetricWrapperBase.labels = lambda metric, *_, **__: metric
Counter.inc = Histogram.observe = lambda *_, **__: None

from memory_app.main.cli import main

main()
"""
"""The command line that counts nothing."""

VARIANTS: Mapping[str, tuple[Sequence[str], float | None]] = {
    BASE: (("-c", UNCOUNTED, "serve"), None),
    "metrics": (SERVE, None),
    "metrics, traces of 1 in 10": (SERVE, 0.1),
    "metrics, traces of all": (SERVE, 1.0),
}
"""The program of an API, and the share of its requests that are traced."""

READER, WRITER = "reader", "writer"
"""Turns are recorded for another user than the one whose memories are recalled: nobody indexes them here."""

START_SECONDS = 300.0


@dataclass(slots=True)
class Api:
    """One of the processes. ``cpu`` and ``wall`` are seconds a call, one for each block, by operation."""

    process: subprocess.Popen[bytes]
    port: int
    cpu: dict[str, list[float]] = field(default_factory=dict)
    wall: dict[str, list[float]] = field(default_factory=dict)

    def ask(self, method: str, path: str, body: object = None) -> int:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, json.dumps(body), {"Content-Type": "application/json"})
            answer = connection.getresponse()
            answer.read()
            return answer.status
        finally:
            connection.close()

    def cpu_seconds(self) -> float:
        """Processor time of all its threads until now."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(
    memory: MemoryApp, folder: Path, *, memories: int, rounds: int, calls: int, say: Say
) -> Mapping[str, Any]:
    """Milliseconds of processor a call of each variant, and its ratio to no metrics and no traces: median and quartiles
    over the rounds."""
    if not Path("/proc/self/stat").exists():
        raise Misconfigured("the processor time of another process is read from /proc, which only Linux has")
    folder.mkdir(parents=True, exist_ok=True)
    say(f"writing {memories} memories")
    fill(memory, Scope("assistant", READER), memories)
    with ExitStack() as stack:
        sink = stack.enter_context(_sink())
        apis = {name: _start(memory.runtime.settings, folder, name, sink, stack) for name in VARIANTS}
        for name, api in apis.items():
            _wait_until_live(name, api)
        _blocks(apis, rounds=1, calls=20)
        for api in apis.values():
            api.cpu, api.wall = {}, {}
        say(f"{rounds} rounds of {calls} calls of each kind")
        _blocks(apis, rounds=rounds, calls=calls)
    return {
        operation: {name: figures_of(api, apis[BASE], operation) for name, api in apis.items()}
        for operation in ("accept", "recall")
    }


def _blocks(apis: Mapping[str, Api], *, rounds: int, calls: int) -> None:
    texts = messages(rounds * calls * len(apis) * 2, seed=9)
    names = list(apis)
    for number in range(rounds):
        for name in names[number % len(names) :] + names[: number % len(names)]:
            for operation in ("accept", "recall"):
                _block(apis[name], operation, [next(texts) for _ in range(calls)])


def _block(api: Api, operation: str, texts: Sequence[str]) -> None:
    began, cpu = time.perf_counter(), api.cpu_seconds()
    for text in texts:
        if operation == "accept":
            path = f"/v1/agents/assistant/users/{WRITER}/sessions/chat/turns"
            status = api.ask("POST", path, {"role": "user", "content": text})
        else:
            status = api.ask("POST", f"/v1/agents/assistant/users/{READER}/recall", {"query": text})
        if status not in (200, 202):
            raise RuntimeError(f"{operation} was answered with {status}")
    api.cpu.setdefault(operation, []).append((api.cpu_seconds() - cpu) / len(texts))
    api.wall.setdefault(operation, []).append((time.perf_counter() - began) / len(texts))


def figures_of(api: Api, base: Api, operation: str) -> dict[str, Any]:
    """Of one operation: the mean of the blocks, and quartiles of the ratios to ``base``, round by round."""
    ratios = [one / other for one, other in zip(api.cpu[operation], base.cpu[operation], strict=True)]
    walls = [one / other for one, other in zip(api.wall[operation], base.wall[operation], strict=True)]
    return {
        "cpu_ms": round(statistics.fmean(api.cpu[operation]) * 1000, 2),
        "cpu_ratio": [round(value, 3) for value in statistics.quantiles(ratios, n=4)],
        "wall_ratio": round(statistics.median(walls), 3),
    }


def _start(settings: Settings, folder: Path, name: str, sink: str, stack: ExitStack) -> Api:
    program, ratio = VARIANTS[name]
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    environment = {
        **os.environ,
        "MEMORY_DATABASE__URL": settings.database.url.get_secret_value(),
        # Only to look up the tenant for whom calls without a key are made.
        "MEMORY_DATABASE__OWNER_URL": access.owner_url(settings),
        "MEMORY_REDIS__URL": settings.redis.url.get_secret_value(),
        "MEMORY_REDIS__PREFIX": settings.redis.prefix,
        "MEMORY_HTTP__PORT": str(port),
        "MEMORY_HTTP__ALLOW_ANONYMOUS_TENANT": TENANT,
        "MEMORY_TRACING__ENDPOINT": "" if ratio is None else sink,
        "MEMORY_TRACING__RATIO": str(ratio or 0),
    }
    log = stack.enter_context((folder / f"api-{port}.log").open("wb"))
    process = subprocess.Popen([sys.executable, *program], env=environment, stdout=log, stderr=log)
    stack.callback(process.wait)
    stack.callback(process.terminate)
    return Api(process, port)


def _wait_until_live(name: str, api: Api) -> None:
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            if api.ask("GET", "/health/live") == 200:
                return
        except OSError:
            time.sleep(0.2)
        if time.monotonic() > deadline or api.process.poll() is not None:
            raise RuntimeError(f"the API with {name} did not start")


@contextmanager
def _sink() -> Iterator[str]:
    """A receiver of traces that throws them away."""

    class Requests(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Requests)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
