"""Authenticate callers. Addresses under ``/v1`` and ``/openai/v1`` require a key; the tenant comes from the key alone.

The check stands before routing and before the body, so that no route can be forgotten and strangers cost little. The
right that a route needs is checked before its body is read.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from ipaddress import ip_address
from threading import Lock
from typing import Any, TypeVar
from urllib.parse import urlsplit

from anyio import CapacityLimiter, to_thread
from fastapi import Request
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from memory_app.errors import Forbidden, InvalidInput, MemoryAppError, StoreUnavailable, Unauthorized
from memory_app.runtime import Runtime
from memory_app.tenancy import access, rates
from memory_app.tenancy.rows import keys
from memory_app.tenancy.rows.keys import Caller
from memory_app.web.edge import SLASH
from memory_app.web.errors import error_answer
from memory_app.web.places import InFlight, Places

T = TypeVar("T")

# Also how long a revoked key goes on working.
REMEMBERED_SECONDS = 5.0
"""How long a key is valid without another look into the database."""

# Not at each request: that would make every read a write.
NOTED_SECONDS = 60.0
"""How often the last use of a key is written down."""

REMEMBERED_KEYS = 10_000

OUTAGE_SECONDS = 900.0
"""How long a key goes on being valid for chats while the database, which alone knows more, is away."""

CHATS = "/openai/v1"
"""Below it a model is asked, which can be done without memory."""

# Each takes a database connection that calls do not take, so strangers with wrong keys hold up nobody.
LOOK_UPS = 2
"""Keys that are looked up at the same time."""

RATE_CHECKS = 8
"""Callers with limits whose buckets are looked at the same time."""

UNREAD_BYTES = 64_000
"""An answer above this size counts as under way until its caller has read it."""

PROTECTED = ("/v1", CHATS)

_REQUIRED = "a key is required: send `Authorization: Bearer <key>`; `memory keys create` makes one"
_REFUSED = "the key is unknown, revoked or expired"


@dataclass(slots=True)
class Callers:
    """The keys of late requests, and who holds them. Safe between threads."""

    runtime: Runtime
    clock: Callable[[], float] = time.monotonic
    # By digest, so that no key itself stays in memory; with the time of the look.
    _callers: dict[bytes, tuple[float, Caller]] = field(default_factory=dict)
    _next_notes: dict[int, float] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)
    threads: CapacityLimiter = field(default_factory=lambda: CapacityLimiter(LOOK_UPS))
    """In which keys are looked up, over all doors of a process."""

    def remembered(self, key: str, *, seconds: float) -> Caller | None:
        """The holder of a key that was valid within so many seconds, without a look into the database."""
        with self._lock:
            looked_at, caller = self._callers.get(keys.digest(key), (-math.inf, None))
        return caller if self.clock() < looked_at + seconds else None

    def look_up(self, key: str) -> Caller:
        """The holder according to the database. Raises `Unauthorized` or `StoreUnavailable`."""
        digest = keys.digest(key)
        try:
            caller = access.look_up(self.runtime, key)
        except Unauthorized:
            with self._lock:
                self._callers.pop(digest, None)
            raise
        with self._lock:
            # Simpler than to find the oldest, and it costs each key one more look.
            if len(self._callers) >= REMEMBERED_KEYS:
                self._callers.clear()
            self._callers[digest] = (self.clock(), caller)
        return caller

    def is_due_for_note(self, caller: Caller) -> bool:
        """Whether the use of this key should be written down now; says so once per `NOTED_SECONDS`."""
        with self._lock:
            now = self.clock()
            if now < self._next_notes.get(caller.key_id, 0.0):
                return False
            if len(self._next_notes) >= REMEMBERED_KEYS:
                self._next_notes.clear()
            self._next_notes[caller.key_id] = now + NOTED_SECONDS
            return True


class KeyCheck:
    """Lets only holders of a key through to ``protected``, and of each tenant only so many requests at the same time.

    ``anonymous`` is the caller without a key, on loopback only.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        callers: Callers,
        in_flight: InFlight,
        anonymous: Caller | None = None,
        protected: tuple[str, ...] = PROTECTED,
    ) -> None:
        self.app = app
        self.protected = protected
        self.callers = callers
        self.in_flight = in_flight
        self.anonymous = anonymous
        self.rate_threads = CapacityLimiter(RATE_CHECKS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not self.guards(scope["path"]):
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        try:
            caller = await self.caller(scope, headers)
            async with AsyncExitStack() as until_sent:
                until_sent.enter_context(self.in_flight.counted(caller.tenant_id))
                await self._admit(caller, headers)
                scope.setdefault("state", {}).update(caller=caller, until_sent=until_sent)
                await self.app(scope, receive, _until_read(send))
        except MemoryAppError as error:
            await self.refusal(scope, error)(scope, receive, send)
            return
        # After the answer, so that nobody waits for it.
        if caller is not self.anonymous and self.callers.is_due_for_note(caller):
            await to_thread.run_sync(
                access.note_use, self.callers.runtime, caller, limiter=self.callers.threads
            )

    def guards(self, path: str) -> bool:
        """Whether an address is only for callers that are known."""
        return is_protected(path, self.protected)

    def refusal(self, scope: Scope, error: MemoryAppError) -> ASGIApp:
        """What somebody is answered who does not get through."""
        return error_answer(error)

    async def _admit(self, caller: Caller, headers: Headers) -> None:
        """Raise `RateLimited` where the key or its tenant has sent as much as it may this minute."""
        if not (caller.limits.has_rate or caller.tenant_limits.has_rate):
            return
        size = headers.get("content-length", "0")
        is_known = "transfer-encoding" not in headers and size.isascii() and size.isdecimal()
        if not is_known:
            # A request whose size nobody knows could have any.
            if caller.limits.bytes_per_minute or caller.tenant_limits.bytes_per_minute:
                raise InvalidInput(
                    "body: the limits of this key need its size; send Content-Length", field="body"
                )
            size = "0"
        # In a thread: the client of Redis waits for its answer.
        await to_thread.run_sync(
            partial(rates.admit, self.callers.runtime, caller, size_bytes=int(size)),
            limiter=self.rate_threads,
        )

    async def caller(self, scope: Scope, headers: Headers) -> Caller:
        """Who asks. Raises `Unauthorized` or `StoreUnavailable`."""
        values = headers.getlist("authorization")
        if not values and self.anonymous is not None:
            check_local(headers)
            return self.anonymous
        key = bearer_key(values)
        caller = self.callers.remembered(key, seconds=REMEMBERED_SECONDS)
        if caller is not None:
            return caller
        try:
            return await to_thread.run_sync(self.callers.look_up, key, limiter=self.callers.threads)
        except StoreUnavailable:
            is_chat = is_protected(scope["path"], (CHATS,))
            caller = self.callers.remembered(key, seconds=OUTAGE_SECONDS) if is_chat else None
            if caller is None:
                raise
            return caller


def _until_read(send: Send) -> Send:
    """Send so that the end of a large answer waits until most of it was read."""

    async def send_and_wait(message: Message) -> None:
        is_last = message["type"] == "http.response.body" and not message.get("more_body", False)
        # uvicorn waits before a further part, not after the last one: the request would end at once, and the memory of
        # its unread answer would count against no tenant.
        if is_last and len(message.get("body", b"")) > UNREAD_BYTES:
            await send({**message, "more_body": True})
            message = {"type": "http.response.body", "body": b"", "more_body": False}
        await send(message)

    return send_and_wait


def is_protected(path: str, protected: tuple[str, ...] = PROTECTED) -> bool:
    """Whether the path is one of these, or below one of them."""
    return any(path == place or path.startswith(place + "/") for place in protected)


def bearer_key(values: list[str]) -> str:
    """The key of the one ``Authorization`` header. `Unauthorized` for none, several or a mistyped one."""
    if len(values) != 1:
        raise Unauthorized(_REQUIRED)
    scheme, _, key = values[0].partition(" ")
    key = key.strip()
    if scheme.lower() != "bearer" or not key:
        raise Unauthorized(_REQUIRED)
    # A key with a typing error fails its check sum here, and costs no look into the database.
    if not key.isascii() or not keys.is_well_formed(key):
        raise Unauthorized(_REFUSED)
    return key


def check_local(headers: Headers) -> None:
    """`Unauthorized` for a call without a key that comes from a web page in a browser of this machine."""
    # A page from elsewhere has its own origin, and after a rebinding of its name its own host.
    names = [headers.get("host", "")]
    if "origin" in headers:
        names.append(urlsplit(headers["origin"]).netloc)
    if not all(is_loopback(urlsplit(f"//{name}").hostname or "") for name in names):
        raise Unauthorized("a key is required: without one only this machine is served, by a loopback name")


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


@dataclass(frozen=True, slots=True)
class Call:
    """The argument of a route: the runtime and the tenant of the caller."""

    runtime: Runtime
    tenant_id: int
    places: Places

    async def work(self, function: Callable[..., T], *arguments: Any) -> T:
        """Call ``function`` in a thread, with a place of the tenant. For routes that are coroutines."""
        async with self.places.held(self.tenant_id):
            return await to_thread.run_sync(function, *arguments)


@dataclass(frozen=True, slots=True)
class Need:
    """A dependency: the call of a caller who has ``right``, or `Forbidden`.

    ``names_in_body``: the agent and the user stand in the body, so the route itself must check whom the key is for.
    """

    right: str
    names_in_body: bool = False

    async def __call__(self, request: Request) -> Call:
        # `StrictRoute` has checked the right before it read the body; another kind of route has not.
        caller = self.check(request)
        runtime: Runtime = request.app.state.runtime
        return Call(runtime.bound(caller.agent, caller.user), caller.tenant_id, request.app.state.places)

    def check(self, request: Request) -> Caller:
        """The caller, or `Forbidden`."""
        caller: Caller | None = getattr(request.state, "caller", None)
        # Served below another path, where `KeyCheck` did not look at it.
        if caller is None:
            raise Unauthorized(_REQUIRED)
        if self.right not in caller.rights:
            raise Forbidden(
                f"this key lacks the right {self.right!r}; make one that has it with `memory keys create`"
            )
        if self.names_in_body:
            return caller
        names = {name: value.replace(SLASH, "/") for name, value in request.path_params.items()}
        caller.check_bound(agent=names.get("agent"), user=names.get("user"))
        return caller
