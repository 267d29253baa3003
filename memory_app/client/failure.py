"""Errors of the API, as the product raises them in process: `memory_app.errors`, by their stable names."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

import httpx2

from memory_app import errors
from memory_app.errors import MemoryAppError, NotSent, ServerUnavailable

_UNSENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.ProxyError)

_BY_STATUS: Mapping[int, type[MemoryAppError]] = {
    400: errors.InvalidInput,
    401: errors.Unauthorized,
    403: errors.Forbidden,
    404: errors.NotFound,
    408: errors.RequestTooSlow,
    409: errors.Conflict,
    413: errors.TooLarge,
    422: errors.InvalidInput,
    429: errors.RateLimited,
    500: errors.Permanent,
    502: ServerUnavailable,
    503: errors.Transient,
    504: ServerUnavailable,
}
"""For names that this release does not know, and for answers of a proxy."""


def _tree(kind: type[MemoryAppError]) -> Iterator[type[MemoryAppError]]:
    yield kind
    for child in kind.__subclasses__():
        yield from _tree(child)


# The nearest to the root counts where children have the name of their parent.
_BY_NAME = {kind.kind: kind for kind in reversed(list(_tree(MemoryAppError)))}


def error_of(response: httpx2.Response, content: bytes) -> MemoryAppError:
    """The error that an answer with a status of 400 or more tells."""
    detail = _detail(content)
    name = _text(detail, "type")
    kind = _BY_NAME.get(name or "") or _BY_STATUS.get(response.status_code, MemoryAppError)
    message = _text(detail, "message") or (
        f"status {response.status_code} from {response.url.host}, without a word of the memory API"
    )
    # Some kinds have a constructor of their own.
    error = kind.__new__(kind)
    MemoryAppError.__init__(
        error, message, field=_text(detail, "field"), retry_after=_retry_after(detail, response)
    )
    error.kind = name or kind.kind
    error.request_id = _text(detail, "request_id") or response.headers.get("x-request-id")
    return error


def transport_error(error: httpx2.HTTPError) -> MemoryAppError:
    """What a failed connection means. Its own words may quote the address, so only the kind of failure is told."""
    name = type(error).__name__
    if isinstance(error, _UNSENT):
        return NotSent(f"the memory API cannot be reached ({name})")
    return ServerUnavailable(f"the memory API did not answer ({name}); whether it acted is not known")


def _detail(content: bytes) -> Mapping[str, object]:
    try:
        answer = json.loads(content)
    except (ValueError, RecursionError):
        return {}
    detail = answer.get("error") if isinstance(answer, dict) else None
    return detail if isinstance(detail, dict) else {}


def _text(detail: Mapping[str, object], name: str) -> str | None:
    value = detail.get(name)
    return value if isinstance(value, str) else None


def _retry_after(detail: Mapping[str, object], response: httpx2.Response) -> float | None:
    value = detail.get("retry_after", response.headers.get("retry-after"))
    try:
        # The header may also be a date, which the API never sends.
        return None if value is None else max(float(str(value)), 0.0)
    except ValueError:
        return None
