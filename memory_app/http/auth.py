"""Who asks. Every address under ``/v1`` needs a key; the tenant comes from the key and from nowhere else.

The check stands before routing and before the body, so that no route can be forgotten and strangers cost little. A key
is remembered for a few seconds by its digest, which is also how long a revoked one goes on working.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from ipaddress import ip_address
from threading import Lock
from urllib.parse import urlsplit

from fastapi import Request
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from memory_app.errors import Forbidden, MemoryAppError, Unauthorized
from memory_app.http.errors import error_answer
from memory_app.runtime import Runtime
from memory_app.services import access
from memory_app.store import keys
from memory_app.store.keys import Caller

REMEMBERED_SECONDS = 5.0
"""How long a key is taken for good without asking again."""

NOTED_SECONDS = 60.0
"""How often the last use of a key is written down."""

REMEMBERED_KEYS = 10_000

PROTECTED = "/v1"

_NEEDED = "a key is needed: send `Authorization: Bearer <key>`; `memory keys create` makes one"
_REFUSED = "the key is unknown, revoked or expired"


@dataclass(slots=True)
class Callers:
    """The keys seen lately, and who holds them. Safe between threads."""

    runtime: Runtime
    clock: Callable[[], float] = time.monotonic
    _known: dict[bytes, tuple[float, Caller]] = field(default_factory=dict)
    _noted: dict[int, float] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def remembered(self, key: str) -> Caller | None:
        """The holder of a key that was good a moment ago; asks nobody."""
        with self._lock:
            until, caller = self._known.get(keys.digest(key), (0.0, None))
        return caller if self.clock() < until else None

    def look_up(self, key: str) -> Caller:
        """The holder according to the database. Raises `Unauthorized` or `StoreUnavailable`."""
        caller = access.look_up(self.runtime, key)
        with self._lock:
            if len(self._known) >= REMEMBERED_KEYS:
                self._known.clear()
            self._known[keys.digest(key)] = (self.clock() + REMEMBERED_SECONDS, caller)
        return caller

    def is_due_for_note(self, caller: Caller) -> bool:
        """Whether the use of this key should be written down now; says so once per `NOTED_SECONDS`."""
        with self._lock:
            now = self.clock()
            if now < self._noted.get(caller.key_id, 0.0):
                return False
            if len(self._noted) >= REMEMBERED_KEYS:
                self._noted.clear()
            self._noted[caller.key_id] = now + NOTED_SECONDS
            return True


class KeyCheck:
    """Lets only holders of a key through to ``/v1``. ``anonymous`` is who asks without one, on loopback only."""

    def __init__(self, app: ASGIApp, *, callers: Callers, anonymous: Caller | None = None) -> None:
        self.app = app
        self.callers = callers
        self.anonymous = anonymous

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not is_protected(scope["path"]):
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        try:
            caller = await self._caller(headers)
        except MemoryAppError as error:
            await error_answer(error)(scope, receive, send)
            return
        scope.setdefault("state", {})["caller"] = caller
        await self.app(scope, receive, send)
        if caller is not self.anonymous and self.callers.is_due_for_note(caller):
            await run_in_threadpool(access.note_use, self.callers.runtime, caller)

    async def _caller(self, headers: Headers) -> Caller:
        given = headers.getlist("authorization")
        if not given and self.anonymous is not None:
            check_local(headers)
            return self.anonymous
        key = bearer_key(given)
        known = self.callers.remembered(key)
        return known if known is not None else await run_in_threadpool(self.callers.look_up, key)


def is_protected(path: str) -> bool:
    return path == PROTECTED or path.startswith(PROTECTED + "/")


def bearer_key(given: list[str]) -> str:
    """The key of the one ``Authorization`` header. `Unauthorized` for none, several or a mistyped one."""
    if len(given) != 1:
        raise Unauthorized(_NEEDED)
    scheme, _, key = given[0].partition(" ")
    key = key.strip()
    if scheme.lower() != "bearer" or not key:
        raise Unauthorized(_NEEDED)
    if not key.isascii() or not keys.is_well_formed(key):
        raise Unauthorized(_REFUSED)
    return key


def check_local(headers: Headers) -> None:
    """Without a key only programs of this machine may ask, not web pages that a browser here has open."""
    names = [headers.get("host", "")]
    if "origin" in headers:
        names.append(urlsplit(headers["origin"]).netloc)
    if not all(is_loopback(urlsplit(f"//{name}").hostname or "") for name in names):
        raise Unauthorized("a key is needed: without one only this machine is served, by a loopback name")


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


@dataclass(frozen=True, slots=True)
class Call:
    """What a route is given: the live parts, and for whom."""

    runtime: Runtime
    tenant_id: int


def may(right: str) -> Callable[[Request], Awaitable[Call]]:
    """A dependency: the call of a caller who has ``right``, or `Forbidden`."""

    async def call(request: Request) -> Call:
        caller: Caller | None = getattr(request.state, "caller", None)
        if caller is None:  # Served below another path, where the check at the edge did not see it.
            raise Unauthorized(_NEEDED)
        if right not in caller.rights:
            raise Forbidden(
                f"this key lacks the right {right!r}; make one that has it with `memory keys create`"
            )
        return Call(request.app.state.runtime, caller.tenant_id)

    return call
