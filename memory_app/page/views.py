"""The web page of an application: its views, the check before them, and where it keeps what they share."""

from __future__ import annotations

from fastapi import APIRouter, FastAPI, Request, Response

from memory_app.errors import NotFound
from memory_app.page import (
    agents_routes,
    audit_routes,
    erasures_routes,
    imports_routes,
    keys_routes,
    login_routes,
    memory_routes,
    nights_routes,
    overview_routes,
    people_routes,
    person_routes,
    try_routes,
)
from memory_app.page.render import HERE
from memory_app.page.route import PageRoute
from memory_app.page.session import signer_of
from memory_app.page.session_check import SessionCheck
from memory_app.runtime import Runtime
from memory_app.tenancy.rows.keys import Caller
from memory_app.web.auth import Callers
from memory_app.web.places import InFlight

VIEWS = (
    login_routes,
    overview_routes,
    people_routes,
    person_routes,
    memory_routes,
    try_routes,
    nights_routes,
    imports_routes,
    agents_routes,
    keys_routes,
    audit_routes,
    erasures_routes,
)
"""Modules with views."""

elsewhere = APIRouter(route_class=PageRoute, include_in_schema=False)


@elsewhere.get(HERE + "/{rest:path}")
async def no_such_view(request: Request, rest: str) -> Response:
    """Whatever else is asked for below the page."""
    raise NotFound("there is no such page")


def install(
    app: FastAPI,
    runtime: Runtime,
    *,
    callers: Callers,
    in_flight: InFlight,
    anonymous: Caller | None,
) -> None:
    """Serve the page, unless the settings turn it off. ``anonymous`` is who asks without a key, on loopback only."""
    if not runtime.settings.page.enabled:
        return
    signer = signer_of(runtime.settings)
    app.state.page_signer = signer
    app.state.page_callers = callers
    app.state.page_anonymous = anonymous
    for view in VIEWS:
        app.include_router(view.router)
    # Last, because it answers for every address that no view has.
    app.include_router(elsewhere)
    app.add_middleware(SessionCheck, callers=callers, in_flight=in_flight, signer=signer, anonymous=anonymous)
