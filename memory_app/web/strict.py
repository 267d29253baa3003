"""Routes that are stricter than the framework's.

A route checks in this order: the right, the query, the size and pace of the body; then it takes a place among the calls
of its tenant. Unknown query parameters are errors, and so are NaN and infinity in JSON.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from inspect import iscoroutinefunction
from typing import IO, Annotated, Any, TypeVar

from anyio import CapacityLimiter, to_thread
from fastapi import Depends, Request, Response
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from starlette.requests import ClientDisconnect
from starlette.responses import StreamingResponse

from memory_app.errors import InvalidInput
from memory_app.records.audit import Action
from memory_app.web.arrival import Arrivals, Arrived
from memory_app.web.audit import audited_request
from memory_app.web.auth import Need
from memory_app.web.errors import path_of
from memory_app.web.places import Places
from memory_app.web.strict_json import DECODER

F = TypeVar("F", bound=Callable[..., Any])

# Not of HTTP, since nobody reads the answer: nginx began to log this status.
HUNG_UP = 499
"""The status, in our own metrics only, of a request whose caller hung up."""


class StrictRequest(Request):
    """A request whose body is whole, and whose JSON is read by `DECODER`."""

    def __init__(self, request: Request, arrived: Arrived, parsers: CapacityLimiter) -> None:
        super().__init__(request.scope, request.receive)
        self._arrived = arrived
        self._parsers = parsers

    @property
    def upload(self) -> IO[bytes]:
        """The body of a route that takes a file."""
        return self._arrived.stream()

    async def body(self) -> bytes:
        """The body, if it is in memory."""
        # For a body in a file one space: FastAPI asks only whether there is anything before it asks for the JSON.
        if self._arrived.file is not None:
            return b" "
        return self._arrived.content

    async def json(self) -> Any:
        """The JSON of the body."""
        if hasattr(self, "_json"):
            return self._json
        if self._arrived.is_small:
            self._json = self._arrived.json(DECODER)
        else:
            # In a thread, so that everybody else is served meanwhile.
            self._json = await to_thread.run_sync(self._arrived.json, DECODER, limiter=self._parsers)
        return self._json


class StrictRoute(APIRoute):
    """A route that knows the right it needs and all its query parameters, and reads its body itself.

    An endpoint says by `takes_snapshot` that its body may be a large snapshot, and by `takes_file` that it is a file.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        answer = super().get_route_handler()
        parameters = frozenset(query_names(self.dependant))
        need = next(needs(self.dependant), None)
        # A coroutine waits by itself, without a thread, and takes a place for each piece of work.
        takes_place = not iscoroutinefunction(self.endpoint)

        async def check_and_answer(request: Request) -> Response:
            caller = None if need is None else need.check(request)
            check_query(request, parameters)
            # Routes for operators need no right, take no body, and belong to no tenant.
            if caller is None:
                return await answer(request)
            places: Places = request.app.state.places
            async with AsyncExitStack() as stack:
                if self.takes_body:
                    request = await stack.enter_async_context(self.whole(request, caller.tenant_id))
                if takes_place:
                    await stack.enter_async_context(places.held(caller.tenant_id))
                response = await answer(request)
                # Its work is done while it is sent, so it keeps its place until then.
                if isinstance(response, StreamingResponse):
                    await request.state.until_sent.enter_async_context(stack.pop_all())
                return response

        async def answer_or_let_go(request: Request) -> Response:
            try:
                async with audited_request(request, _AUDITED.get(self.endpoint)):
                    return await check_and_answer(request)
            except ClientDisconnect:
                return Response(status_code=HUNG_UP)

        return answer_or_let_go

    @property
    def takes_body(self) -> bool:
        return self.body_field is not None or self.takes_file

    @property
    def takes_file(self) -> bool:
        """Whether the body is a file, or holds one."""
        return self.endpoint in _TAKE_FILES

    @asynccontextmanager
    async def whole(self, request: Request, tenant_id: int) -> AsyncIterator[Request]:
        """The request with its whole body."""
        arrivals: Arrivals = request.app.state.arrivals
        is_import = self.takes_file or self.endpoint in _TAKE_SNAPSHOTS
        async with arrivals.body(
            request.scope, request.receive, tenant_id=tenant_id, is_import=is_import
        ) as arrived:
            yield StrictRequest(request, arrived, arrivals.parsers)


_AUDITED: dict[Callable[..., Any], Action] = {}


def audited(action: Action) -> Callable[[F], F]:
    """Decorates an endpoint whose calls are written into the audit log."""

    def mark(endpoint: F) -> F:
        _AUDITED[endpoint] = action
        return endpoint

    return mark


_TAKE_SNAPSHOTS: set[Callable[..., Any]] = set()


def takes_snapshot(endpoint: F) -> F:
    """Decorates an endpoint whose body may be a large snapshot."""
    _TAKE_SNAPSHOTS.add(endpoint)
    return endpoint


_TAKE_FILES: set[Callable[..., Any]] = set()


def takes_file(endpoint: F) -> F:
    """Decorates an endpoint whose body is a file of any form, which `Upload` hands over."""
    _TAKE_FILES.add(endpoint)
    return endpoint


async def _upload(request: Request) -> IO[bytes]:
    assert isinstance(request, StrictRequest)
    return request.upload


Upload = Annotated[IO[bytes], Depends(_upload)]
"""The body as a file; its bytes are there as long as the call lasts."""

FILE_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    }
}
"""What the description of such a route adds."""


def needs(dependant: Dependant) -> Iterator[Need]:
    """The rights that a route needs; our routes need one."""
    for inner in dependant.dependencies:
        if isinstance(inner.call, Need):
            yield inner.call
        yield from needs(inner)


def query_names(dependant: Dependant) -> Iterator[str]:
    """Names of the query parameters of a route and of what it depends on."""
    yield from (str(field.alias) for field in dependant.query_params)
    for inner in dependant.dependencies:
        yield from query_names(inner)


def check_query(request: Request, parameters: frozenset[str]) -> None:
    """`InvalidInput` for a query parameter that is unknown or stands there twice."""
    names: set[str] = set()
    for name, _ in request.query_params.multi_items():
        field = path_of(("query", name))
        # The framework would ignore it, and a misspelt filter would be taken for no filter.
        if name not in parameters:
            takes = ", ".join(sorted(parameters)) or "none"
            raise InvalidInput(f"{field}: unknown parameter; this address takes: {takes}", field=field)
        if name in names:
            raise InvalidInput(f"{field}: stands there twice", field=field)
        names.add(name)
