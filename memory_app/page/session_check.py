"""Let only holders of a session through to the page; everybody else is led to the login.

It stands where `KeyCheck` stands for the API, with the same counts and limits for a tenant and a key.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime

from anyio import to_thread
from fastapi import Request
from starlette.datastructures import Headers
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Scope

from memory_app.errors import MemoryAppError, Unauthorized
from memory_app.page import cookies
from memory_app.page.render import HERE, error_page
from memory_app.page.session import Session, Signer
from memory_app.tenancy import access
from memory_app.tenancy.rows.keys import Caller
from memory_app.web.auth import Callers, KeyCheck, check_local
from memory_app.web.places import InFlight

OPEN = re.compile(re.escape(HERE) + "/(login|assets/[^/]+)")
"""Addresses of the page that need no session."""

NO_KEY = 0
"""Stands in a session for the key of a caller who needs none."""


class SessionCheck(KeyCheck):
    """Lets only sessions through to the page. A key that was revoked or has expired ends its sessions at once."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        callers: Callers,
        in_flight: InFlight,
        signer: Signer,
        anonymous: Caller | None = None,
    ) -> None:
        super().__init__(app, callers=callers, in_flight=in_flight, anonymous=anonymous, protected=(HERE,))
        self.signer = signer

    def guards(self, path: str) -> bool:
        return super().guards(path) and not OPEN.fullmatch(path)

    async def caller(self, scope: Scope, headers: Headers) -> Caller:
        session = self._session(Request(scope))
        scope.setdefault("state", {})["session"] = session
        if session.key_id == NO_KEY:
            if self.anonymous is None or self.anonymous.tenant_id != session.tenant_id:
                raise Unauthorized("a key is required here now")
            check_local(headers)
            return self.anonymous
        return await to_thread.run_sync(
            access.holder,
            self.callers.runtime,
            session.tenant_id,
            session.key_id,
            limiter=self.callers.threads,
        )

    def _session(self, request: Request) -> Session:
        session = self.signer.session(request.cookies.get(cookies.SESSION, ""), now=datetime.now(UTC))
        if session is None:
            raise Unauthorized("the session is over")
        return session

    def refusal(self, scope: Scope, error: MemoryAppError) -> ASGIApp:
        request = Request(scope)
        if not isinstance(error, Unauthorized):
            return error_page(request, error)
        login = request.scope.get("root_path", "") + HERE + "/login"
        # A part of a page would show the login inside of it; this header makes the browser go there.
        if "HX-Request" in request.headers:
            return Response(status_code=401, headers={"HX-Redirect": login})
        return RedirectResponse(login, status_code=303, headers={"Cache-Control": "no-store"})
