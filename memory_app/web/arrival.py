"""Receive the body of a request within its limits of size and time.

A body that stops coming, or comes in drops, is given up with 408. A snapshot larger than other bodies may be is written
to a temporary file while it arrives; it is parsed in a thread, piece by piece, when a slot for imports is free.
"""

from __future__ import annotations

import asyncio
import io
import json
import math
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from tempfile import TemporaryFile
from typing import IO, Any

from anyio import CapacityLimiter, to_thread
from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope

from memory_app.errors import MemoryAppError, RequestTooSlow, TooLarge, Transient
from memory_app.settings import Http
from memory_app.web.large_json import Reader
from memory_app.web.places import InFlight, Places

SPOOL_CHUNK_BYTES = 1_000_000

# About a millisecond of parsing, in which no other call goes on.
PARSE_INLINE_BYTES = 64_000
"""A body up to this size is parsed in the event loop."""

# Each takes about four times its size of memory.
LARGE_IMPORTS = 1
"""Large snapshots that a process reads and stores at the same time."""

LARGE_IMPORTS_OF_TENANT = 2
"""Large snapshots of a tenant that arrive or wait for their turn in a process."""

STOP_SECONDS = 5.0
"""Time that a body which is arriving still has when the server stops."""


@dataclass(frozen=True, slots=True)
class Arrived:
    """A body that is whole: its bytes, or the file that holds them."""

    content: bytes = b""
    file: IO[bytes] | None = None

    @property
    def is_small(self) -> bool:
        return self.file is None and len(self.content) <= PARSE_INLINE_BYTES

    def stream(self) -> IO[bytes]:
        """The bytes from their beginning."""
        if self.file is None:
            return io.BytesIO(self.content)
        self.file.seek(0)
        return self.file

    def json(self, decoder: json.JSONDecoder) -> Any:
        """The JSON in it. Takes long where the body is not small: call it in a thread."""
        if self.file is None:
            return decoder.decode(self.content.decode("utf-8"))
        self.file.seek(0)
        return Reader(_chunks(self.file), decoder).read()


@dataclass(slots=True)
class Arrivals:
    """The bodies that arrive at a process."""

    settings: Http
    parsers: CapacityLimiter = field(default_factory=lambda: CapacityLimiter(2))
    writers: CapacityLimiter = field(default_factory=lambda: CapacityLimiter(4))
    large: InFlight = field(
        default_factory=lambda: InFlight(LARGE_IMPORTS_OF_TENANT, what="large snapshots of this tenant")
    )
    turns: Places = field(init=False)
    spooled_bytes: int = 0
    timeouts: set[asyncio.Timeout] = field(default_factory=set)
    stops_at: float = math.inf
    """By the clock of the event loop: when bodies that still arrive are given up, because the server stops."""

    def __post_init__(self) -> None:
        self.turns = Places(LARGE_IMPORTS, patience_seconds=self.settings.import_wait_seconds)

    def stop(self) -> None:
        """Give bodies that are arriving only little time: the server stops."""
        self.stops_at = asyncio.get_running_loop().time() + STOP_SECONDS
        for timeout in self.timeouts:
            timeout.reschedule(min(timeout.when() or math.inf, self.stops_at))

    @asynccontextmanager
    async def body(
        self, scope: Scope, receive: Receive, *, tenant_id: int, is_import: bool
    ) -> AsyncIterator[Arrived]:
        """The whole body, for as long as the block lasts.

        Raises `TooLarge`, `RequestTooSlow`, `RateLimited`, `Transient`, or `ClientDisconnect` when the caller hung up.
        """
        usual = self.settings.body_limit_bytes
        limit = max(usual, self.settings.import_limit_bytes) if is_import else usual
        # By its announcement first: a body that is too large is refused before any of it is read.
        announced = _announced_bytes(scope)
        _check_size(announced, limit, usual)
        stream = _Stream(self, receive)
        content = b"" if announced > usual else await stream.read(usual)
        _check_size(len(content), limit, usual)
        if max(announced, len(content)) <= usual:
            yield Arrived(content)
            return
        # The turn comes last: a slow sender costs disk only, and keeps nobody else from importing.
        with self.large.counted(tenant_id):
            async with self._spooled(content, stream, limit) as file, self.turns.held(tenant_id):
                yield Arrived(file=file)

    @asynccontextmanager
    async def _spooled(self, content: bytes, stream: _Stream, limit: int) -> AsyncIterator[IO[bytes]]:
        """The body in a file, which is gone afterwards."""
        size = 0
        with TemporaryFile() as file:
            try:
                chunk = content or await stream.read(SPOOL_CHUNK_BYTES)
                while chunk:
                    # A chunked body announces no size, and another may be larger than announced.
                    _check_size(size + len(chunk), limit, self.settings.body_limit_bytes)
                    if self.spooled_bytes + len(chunk) > self.settings.spool_limit_bytes:
                        raise Transient("too many large files are arriving; try again", retry_after=5)
                    # Counted before it is written: other bodies arrive during the write.
                    size += len(chunk)
                    self.spooled_bytes += len(chunk)
                    await self._write(file, chunk)
                    chunk = await stream.read(SPOOL_CHUNK_BYTES)
                yield file
            finally:
                self.spooled_bytes -= size

    async def _write(self, file: IO[bytes], content: bytes) -> None:
        try:
            await to_thread.run_sync(file.write, content, limiter=self.writers)
        except OSError as error:
            raise Transient("no room to hold a large snapshot; try again", retry_after=5) from error


