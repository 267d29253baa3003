"""What stands before the routes: who asks, how large the request may be, and how its address is read.

Three small layers around the application, outermost first: `Addresses`, `Bodies` behind `auth`'s key check. They speak
ASGI and never block; whatever asks the database goes to the thread pool.
"""

from __future__ import annotations

from urllib.parse import unquote

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from memory_app.errors import InvalidInput, TooLarge
from memory_app.http.errors import error_answer

SLASH = "\x1f"
"""Stands for a slash inside a name while the address is taken apart. Names have no control characters."""


class Addresses:
    """Reads the address strictly: ``%2F`` belongs to a name, and what is not UTF-8 is refused.

    The server decodes leniently, so that two users whose names are invalid bytes would become one.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            try:
                scope = {**scope, "path": readable_path(scope)}
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


def _segment(raw: str) -> str:
    decoded = unquote(raw, errors="strict")
    return decoded.replace(SLASH, "\0").replace("/", SLASH)


class Bodies:
    """Refuses a body above ``limit_bytes`` with 413 before anybody parses it, announced or not."""

    def __init__(self, app: ASGIApp, *, limit_bytes: int) -> None:
        self.app = app
        self.limit_bytes = limit_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        try:
            body = await self._read(scope, receive)
        except TooLarge as error:
            await error_answer(error)(scope, receive, send)
            return
        if body is None:
            return
        await self.app(scope, _replay(body, receive), send)

    async def _read(self, scope: Scope, receive: Receive) -> bytes | None:
        """The whole body; None when the caller hung up meanwhile."""
        for name, value in scope["headers"]:
            if name == b"content-length" and value.isdigit() and int(value) > self.limit_bytes:
                raise self._too_large()
        chunks: list[bytes] = []
        size, more = 0, True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return None
            chunks.append(message.get("body", b""))
            size += len(chunks[-1])
            if size > self.limit_bytes:
                raise self._too_large()
            more = message.get("more_body", False)
        return b"".join(chunks)

    def _too_large(self) -> TooLarge:
        return TooLarge(f"body: at most {self.limit_bytes} bytes; send several requests", field="body")


def _replay(body: bytes, receive: Receive) -> Receive:
    sent = False

    async def read_once() -> Message:
        nonlocal sent
        if sent:
            return await receive()
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return read_once
