"""Post one message to a checked address. Everything has an end: connecting, the whole exchange, the size of an answer.

The connection goes to the very address that was checked, while certificate and SNI are those of the name: a name that
resolves otherwise a moment later changes nothing. No redirect is followed, no proxy of the environment is used, and
nothing of an answer leaves this module but its status and Retry-After.
"""

from __future__ import annotations

import http.client
import socket
import ssl
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from threading import Timer

from memory_app.events.webhooks.address import (
    AddressRefused,
    Resolver,
    Rules,
    Target,
    check_addresses,
    resolve,
)
from memory_app.providers.provider.retry_after import retry_after

ANSWER_LIMIT_BYTES = 65_536
"""Of a body that is read, so that the receiver can finish sending it; then the connection is closed."""


class Outcome(StrEnum):
    """How a try ended. The values are stored and shown: never rename one."""

    DELIVERED = "delivered"
    GONE = "gone"
    THROTTLED = "throttled"
    REDIRECTED = "redirected"
    REFUSED = "refused"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    UNREACHABLE = "unreachable"
    UNTRUSTED = "untrusted"
    ADDRESS_REFUSED = "address_refused"
    NO_SECRET = "no_secret"


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of a try. ``status`` is None where there was no answer; ``retry_after`` is in seconds."""

    outcome: Outcome
    status: int | None = None
    retry_after: float | None = None


@dataclass(frozen=True, slots=True)
class Post:
    """A way out. ``trust`` says which certificates are accepted."""

    rules: Rules
    connect_seconds: float
    total_seconds: float
    trust: ssl.SSLContext = field(default_factory=ssl.create_default_context)
    resolver: Resolver = resolve

    def __call__(self, target: Target, body: bytes, headers: Mapping[str, str]) -> Answer:
        """Send ``body`` and say what came of it. Never raises for what the network or the receiver does."""
        deadline = time.monotonic() + self.total_seconds
        try:
            addresses = self.resolver(target.host, target.port)
            check_addresses(addresses, self.rules)
        except AddressRefused:
            return Answer(Outcome.ADDRESS_REFUSED)
        except (OSError, UnicodeError):
            return Answer(Outcome.UNREACHABLE)
        connection = _Connection(target, self, deadline)
        watchdog = Timer(max(deadline - time.monotonic(), 0), connection.cut)
        watchdog.daemon = True
        watchdog.start()
        try:
            connection.open(addresses)
            return _exchange(connection, target, body, headers)
        except ssl.SSLCertVerificationError:
            return Answer(Outcome.UNTRUSTED)
        except (OSError, http.client.HTTPException, ValueError) as error:
            # A watchdog that cut the line shows as an end of the stream.
            is_late = isinstance(error, TimeoutError) or time.monotonic() >= deadline
            return Answer(Outcome.TIMED_OUT if is_late else Outcome.UNREACHABLE)
        finally:
            watchdog.cancel()
            connection.close()


class _Connection(http.client.HTTPConnection):
    """A connection to one of some addresses, under the name of the target."""

    def __init__(self, target: Target, post: Post, deadline: float) -> None:
        super().__init__(target.host, target.port)
        # What the header Host leaves out.
        self.default_port = 443 if target.scheme == "https" else 80
        self._target = target
        self._post = post
        self._deadline = deadline
        self._line: socket.socket | None = None

    def open(self, addresses: tuple[str, ...]) -> None:
        """Connect to the first address that takes us. Raises `OSError`."""
        line = self._first(addresses)
        self._line = line
        # The watchdog may have come while there was nothing to cut.
        self.check_time()
        if self._target.scheme == "https":
            # The handshake apart, so that it can be cut, too.
            line = self._post.trust.wrap_socket(
                line, server_hostname=self._target.host, do_handshake_on_connect=False
            )
            self._line = line
            line.settimeout(self._post.connect_seconds)
            line.do_handshake()
        line.settimeout(self._post.total_seconds)
        self.sock = line

    def _first(self, addresses: tuple[str, ...]) -> socket.socket:
        failure: OSError = OSError("no address")
        until = min(self._deadline, time.monotonic() + self._post.connect_seconds)
        for address in addresses:
            seconds = until - time.monotonic()
            if seconds <= 0:
                raise TimeoutError
            try:
                return socket.create_connection((address, self._target.port), timeout=seconds)
            except OSError as error:
                failure = error
        raise failure

    def check_time(self) -> None:
        if time.monotonic() >= self._deadline:
            raise TimeoutError

    def cut(self) -> None:
        """End whatever goes on; called from another thread when the time is over."""
        line = self._line
        if line is not None:
            with suppress(OSError):
                # Not that of an SSL socket, which would let the reading thread go on without encryption.
                socket.socket.shutdown(line, socket.SHUT_RDWR)

    def close(self) -> None:
        super().close()
        if self._line is not None:
            self._line.close()


def _exchange(connection: _Connection, target: Target, body: bytes, headers: Mapping[str, str]) -> Answer:
    connection.request("POST", target.path, body=body, headers=dict(headers))
    response = connection.getresponse()
    # A head that was cut off passes for a whole one.
    connection.check_time()
    status = response.status
    with suppress(OSError, http.client.HTTPException):
        # The status counts, whatever becomes of the rest.
        response.read(ANSWER_LIMIT_BYTES)
    wait = retry_after({name.lower(): value for name, value in response.getheaders()}, now=datetime.now(UTC))
    return Answer(_outcome_of(status), status, wait)


def _outcome_of(status: int) -> Outcome:
    if 200 <= status < 300:
        return Outcome.DELIVERED
    if 300 <= status < 400:
        return Outcome.REDIRECTED
    if status == 410:
        return Outcome.GONE
    if status == 429:
        return Outcome.THROTTLED
    return Outcome.FAILED if status >= 500 else Outcome.REFUSED
