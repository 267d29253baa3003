"""Pages for a person who opens the API's address in a browser: where the docs are, and the docs.

All files come from this package. Neither the server nor the browser fetches anything from elsewhere.
"""

from __future__ import annotations

from functools import cache
from importlib import metadata, resources
from typing import Final

from fastapi import APIRouter, Request, Response
from starlette.responses import JSONResponse, RedirectResponse

from memory_app.errors import NotFound

router = APIRouter(include_in_schema=False)

DOCS: Final = "/docs"

MEDIA_TYPES: Final = {
    "docs.js": "text/javascript; charset=utf-8",
    "swagger-ui-bundle.js": "text/javascript; charset=utf-8",
    "swagger-ui.css": "text/css; charset=utf-8",
    "favicon-32x32.png": "image/png",
}
"""The files that the page needs; no others are served."""

PAGE_HEADERS: Final = {
    # Swagger UI writes styles into its elements.
    "Content-Security-Policy": "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}
FILE_HEADERS: Final = {"Cache-Control": "public, max-age=3600", "X-Content-Type-Options": "nosniff"}


@router.get("/")
def root(request: Request) -> Response:
    """Browsers are led to the docs, programs are told where what is."""
    prefix = request.scope.get("root_path", "")
    headers = {"Vary": "Accept"}
    if "text/html" in request.headers.get("accept", ""):
        return RedirectResponse(prefix + DOCS, status_code=307, headers=headers)
    addresses = {
        "docs": DOCS,
        "description": "/openapi.json",
        **({"page": "/ui"} if request.app.state.runtime.settings.page.enabled else {}),
        "live": "/health/live",
        "ready": "/health/ready",
    }
    content = {
        "name": "memory",
        "version": metadata.version("memory-app"),
        **{name: prefix + address for name, address in addresses.items()},
    }
    return JSONResponse(content, headers=headers)


@router.get(DOCS)
def docs() -> Response:
    """The page on which the API can be read and tried."""
    return Response(_file("docs.html"), media_type="text/html; charset=utf-8", headers=PAGE_HEADERS)


@router.get(DOCS + "/assets/{name}")
def asset(name: str) -> Response:
    """A file that the page needs."""
    # A name from outside never becomes a path: only the files of the table are served.
    if name not in MEDIA_TYPES:
        raise NotFound("no such address; see /docs")
    return Response(_file(name), media_type=MEDIA_TYPES[name], headers=FILE_HEADERS)


@cache
def _file(name: str) -> bytes:
    return resources.files("memory_app.web").joinpath("assets", name).read_bytes()
