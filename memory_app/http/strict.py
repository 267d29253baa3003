"""Stricter than the framework: an unknown query parameter is an error, and JSON has no NaN, Infinity or huge number.

A filter that is misspelt must never be taken for no filter.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, NoReturn

from fastapi import Request, Response
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute

from memory_app.errors import InvalidInput
from memory_app.http.errors import path_of

LARGEST_INTEGER = 2**63 - 1


class StrictRequest(Request):
    """A request whose JSON is read by `read_json`."""

    async def json(self) -> Any:
        if not hasattr(self, "_json"):
            self._json = read_json(await self.body())
        return self._json


class StrictRoute(APIRoute):
    """A route that knows all its query parameters and takes none twice."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        answer = super().get_route_handler()
        known = frozenset(query_names(self.dependant))

        async def check_and_answer(request: Request) -> Response:
            check_query(request, known)
            return await answer(StrictRequest(request.scope, request.receive))

        return check_and_answer


def query_names(dependant: Dependant) -> Iterator[str]:
    """Names of the query parameters of a route and of what it depends on."""
    yield from (str(field.alias) for field in dependant.query_params)
    for inner in dependant.dependencies:
        yield from query_names(inner)


def check_query(request: Request, known: frozenset[str]) -> None:
    """`InvalidInput` for a query parameter that is unknown or stands there twice."""
    seen: set[str] = set()
    for name, _ in request.query_params.multi_items():
        field = path_of(("query", name))
        if name not in known:
            takes = ", ".join(sorted(known)) or "none"
            raise InvalidInput(f"{field}: unknown parameter; this address takes: {takes}", field=field)
        if name in seen:
            raise InvalidInput(f"{field}: stands there twice", field=field)
        seen.add(name)


def read_json(body: bytes) -> Any:
    """``body`` as JSON; `json.JSONDecodeError`, `ValueError` or `RecursionError`, which all mean "malformed"."""
    return json.loads(
        body.decode("utf-8"), parse_constant=_refuse, parse_float=_finite_float, parse_int=_small_integer
    )


def _refuse(constant: str) -> NoReturn:
    raise json.JSONDecodeError(f"{constant} is not JSON", constant, 0)


def _finite_float(literal: str) -> float:
    value = float(literal)
    if math.isinf(value):
        raise json.JSONDecodeError("number out of range", literal, 0)
    return value


def _small_integer(literal: str) -> int:
    if len(literal) > 20 or abs(int(literal)) > LARGEST_INTEGER:
        raise json.JSONDecodeError("number out of range", literal, 0)
    return int(literal)
