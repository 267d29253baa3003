"""Read the address of a request strictly, before anything else looks at it."""

from __future__ import annotations

from urllib.parse import unquote

from starlette.types import ASGIApp, Receive, Scope, Send

from memory_app.errors import InvalidInput
from memory_app.web.errors import error_answer

# Names have no control characters, so this one can be in none.
SLASH = "\x1f"
"""Stands for a slash inside a name while the address is split into segments."""


DOTTED = "\x1e"
"""Stands before a name that is ``.`` or ``..`` in an address that a browser opens: it would go up instead, even where
the dots are quoted."""

_DOTTED_NAMES = {DOTTED + name: name for name in (".", "..")}


class Addresses:
    """Decodes addresses: ``%2F`` belongs to a name, and bytes that are not UTF-8 are refused.

    ``prefix`` is what a proxy puts before every address.
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
                # The server would replace the bytes, and two users whose names differ in them would become one.
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
    # Some proxies take their prefix off again, and some do not.
    if prefix and (path == prefix or path.startswith(prefix + "/")):
        return path[len(prefix) :] or "/"
    return path


def _segment(raw: str) -> str:
    decoded = unquote(raw, errors="strict")
    if decoded in _DOTTED_NAMES:
        return _DOTTED_NAMES[decoded]
    # A name that holds our stand-in itself is made invalid, or it would be read as one with a slash.
    return decoded.replace(SLASH, "\0").replace("/", SLASH)
