"""Make the HTML of a view from a template, with the headers that every answer of the page has.

A template shows what people said: values are escaped wherever they stand, and the content policy lets a browser run and
load only files of this package.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

from fastapi import Request
from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.responses import HTMLResponse

from memory_app import correlation
from memory_app.errors import MemoryAppError
from memory_app.page import words
from memory_app.page.navigation import NOTICE_COOKIE, NOTICES, entries
from memory_app.web.edge import DOTTED
from memory_app.web.errors import status_of

HERE: Final = "/ui"
"""Where the page is, below the prefix of a proxy."""

HEADERS: Final[Mapping[str, str]] = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}

_TEMPLATES = Environment(
    loader=PackageLoader("memory_app.page"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_TEMPLATES.filters.update(words.FILTERS)


def page(request: Request, template: str, /, *, status: int = 200, **values: Any) -> HTMLResponse:
    """The answer with a template filled in. ``values`` are what it shows."""
    notice = NOTICES.get(request.cookies.get(NOTICE_COOKIE, ""))
    html = _TEMPLATES.get_template(template).render(
        **values,
        url=Addresses(request),
        navigation=entries(request),
        notice=notice,
        caller=getattr(request.state, "caller", None),
        token=getattr(request.state, "token", ""),
        is_part="HX-Request" in request.headers,
    )
    answer = HTMLResponse(html, status_code=status, headers=dict(HEADERS))
    if notice is not None:
        answer.delete_cookie(NOTICE_COOKIE, path=cookie_path(request))
    return answer


def error_page(request: Request, error: MemoryAppError) -> HTMLResponse:
    """The answer that says what went wrong: a page of its own, or a note where a part of a page was asked for."""
    template = "error_note.html" if "HX-Request" in request.headers else "error.html"
    status = status_of(error)
    answer = page(
        request, template, status=status, error=error, code=status, request_id=correlation.request_id()
    )
    if status in (429, 503):
        answer.headers["Retry-After"] = str(max(1, round(error.retry_after or 1)))
    return answer


class Addresses:
    """Makes addresses of the page: ``url('agents', name)`` is one below it, with slashes of a name kept apart, and a
    name that is ``..`` no way up."""

    def __init__(self, request: Request) -> None:
        self._prefix = str(request.scope.get("root_path", "")) + HERE

    def __call__(self, *segments: object, **parameters: object) -> str:
        path = "".join("/" + _segment(str(segment)) for segment in segments)
        values = {name: value for name, value in parameters.items() if value is not None}
        query = "&".join(f"{name}={quote(str(value), safe='')}" for name, value in values.items())
        return self._prefix + path + (f"?{query}" if query else "")


def _segment(name: str) -> str:
    return quote(DOTTED + name if name in (".", "..") else name, safe="")


def cookie_path(request: Request) -> str:
    return str(request.scope.get("root_path", "")) + HERE
