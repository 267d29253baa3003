"""Hand a request on to an OpenAI-compatible server as it is, and its answer back as it comes. For event loops.

The address and the key are the operator's. No redirect is followed, and every answer has an end: a time for connecting,
a longest silence, a size.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import httpx2
from pydantic import SecretStr

from memory_app.errors import ProviderUnavailable
from memory_app.providers.provider.connection import checked_url
from memory_app.providers.provider.failure import failure_of_status

CALLERS_FAULTS = frozenset({400, 404, 409, 413, 422})
"""Statuses by which a server refuses what the caller sent, which the caller must see to mend it."""

CONNECTIONS = 256

UNREACHED = "could not be reached"
BROKEN_OFF = "broke off its answer"


@dataclass(slots=True)
class Answering:
    """An answer whose head has come. `pieces` gives its body; `close` must be called."""

    status: int
    media_type: str
    provider: str
    limit_bytes: int
    _response: httpx2.Response = field(repr=False)

    async def pieces(self) -> AsyncIterator[bytes]:
        """The body, piece by piece. Raises `ProviderUnavailable` where it breaks off or is too large."""
        size = 0
        try:
            async for piece in self._response.aiter_bytes():
                size += len(piece)
                if size > self.limit_bytes:
                    raise ProviderUnavailable(f"{self.provider} answered more than {self.limit_bytes} bytes")
                yield piece
        except httpx2.HTTPError:
            raise ProviderUnavailable(f"{self.provider} {BROKEN_OFF}") from None

    async def body(self) -> bytes:
        """The whole body. Raises as `pieces`."""
        return b"".join([piece async for piece in self.pieces()])

    async def close(self) -> None:
        await self._response.aclose()


class Forward:
    """The way to one server. Make it in the event loop that uses it. Raises `Misconfigured` for a bad address."""

    def __init__(
        self,
        base_url: str,
        key: SecretStr | None,
        *,
        provider: str,
        connect_seconds: float,
        silence_seconds: float,
        limit_bytes: int,
    ) -> None:
        self._base_url = checked_url(base_url).rstrip("/")
        self._provider = provider
        self._limit_bytes = limit_bytes
        headers = {"Accept-Encoding": "identity"}
        if key is not None:
            headers["Authorization"] = f"Bearer {key.get_secret_value()}"
        self._client = httpx2.AsyncClient(
            headers=headers,
            timeout=httpx2.Timeout(silence_seconds, connect=connect_seconds, pool=connect_seconds),
            follow_redirects=False,
            limits=httpx2.Limits(
                max_connections=CONNECTIONS, max_keepalive_connections=32, keepalive_expiry=30
            ),
        )

    async def ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Answering:
        """The answer to a request, once its head has come; also one that refuses what the caller sent.

        Raises `ProviderUnavailable`, or `RateLimited` with the server's Retry-After.
        """
        content = None if body is None else json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
        headers = {} if content is None else {"Content-Type": "application/json"}
        request = self._client.build_request(method, self._base_url + path, content=content, headers=headers)
        try:
            response = await self._client.send(request, stream=True)
        except httpx2.HTTPError:
            # Without the cause: its text may repeat the request.
            raise ProviderUnavailable(f"{self._provider} {UNREACHED}") from None
        status = response.status_code
        if not 200 <= status < 300 and status not in CALLERS_FAULTS:
            await response.aclose()
            raise failure_of_status(status, response.headers, provider=self._provider, now=datetime.now(UTC))
        media_type = response.headers.get("content-type", "application/json")
        return Answering(status, media_type, self._provider, self._limit_bytes, response)

    async def close(self) -> None:
        await self._client.aclose()
