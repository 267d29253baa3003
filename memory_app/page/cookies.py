"""The cookies of the page. None can be read by scripts, none is sent along from another site."""

from __future__ import annotations

from typing import Final

from fastapi import Request, Response

from memory_app.page.navigation import NOTICE_COOKIE
from memory_app.page.render import cookie_path
from memory_app.page.session import Session, Signer

SESSION: Final = "memory_page"
LOGIN: Final = "memory_page_login"
"""Ties the login form to the browser that was shown it."""

NOTICE_SECONDS = 30
LOGIN_SECONDS = 3_600


def set_session(request: Request, response: Response, session: Session) -> None:
    signer: Signer = request.app.state.page_signer
    # Without an age: it goes when the browser is closed, and its signature ends before.
    _set(request, response, SESSION, signer.cookie(session), seconds=None)


def end_session(request: Request, response: Response) -> None:
    response.delete_cookie(SESSION, path=cookie_path(request))


def set_login(request: Request, response: Response, nonce: str) -> None:
    _set(request, response, LOGIN, nonce, seconds=LOGIN_SECONDS)


def set_notice(request: Request, response: Response, notice: str) -> None:
    _set(request, response, NOTICE_COOKIE, notice, seconds=NOTICE_SECONDS)


def _set(request: Request, response: Response, name: str, value: str, *, seconds: int | None) -> None:
    response.set_cookie(
        name,
        value,
        max_age=seconds,
        path=cookie_path(request),
        secure=_is_encrypted(request),
        httponly=True,
        samesite="strict",
    )


def _is_encrypted(request: Request) -> bool:
    """Whether the browser came by TLS, which mostly ends at a proxy."""
    # Whoever invents this header only makes their own browser keep the cookie to itself.
    forwarded = request.headers.get("x-forwarded-proto", "").split(",")[0].strip()
    return "https" in (request.url.scheme, forwarded)
