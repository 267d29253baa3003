"""The stub provider beside real workers: a process of its own that is told what to do, and can be off for a while."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import urllib.request
from dataclasses import asdict
from types import TracebackType
from urllib.parse import urlsplit

from memory_app.testing.script import Json, Rule

# Of a busy machine: ends at once else.
STOP_SECONDS = 60.0
CALL_SECONDS = 60.0


class StubProcess:
    """Runs from construction until `close`. ``base_url`` stays the same over `stop` and `start`."""

    def __init__(self, *rules: Rule) -> None:
        self._running: subprocess.Popen[str] | None = None
        self.address = self._launch(0)
        self.base_url = f"{self.address}/v1"
        self._kept_port = _keep_port(self.address)
        if rules:
            self.follow(*rules)

    def __enter__(self) -> StubProcess:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def follow(self, *rules: Rule) -> None:
        """Do as these rules say from now on. Their answers must be JSON: no function crosses over."""
        self._call("/control", {"rules": [asdict(rule) for rule in rules]})

    def stats(self) -> Json:
        """``calls`` by path, ``modes``, ``in_flight`` and ``in_flight_most``, since the last start or reset."""
        return self._call("/stats")

    def requests(self) -> list[Json]:
        """The newest requests, oldest first: ``path``, ``body``, ``at``."""
        requests = self._call("/requests")["requests"]
        assert isinstance(requests, list)
        return requests

    def reset(self) -> None:
        """Forget what was counted; the rules stay."""
        self._call("/control", {"reset": True})

    def stop(self) -> None:
        """The provider is gone: connections are refused. What was counted and ruled is lost."""
        if self._running is not None:
            self._running.terminate()
            self._running.wait(timeout=STOP_SECONDS)
            if self._running.stdout is not None:
                self._running.stdout.close()
            self._running = None

    def start(self) -> None:
        """Back at the same address, with good answers."""
        if self._running is None:
            self._launch(urlsplit(self.address).port or 0)

    def close(self) -> None:
        self.stop()
        self._kept_port.close()

    def _launch(self, port: int) -> str:
        command = [sys.executable, "-m", "memory_app.testing.stub", "--port", str(port), "--share-port"]
        running = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert running.stdout is not None
        # It writes its address once it listens, so that this line is waited for and no time.
        address = running.stdout.readline().strip()
        if not address:
            running.stdout.close()
            raise RuntimeError(f"the stub provider ended with status {running.wait()} instead of listening")
        self._running = running
        return address

    def _call(self, path: str, body: Json | None = None) -> Json:
        # urllib makes it a POST where there is a body.
        content = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.address}{path}", content)
        with urllib.request.urlopen(request, timeout=CALL_SECONDS) as response:
            answer: Json = json.load(response)
            return answer


def _keep_port(address: str) -> socket.socket:
    """Keep the port of ``address`` while nobody listens there: a socket that is bound refuses connections.

    Else the port is free while the provider is away, and any connection of this machine may take it as its own end.
    """
    place = urlsplit(address)
    kept = socket.socket()
    kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    kept.bind((place.hostname, place.port))
    return kept