class _Stream:
    """A body as it comes in. Each period of ``body_seconds`` must bring its share of bytes, or the end."""

    def __init__(self, arrivals: Arrivals, receive: Receive) -> None:
        self._arrivals = arrivals
        self._receive = receive
        self._share = round(arrivals.settings.body_seconds * arrivals.settings.body_rate_bytes)
        self._is_whole = False
        self._begin_period()

    async def read(self, size: int) -> bytes:
        """More than ``size`` bytes, or all there are; nothing at the end."""
        content = bytearray()
        while not self._is_whole and len(content) <= size:
            content += await self._next()
        return bytes(content)

    async def _next(self) -> bytes:
        timeouts = self._arrivals.timeouts
        try:
            async with asyncio.timeout_at(min(self._ends_at, self._arrivals.stops_at)) as timeout:
                timeouts.add(timeout)
                message = await self._receive()
        except TimeoutError:
            raise self._error() from None
        finally:
            timeouts.discard(timeout)
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        chunk: bytes = message.get("body", b"")
        self._is_whole = not message.get("more_body", False)
        self._bytes += len(chunk)
        # A fast body gains no time for later: the next period begins now.
        if self._bytes >= self._share:
            self._begin_period()
        return chunk

    def _error(self) -> MemoryAppError:
        if math.isfinite(self._arrivals.stops_at):
            return Transient("this server is stopping; send the same again", retry_after=1)
        settings = self._arrivals.settings
        return RequestTooSlow(
            f"body: came too slowly; a body must arrive within {settings.body_seconds:g} s, or at "
            f"{settings.body_rate_bytes} bytes a second; send it again",
            field="body",
        )

    def _begin_period(self) -> None:
        self._bytes = 0
        self._ends_at = asyncio.get_running_loop().time() + self._arrivals.settings.body_seconds


def _announced_bytes(scope: Scope) -> int:
    lengths = [value for name, value in scope["headers"] if name == b"content-length"]
    # Of several headers the largest counts, so that none can hide the true size.
    return max((int(value) for value in lengths if value.isdigit()), default=0)


def _check_size(size: int, limit: int, usual: int) -> None:
    if size <= limit:
        return
    if limit == usual:
        raise TooLarge(f"body: at most {limit} bytes; send several requests", field="body")
    raise TooLarge(
        f"body: a snapshot or a file to import may have {limit} bytes; raise http.import_limit_bytes, "
        "or use `memory import` beside the database",
        field="body",
    )


def _chunks(file: IO[bytes]) -> Iterator[bytes]:
    while chunk := file.read(SPOOL_CHUNK_BYTES):
        yield chunk
