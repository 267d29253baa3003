"""Routes of the page: those of the API, whose errors are pages and whose bodies are forms.

The right that a view or an act needs, whom the key is for, the place among the calls of the tenant and the entry in the
audit log are what `StrictRoute` does for the routes of the API.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, BinaryIO

from anyio import to_thread
from fastapi import Depends, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.responses import RedirectResponse

from memory_app.errors import InvalidInput, MemoryAppError, TooLarge
from memory_app.page import cookies
from memory_app.page.form import Form
from memory_app.page.multipart import read_form
from memory_app.page.navigation import NOTICES
from memory_app.page.render import Addresses, error_page
from memory_app.page.session import Session, Signer, begin
from memory_app.web.errors import path_of
from memory_app.web.strict import StrictRequest, StrictRoute
from memory_app.web.validation import message_of


class PageRoute(StrictRoute):
    """A route that answers with HTML. One that takes a POST takes a form with the token of the session."""

    @property
    def takes_body(self) -> bool:
        return "POST" in (self.methods or ())

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        answer = super().get_route_handler()

        async def answer_with_a_page(request: Request) -> Response:
            session: Session = request.state.session
            signer: Signer = request.app.state.page_signer
            request.state.token = signer.token(str(session))
            try:
                response = await answer(request)
            except MemoryAppError as error:
                shown: Response | None = getattr(request.state, "shown_again", None)
                return shown or error_page(request, error)
            except RequestValidationError as invalid:
                return error_page(request, _invalid(invalid))
            # Not by the parts that a page fetches by itself: a page that is left open must not keep a session.
            if "HX-Request" not in request.headers:
                _prolong(request, response, session)
            return response

        return answer_with_a_page

    @asynccontextmanager
    async def whole(self, request: Request, tenant_id: int) -> AsyncIterator[Request]:
        async with super().whole(request, tenant_id) as whole:
            if self.takes_file:
                await _open_file(whole)
            else:
                whole.state.form = Form.parse(await whole.body())
            whole.state.form.check(request.app.state.page_signer, str(request.state.session))
            yield whole


async def _form(request: Request) -> Form:
    form: Form = request.state.form
    return form


Filled = Annotated[Form, Depends(_form)]
"""The argument of a route that takes a POST: what was filled in."""


async def _file(request: Request) -> BinaryIO:
    file: BinaryIO = request.state.file
    return file


File = Annotated[BinaryIO, Depends(_file)]
"""The argument of a route that `takes_file`: the file of its form; its bytes are there as long as the call lasts."""


def done(request: Request, *segments: object, notice: str) -> Response:
    """The answer to an act: lead to the view below the page that shows it. ``notice`` is a name of `NOTICES`."""
    assert notice in NOTICES, notice
    answer = RedirectResponse(Addresses(request)(*segments), status_code=303)
    cookies.set_notice(request, answer, notice)
    return answer


@contextmanager
def shown_again(request: Request, show: Callable[[MemoryAppError], Response]) -> Iterator[None]:
    """Answer a field that does not fit with the form itself, filled in as it was sent: ``show`` makes it.

    The error goes on, so that the audit log has it as for the routes of the API.
    """
    try:
        yield
    except (InvalidInput, TooLarge) as error:
        request.state.shown_again = show(error)
        raise


async def _open_file(request: Request) -> None:
    assert isinstance(request, StrictRequest)
    parsers = request.app.state.arrivals.parsers
    content_type = request.headers.get("content-type", "")
    # In a thread, since all of the body is looked through for the end of the file.
    form, file = await to_thread.run_sync(read_form, request.upload, content_type, limiter=parsers)
    request.state.form, request.state.file = form, file


def _prolong(request: Request, response: Response, session: Session) -> None:
    """Give whoever works with the page a new session when half of it has passed."""
    life = timedelta(minutes=request.app.state.runtime.settings.page.session_minutes)
    now = datetime.now(UTC)
    if session.is_half_over(now, life) and cookies.SESSION not in response.headers.get("set-cookie", ""):
        new = begin(session.tenant_id, session.key_id, now=now, life=life)
        cookies.set_session(request, response, new)


def _invalid(error: RequestValidationError) -> InvalidInput:
    first: dict[str, Any] = error.errors()[0]
    field = path_of(first["loc"])
    return InvalidInput(f"{field}: {message_of(first)}", field=field)
