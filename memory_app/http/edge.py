"""What stands before the routes: who asks, how large the request may be, and how its address is read.

Three small layers around the application, outermost first: `Addresses`, `Bodies` behind `auth`'s key check. They speak
ASGI and never block; whatever asks the database goes to the thread pool.
"""

from __future__ import annotations

from urllib.parse import unquote

from starlette.routing import compile_path
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from memory_app.errors import InvalidInput, RateLimited, TooLarge
from memory_app.http.errors import error_answer

SLASH = "\x1f"
"""Stands for a slash inside a name while the address is taken apart. Names have no control characters."""


class Addresses:
    """Reads the address strictly: ``%2F`` belongs to a name, and what is not UTF-8 is refused.

    The server decodes leniently, so that two users whose names are invalid bytes would become one. ``prefix`` is what a
    proxy puts before every address; some proxies take it off again, and some do not.
    """

    def __init__(self, app: ASGIApp, *, prefix: str = "") -> None:
        self.app = app
        self.prefix = prefix

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            try:
                path = _below(self.prefix, readable_path(scope))
                scope = {**scope, "path": path, "root_path": self.prefix}
            except UnicodeDecodeError:
                error = InvalidInput("path: a name in the address is not valid UTF-8", field="path")
                await error_answer(error)(scope, receive, send)
                return
        await self.app(scope, receive, send)


def readable_path(scope: Scope) -> str:
    """The path with each segment decoded by itself. Raises `UnicodeDecodeError`."""
    raw = scope.get("raw_path")
    if raw is None:
        return str(scope["path"])
    segments = raw.split(b"?")[0].decode("utf-8").split("/")
    return "/".join(_segment(segment) for segment in segments)


def _below(prefix: str, path: str) -> str:
    """The path without the prefix, if it has it."""
    if prefix and (path == prefix or path.startswith(prefix + "/")):
        return path[len(prefix) :] or "/"
    return path


def _segment(raw: str) -> str:
    decoded = unquote(raw, errors="strict")
    return decoded.replace(SLASH, "\0").replace("/", SLASH)


class Bodies:
    """Refuses a body above ``limit_bytes`` with 413 before anybody parses it, announced or not.

    A snapshot, posted to ``import_path``, may have ``import_limit_bytes``. One that is larger than other bodies may be
    takes its turn: while it is there, the next one gets 429, so that the process does not hold several at once.
    """

    def __init__(self, app: ASGIApp, *, limit_bytes: int, import_limit_bytes: int, import_path: str) -> None:
        self.app = app
        self.import_path = compile_path(import_path)[0]
        self.limit_bytes = limit_bytes
        self.import_limit_bytes = max(import_limit_bytes, limit_bytes)
        self.imported: Scope | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        try:
            await self._pass_on(scope, receive, send)
        finally:
            if self.imported is scope:
                self.imported = None

    async def _pass_on(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            body = await self._read(scope, receive)
        except (TooLarge, RateLimited) as error:
            await error_answer(error)(scope, receive, send)
            return
        if body is not None:
            await self.app(scope, _replay(body, receive), send)

    async def _read(self, scope: Scope, receive: Receive) -> list[bytes] | None:
        """The whole body, alone in its list; None when the caller hung up meanwhile."""
        for name, value in scope["headers"]:
            if name == b"content-length" and value.isdigit():
                self._check(int(value), scope)
        chunks: list[bytes] = []
        size, more = 0, True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return None
            chunks.append(message.get("body", b""))
            size += len(chunks[-1])
            self._check(size, scope)
            more = message.get("more_body", False)
        return [b"".join(chunks)]

    def _check(self, size: int, scope: Scope) -> None:
        """Raises `TooLarge` above the limit, and `RateLimited` when a large snapshot has to wait for another."""
        if size <= self.limit_bytes:
            return
        if scope["method"] != "POST" or not self.import_path.match(scope["path"]):
            raise TooLarge(f"body: at most {self.limit_bytes} bytes; send several requests", field="body")
        if size > self.import_limit_bytes:
            raise TooLarge(
                f"body: a snapshot may have {self.import_limit_bytes} bytes; raise http.import_limit_bytes, "
                "or use `memory import` beside the database",
                field="body",
            )
        if self.imported is not None and self.imported is not scope:
            raise RateLimited("another large snapshot is being imported; try again", retry_after=5)
        self.imported = scope


def _replay(held: list[bytes], receive: Receive) -> Receive:
    """The body once; then nobody here keeps it any longer."""

    async def read_once() -> Message:
        if not held:
            return await receive()
        return {"type": "http.request", "body": held.pop(), "more_body": False}

    return read_once
