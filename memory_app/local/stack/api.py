"""A caller of the HTTP API on loopback: one connection kept open, JSON both ways. Not safe between threads."""

from __future__ import annotations

import contextlib
import http.client
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlsplit

from memory_app.errors import MemoryAppError, StoreUnavailable

TIMEOUT_SECONDS = 60


@dataclass(frozen=True, slots=True)
class Api:
    """The API as one caller sees it, with the caller's key."""

    connection: http.client.HTTPConnection
    key: str = field(repr=False)

    def call(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """The answer's JSON. `StoreUnavailable` when there is none; `MemoryAppError` with what a refusal says."""
        headers = {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"}
        content = None if body is None else json.dumps(body)
        try:
            self.connection.request(method, path, body=content, headers=headers)
            answer = self.connection.getresponse()
            text = answer.read()
        except (OSError, http.client.HTTPException) as error:
            self.connection.close()
            raise StoreUnavailable(f"the API does not answer ({type(error).__name__})") from error
        if answer.status >= 400:
            raise MemoryAppError(f"{method} {path}: {answer.status} {_reason(text)}")
        return json.loads(text) if text else None


@contextlib.contextmanager
def calling(address: str, key: str) -> Iterator[Api]:
    """A connection to the API at ``address``, such as ``http://127.0.0.1:8321``."""
    url = urlsplit(address)
    connection = http.client.HTTPConnection(url.hostname or "", url.port, timeout=TIMEOUT_SECONDS)
    with contextlib.closing(connection):
        yield Api(connection, key)


def user_path(agent: str, user: str) -> str:
    """The part of an address that names whose memory it is about."""
    return f"/v1/agents/{quote(agent, safe='')}/users/{quote(user, safe='')}"


def _reason(text: bytes) -> str:
    with contextlib.suppress(ValueError, KeyError, TypeError):
        return str(json.loads(text)["error"]["message"])
    # Not of our shape: something else may listen there.
    return text[:200].decode(errors="replace")
