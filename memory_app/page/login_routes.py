"""Log in with a key, log out, and the files of the page."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib import resources
from typing import Final

from anyio import to_thread
from fastapi import APIRouter, Request, Response
from starlette.responses import RedirectResponse

from memory_app.errors import MemoryAppError, NotFound, Unauthorized
from memory_app.page import cookies
from memory_app.page.form import Form, receive
from memory_app.page.render import HERE, Addresses, error_page, page
from memory_app.page.session import NONCE_BYTES, Signer, begin
from memory_app.page.session_check import NO_KEY
from memory_app.tenancy.rows.keys import Caller
from memory_app.web.auth import Callers, bearer_key, check_local

router = APIRouter(include_in_schema=False)

LOGIN: Final = HERE + "/login"

MEDIA_TYPES: Final = {
    "page.css": "text/css; charset=utf-8",
    "htmx.min.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}
"""The files that the page needs; no others are served."""

FILE_HEADERS: Final = {"Cache-Control": "public, max-age=3600", "X-Content-Type-Options": "nosniff"}


@router.get(LOGIN)
async def show_login(request: Request) -> Response:
    """The form that asks for a key."""
    return _form(request, status=200)


@router.post(LOGIN)
async def log_in(request: Request) -> Response:
    """Begin a session for the holder of a key, or for the tenant that needs none."""
    try:
        # Another site could log a visitor in with a key of its own, and read what they do there.
        form = await receive(request, of=request.cookies.get(cookies.LOGIN, ""))
        caller = await _caller(request, form)
    except Unauthorized as error:
        return _form(request, status=401, error=error)
    except MemoryAppError as error:
        return error_page(request, error)
    life = timedelta(minutes=request.app.state.runtime.settings.page.session_minutes)
    session = begin(caller.tenant_id, caller.key_id or NO_KEY, now=datetime.now(UTC), life=life)
    answer = RedirectResponse(Addresses(request)(), status_code=303)
    cookies.set_session(request, answer, session)
    return answer


@router.post(HERE + "/logout")
async def log_out(request: Request) -> Response:
    """End the session in this browser."""
    try:
        await receive(request, of=str(request.state.session))
    except MemoryAppError as error:
        return error_page(request, error)
    answer = RedirectResponse(Addresses(request)("login"), status_code=303)
    cookies.end_session(request, answer)
    return answer


@router.get(HERE + "/assets/{name}")
async def asset(name: str) -> Response:
    """A file that the page needs."""
    # A name from outside never becomes a path: only the files of the table are served.
    if name not in MEDIA_TYPES:
        raise NotFound("no such file")
    return Response(_file(name), media_type=MEDIA_TYPES[name], headers=FILE_HEADERS)


def _form(request: Request, *, status: int, error: MemoryAppError | None = None) -> Response:
    signer: Signer = request.app.state.page_signer
    nonce = secrets.token_urlsafe(NONCE_BYTES)
    request.state.token = signer.token(nonce)
    needs_no_key = request.app.state.page_anonymous is not None
    answer = page(request, "login.html", status=status, error=error, needs_no_key=needs_no_key)
    cookies.set_login(request, answer, nonce)
    return answer


async def _caller(request: Request, form: Form) -> Caller:
    """Who logs in. Raises `Unauthorized` or `StoreUnavailable`."""
    key = form.optional("key")
    anonymous: Caller | None = request.app.state.page_anonymous
    if key is None and anonymous is not None:
        check_local(request.headers)
        return anonymous
    if key is None:
        raise Unauthorized("a key is required")
    callers: Callers = request.app.state.page_callers
    return await to_thread.run_sync(callers.look_up, bearer_key([f"Bearer {key}"]), limiter=callers.threads)


@cache
def _file(name: str) -> bytes:
    return resources.files("memory_app.page").joinpath("assets", name).read_bytes()
