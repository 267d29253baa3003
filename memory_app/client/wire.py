"""What both clients share: their options, and one request to and from the wire. Nothing here sends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from inspect import Parameter, Signature, signature
from typing import Any
from urllib.parse import urlsplit

import httpx2

from memory_app.client.call import Call
from memory_app.errors import InvalidInput

READ_SECONDS = 30.0
CONNECT_SECONDS = 5.0


def base_url(url: str) -> str:
    """The address of the API, without a slash at its end. Raises `InvalidInput`."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InvalidInput("url: an http or https address is required", field="url")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise InvalidInput("url: only an address and perhaps a path; the key is `key`", field="url")
    return url.rstrip("/")


def headers_of(key: str | None) -> dict[str, str]:
    """Headers of every request. Raises `InvalidInput` for a key that no header can carry."""
    headers = {"Accept": "application/json", "User-Agent": "memory-app-client"}
    if key is not None:
        key = key.strip()
        if not key or not key.isascii() or not key.isprintable():
            raise InvalidInput("key: not a key of the memory API", field="key")
        headers["Authorization"] = f"Bearer {key}"
    return headers


def request_of(
    http: httpx2.Client | httpx2.AsyncClient, url: str, call: Call[Any], *, usual: httpx2.Timeout
) -> httpx2.Request:
    """The request of a call. It may be sent more than once."""
    read = None if usual.read is None else usual.read + call.further_seconds
    timeout = httpx2.Timeout(read, connect=usual.connect, write=usual.write, pool=usual.pool)
    return http.build_request(
        call.method,
        url + call.path,
        params=dict(call.query) or None,
        content=call.body,
        headers=None if call.body is None else {"Content-Type": call.media_type},
        timeout=timeout,
    )


def timeout_of(timeout_seconds: float | None, connect_seconds: float) -> httpx2.Timeout:
    return httpx2.Timeout(timeout_seconds, connect=connect_seconds)


def describe(method: Callable[..., Any], build: Callable[..., Call[Any]]) -> None:
    """Give a method of a client the name, the words and the parameters of the function that builds its call."""
    own = Parameter("self", Parameter.POSITIONAL_ONLY)
    parameters = signature(build).parameters.values()
    method.__name__ = build.__name__
    method.__doc__ = build.__doc__
    method.__signature__ = Signature([own, *parameters])  # type: ignore[attr-defined]


class Lines:
    """Cuts a stream of bytes into lines, at line feeds alone: other ends of lines may stand inside of JSON texts."""

    def __init__(self) -> None:
        self._begun: list[bytes] = []

    def of(self, chunk: bytes) -> Iterator[str]:
        """The lines that ``chunk`` completes."""
        *ends, rest = chunk.split(b"\n")
        for end in ends:
            yield b"".join([*self._begun, end]).decode()
            self._begun = []
        self._begun.append(rest)

    def rest(self) -> Iterator[str]:
        """What stood behind the last line feed, if anything."""
        line = b"".join(self._begun).decode(errors="replace")
        if line:
            yield line
