"""What the rest knows of the way to a provider: it takes JSON and gives JSON. The SDK behind it is loaded on demand."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol

from pydantic import SecretStr

from memory_app.errors import BadModelOutput


@dataclass(frozen=True, slots=True)
class Timeouts:
    """In seconds. ``read`` is the longest silence, ``total`` the longest body after its head has arrived."""

    connect: float = 5.0
    read: float = 30.0
    total: float = 30.0


USUAL = Timeouts()


class Wire(Protocol):
    """A provider that can be asked; see `memory_app.providers.provider.connection.Connection`."""

    def post(self, path: str, body: dict[str, object]) -> dict[str, object]:
        """Raises `ProviderUnavailable`, `RateLimited` or `BadModelOutput`, `Refused` among them."""

    def post_any(self, path: str, body: dict[str, object]) -> object:
        """The same for a server whose answer may be a list."""

    def close(self) -> None: ...


class Refused(BadModelOutput):
    """The provider does not take the request (400). ``hint`` is its own text: to decide by, never to be shown."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


def connect(
    base_url: str,
    key: SecretStr | None = None,
    *,
    provider: str = "the provider",
    timeouts: Timeouts = USUAL,
    response_limit_bytes: int = 8_000_000,
    connections: int = 64,
) -> Wire:
    """The way to an OpenAI-compatible server. Opens nothing yet. Raises `Misconfigured` for a bad address.

    The SDK takes a second to import and 30 MB, which a process without a provider does not pay.
    """
    connection: Wire = import_module("memory_app.providers.provider.connection").Connection(
        base_url,
        key,
        provider=provider,
        timeouts=timeouts,
        response_limit_bytes=response_limit_bytes,
        connections=connections,
    )
    return connection


class Answering(Protocol):
    """An answer that comes; see `memory_app.providers.provider.forward.Answering`."""

    @property
    def status(self) -> int: ...

    @property
    def media_type(self) -> str: ...

    def pieces(self) -> AsyncIterator[bytes]:
        """Raises `ProviderUnavailable`."""

    async def body(self) -> bytes:
        """Raises `ProviderUnavailable`."""

    async def close(self) -> None: ...


class Forwarding(Protocol):
    """A server to which requests are handed on; see `memory_app.providers.provider.forward.Forward`."""

    async def ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Answering:
        """Raises `ProviderUnavailable` or `RateLimited`."""

    async def close(self) -> None: ...


def forwarding(
    base_url: str,
    key: SecretStr | None,
    *,
    provider: str,
    connect_seconds: float,
    silence_seconds: float,
    limit_bytes: int,
) -> Forwarding:
    """The way to a server for requests that are handed on as they are. As `connect`, and for one event loop."""
    forward: Forwarding = import_module("memory_app.providers.provider.forward").Forward(
        base_url,
        key,
        provider=provider,
        connect_seconds=connect_seconds,
        silence_seconds=silence_seconds,
        limit_bytes=limit_bytes,
    )
    return forward
