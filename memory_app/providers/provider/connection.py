"""The way to one provider: an OpenAI-compatible server by base URL, over the openai SDK.

Nothing is tried twice here, no redirect is followed, and every answer has an end: a time for connecting, a time
between two bytes, a time for the whole body, a size. The address comes from the operator's settings, never from a
request. The key is shown nowhere. Make it after a fork; threads may share it.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from functools import partial
from ipaddress import ip_address
from typing import cast
from urllib.parse import urlsplit

import httpx2
import openai
from pydantic import SecretStr

from memory_app.errors import BadModelOutput, Misconfigured, ProviderUnavailable
from memory_app.providers.provider.failure import ONLY_STREAMS, failure_in, failure_of
from memory_app.providers.provider.wire import USUAL, Timeouts

# At DEBUG the SDK writes whole requests, which hold what people said.
logging.getLogger("openai").setLevel(logging.WARNING)

NO_KEY = "none"
"""Sent where no key is set: the SDK needs one, and would take it from the environment otherwise."""


NO_OBJECT = "{provider} answered something that is not a JSON object"

_HEADERS = {
    # A packed answer could unfold past any limit in one step.
    "Accept-Encoding": "identity",
    # Left out, or the SDK takes both from the environment.
    "OpenAI-Organization": openai.Omit(),
    "OpenAI-Project": openai.Omit(),
}


class Connection:
    """A provider that can be asked. ``provider`` is what errors call it, such as "the language model".

    Raises `Misconfigured` for a base URL that cannot be used.
    """

    def __init__(
        self,
        base_url: str,
        key: SecretStr | None = None,
        *,
        provider: str = "the provider",
        timeouts: Timeouts = USUAL,
        response_limit_bytes: int = 8_000_000,
        connections: int = 64,
    ) -> None:
        checked_url(base_url)
        self.base_url = base_url.rstrip("/")
        self.provider = provider
        self.timeouts = timeouts
        bound = partial(_bound, provider=provider, limit_bytes=response_limit_bytes, seconds=timeouts.total)
        self._client = openai.OpenAI(
            api_key=key.get_secret_value() if key else NO_KEY,
            base_url=self.base_url,
            # By itself the SDK would try twice more; every caller has a way of its own to try later.
            max_retries=0,
            default_headers=cast(Mapping[str, str], _HEADERS),
            http_client=openai.DefaultHttpxClient(
                timeout=_timeout(timeouts),
                # A redirect would carry the key and what people said to an address nobody configured.
                follow_redirects=False,
                limits=httpx2.Limits(
                    max_connections=connections, max_keepalive_connections=connections, keepalive_expiry=30
                ),
                event_hooks={"response": [bound]},
            ),
        )

    def __repr__(self) -> str:
        return f"Connection({self.base_url!r})"

    def post(self, path: str, body: dict[str, object]) -> dict[str, object]:
        """The JSON object that the provider answers to ``body`` at ``path`` under the base URL.

        Raises `ProviderUnavailable`, `RateLimited` or `BadModelOutput`, as `failure` explains.
        """
        answer = self.post_any(path, body)
        if not isinstance(answer, dict):
            # A gateway's page with status 200 says nothing about the request, so the work waits and is not given up.
            raise ProviderUnavailable(NO_OBJECT.format(provider=self.provider))
        return answer

    def post_any(self, path: str, body: dict[str, object]) -> object:
        """The same for a server whose answer may be a list."""
        try:
            response = self._client.post(path, body=body, cast_to=httpx2.Response)
        except openai.OpenAIError as error:
            # Without the cause: its text repeats the request.
            raise failure_of(error, provider=self.provider, now=datetime.now(UTC)) from None
        if response.headers.get("content-type", "").startswith("text/event-stream"):
            raise ProviderUnavailable(ONLY_STREAMS.format(provider=self.provider))
        return self._json(response.content)

    def close(self) -> None:
        self._client.close()

    def __del__(self) -> None:
        """Idle connections go with the last user; nobody else knows when that is."""
        # A constructor that raised has left none.
        if hasattr(self, "_client"):
            self.close()

    def _json(self, content: bytes) -> object:
        try:
            answer: object = json.loads(content)
        except (ValueError, RecursionError):
            raise ProviderUnavailable(NO_OBJECT.format(provider=self.provider)) from None
        failure = failure_in(answer, provider=self.provider) if isinstance(answer, dict) else None
        if failure is not None:
            raise failure
        return answer


# Not a method of Connection: the client would hold its owner, and neither would ever be freed.
def _bound(response: httpx2.Response, *, provider: str, limit_bytes: int, seconds: float) -> None:
    """Give the body of ``response`` its limits. Called by the client as soon as the head of an answer is there."""
    if isinstance(response.stream, httpx2.SyncByteStream):
        response.stream = _Bounded(
            response.stream, provider=provider, limit_bytes=limit_bytes, seconds=seconds
        )


class _Bounded(httpx2.SyncByteStream):
    """The body of an answer with an end: a size, and a time that bytes in a trickle do not prolong."""

    def __init__(
        self, stream: httpx2.SyncByteStream, *, provider: str, limit_bytes: int, seconds: float
    ) -> None:
        self._stream = stream
        self._provider = provider
        self._limit_bytes = limit_bytes
        self._ends_at = time.monotonic() + seconds

    def __iter__(self) -> Iterator[bytes]:
        size = 0
        for chunk in self._stream:
            size += len(chunk)
            if size > self._limit_bytes:
                raise BadModelOutput(f"{self._provider} answered more than {self._limit_bytes} bytes")
            if time.monotonic() > self._ends_at:
                raise ProviderUnavailable(f"{self._provider} did not finish its answer in time")
            yield chunk

    def close(self) -> None:
        self._stream.close()


def checked_url(base_url: str) -> str:
    """``base_url`` if it can be the root of a provider; `Misconfigured` otherwise, without repeating it."""
    parts = urlsplit(base_url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise Misconfigured("base_url: an http or https address is required", field="base_url")
    if parts.username or parts.password:
        raise Misconfigured("base_url: the key belongs into its own setting", field="base_url")
    if parts.query or parts.fragment:
        raise Misconfigured("base_url: no query and no fragment", field="base_url")
    if _is_link_local(parts.hostname):
        raise Misconfigured("base_url: link-local addresses hold a cloud's secrets", field="base_url")
    return base_url


def _is_link_local(host: str) -> bool:
    try:
        address = ip_address(host)
    except ValueError:
        return False
    # ::ffff:169.254.169.254 leads to the same place.
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_link_local


def _timeout(timeouts: Timeouts) -> httpx2.Timeout:
    return httpx2.Timeout(timeouts.read, connect=timeouts.connect, pool=timeouts.connect)
