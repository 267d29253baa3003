"""What was forgotten: receipts and whether they are genuine; and to forget a person, with the plan first."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request, Response
from starlette.responses import RedirectResponse

from memory_app.errors import InvalidInput
from memory_app.forget import forget, receipts
from memory_app.jobs import jobs
from memory_app.page.form import Form
from memory_app.page.render import HERE, Addresses, page
from memory_app.page.route import Filled, PageRoute
from memory_app.records.audit import Action
from memory_app.records.run import OPEN
from memory_app.web.call import Cursor, Eraser, Reader, UserName
from memory_app.web.edge import SLASH
from memory_app.web.fields import Id
from memory_app.web.strict import audited

router = APIRouter(route_class=PageRoute, include_in_schema=False)

PAGE_RECEIPTS = 50

ReceiptId = Annotated[Id, Path()]
RunId = Annotated[Id, Path()]


@router.get(HERE + "/erasures")
def show_erasures(request: Request, call: Reader, cursor: Cursor = None) -> Response:
    rows = forget.list_receipts(call.runtime, call.tenant_id, limit=PAGE_RECEIPTS, before=cursor)
    is_full = len(rows) == PAGE_RECEIPTS
    return page(
        request,
        "erasures.html",
        receipts=rows,
        cursor=cursor,
        next_cursor=rows[-1].id if is_full else None,
        form=Form({}),
        verified=None,
    )


@router.post(HERE + "/erasures/verify")
def verify_receipts(request: Request, call: Reader, form: Filled) -> Response:
    """Whether receipts that somebody has are genuine. Changes nothing; the form keeps the name out of the address."""
    verified = receipts.verify_text(
        call.runtime, call.tenant_id, form.text("receipts"), user=form.optional("user")
    )
    return page(request, "receipts_verified.html", verified=verified, user=form.optional("user"))


@router.get(HERE + "/erasures/person")
def choose_person(
    request: Request, call: Eraser, user: Annotated[str, Query(max_length=200)] = ""
) -> Response:
    """Lead from the field with a name to the page that forgets that person."""
    if not user:
        raise InvalidInput("user: is required", field="user")
    return RedirectResponse(Addresses(request)("users", user, "forget"), status_code=303)


@router.get(HERE + "/erasures/runs/{id}")
def show_progress(request: Request, call: Reader, id: RunId) -> Response:
    """How far an erasure is that a worker does."""
    run = jobs.read(call.runtime, call.tenant_id, id)
    if run.state not in OPEN and run.report and run.report.get("erasure"):
        return _lead(request, "erasures", run.report["erasure"])
    return page(request, "erasure_progress.html", run=run, is_open=run.state in OPEN)


@router.get(HERE + "/erasures/{id}")
def show_receipt(request: Request, call: Reader, id: ReceiptId) -> Response:
    erasure = forget.read_erasure(call.runtime, call.tenant_id, id)
    line = forget.read_receipt_line(call.runtime, call.tenant_id, id)
    return page(request, "receipt.html", erasure=erasure, line=line)


@router.get(HERE + "/users/{user}/forget")
def show_forget(request: Request, call: Eraser, user: UserName) -> Response:
    """What forgetting means, and the way to the plan."""
    return _person(request, user)


@router.post(HERE + "/users/{user}/forget")
@audited(Action.ERASE_USER)
def forget_person(
    request: Request,
    call: Eraser,
    user: UserName,
    form: Filled,
    dry_run: Annotated[bool, Query(description="Count what would go, and change nothing.")] = False,
) -> Response:
    """The plan, or with the name typed in the deed."""
    name = user.replace(SLASH, "/")
    if not dry_run and form.optional("name") != name.strip():
        raise InvalidInput("name: is not that of the person; nothing was forgotten", field="name")
    run = forget.forget_user(call.runtime, call.tenant_id, name, dry_run=dry_run)
    if dry_run:
        return _person(request, user, plan=run.report["counts"])
    caller = request.state.caller
    # A key for one person may forget them, and may not read the receipts of the tenant.
    if caller.agent is not None or caller.user is not None:
        return _person(request, user, forgotten=run)
    if run.state in OPEN:
        return _lead(request, "erasures", "runs", run.id)
    return _lead(request, "erasures", run.report["erasure"])


def _person(request: Request, user: str, *, plan: Any = None, forgotten: Any = None) -> Response:
    return page(request, "forget_person.html", user=user.replace(SLASH, "/"), plan=plan, forgotten=forgotten)


def _lead(request: Request, *segments: object) -> Response:
    # Also where a part of the page asked: the address is that of the whole view.
    address = Addresses(request)(*segments)
    if "HX-Request" in request.headers:
        return Response(status_code=204, headers={"HX-Redirect": address})
    return RedirectResponse(address, status_code=303)
