"""Turn errors into answers: one table of status codes, one shape of body, and nothing of what was sent.

Every answer that is not a success is ``{"error": {"type", "message", "field"?, "retry_after"?,
"request_id"?}}``, whether it comes from our own error tree, the validation of a request, or the routing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from memory_app import correlation
from memory_app.errors import (
    Conflict,
    Forbidden,
    InvalidInput,
    MemoryAppError,
    NotFound,
    Permanent,
    RateLimited,
    RequestTooSlow,
    StoreUnavailable,
    TooLarge,
    Transient,
    Unauthorized,
)
from memory_app.outage import OutageLog
from memory_app.web.validation import dotted, message_of

_STATUS: Mapping[type[MemoryAppError], int] = {
    TooLarge: 413,
    RequestTooSlow: 408,
    InvalidInput: 422,
    Unauthorized: 401,
    Forbidden: 403,
    NotFound: 404,
    Conflict: 409,
    RateLimited: 429,
    Transient: 503,
    Permanent: 500,
    MemoryAppError: 500,
}
"""The nearest class counts, as in an except clause."""

IDEMPOTENCY_KEY = "idempotency_key"

RETRY_AFTER_SECONDS = 1
"""For errors that pass by themselves and carry no time of their own."""


def status_of(error: MemoryAppError) -> int:
    """The status code of an error."""
    # A known idempotency key with other content is no race: the same request would fail for ever.
    if isinstance(error, Conflict) and (error.field or "").endswith(IDEMPOTENCY_KEY):
        return 422
    return next(_STATUS[kind] for kind in type(error).__mro__ if kind in _STATUS)


def error_answer(error: MemoryAppError) -> JSONResponse:
    """The answer for one of our errors."""
    status = status_of(error)
    retry_after = error.retry_after
    headers: dict[str, str] = {}
    if status in (429, 503):
        if retry_after is None:
            retry_after = RETRY_AFTER_SECONDS
        # The header takes whole seconds; with 0 a client would ask again at once.
        headers["Retry-After"] = str(max(math.ceil(retry_after), 1))
    if status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    if status == 408:
        # The rest of the body may still come, and must not be read as the next request.
        headers["Connection"] = "close"
    return answer(
        status,
        error.kind,
        error.message,
        field=error.field,
        retry_after=retry_after,
        headers=headers,
    )


def answer(
    status: int,
    kind: str,
    message: str,
    *,
    field: str | None = None,
    retry_after: float | None = None,
    headers: Mapping[str, str] | None = None,
) -> JSONResponse:
    """An error body; absent parts are left out. The request's log line names the kind."""
    correlation.note_error(kind)
    body: dict[str, object] = {"type": kind, "message": message}
    if field is not None:
        body["field"] = field
    if retry_after is not None:
        body["retry_after"] = retry_after
    request_id = correlation.request_id()
    if request_id is not None:
        body["request_id"] = str(request_id)
    return JSONResponse({"error": body}, status_code=status, headers=dict(headers or {}))


def install(app: FastAPI) -> None:
    """Answer every error of the application in our shape."""
    app.state.outage = OutageLog()
    app.add_exception_handler(MemoryAppError, _on_ours)
    app.add_exception_handler(RequestValidationError, _on_invalid)
    app.add_exception_handler(HTTPException, _on_routing)


def path_of(location: Sequence[int | str]) -> str:
    """A validation error's location as a dotted path: ``turns[3].role``."""
    # The first part says where the field came from: body, query or path.
    path = dotted(location[1:])
    if path:
        return path
    return str(location[0]) if location else "body"


async def _on_ours(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, MemoryAppError)
    if isinstance(error, StoreUnavailable):
        request.app.state.outage.note(error)
    return error_answer(error)


async def _on_invalid(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    # Only the first: a batch of turns may have an error in each of them.
    first: dict[str, Any] = error.errors()[0]
    if first["type"] == "json_invalid":
        return answer(400, InvalidInput.kind, "the body is not valid JSON", field="body")
    field = path_of(first["loc"])
    return answer(422, InvalidInput.kind, f"{field}: {message_of(first)}", field=field)


async def _on_routing(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    headers = dict(error.headers or {})
    if error.status_code == 404:
        return answer(404, NotFound.kind, "no such address; see /docs", headers=headers)
    if error.status_code == 405:
        message = "this address does not take this method; see /docs"
        return answer(405, "method_not_allowed", message, headers=headers)
    if error.status_code == 400:
        return answer(400, InvalidInput.kind, "the body is not valid JSON", field="body", headers=headers)
    # Others come from the framework alone. Its detail may quote the request, so only the phrase is passed on.
    phrase = HTTPStatus(error.status_code).phrase
    kind = phrase.lower().replace(" ", "_")
    return answer(error.status_code, kind, f"the request failed: {phrase}", headers=headers)
