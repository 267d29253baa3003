"""The keys of the tenant: what each may do and when it was used; make, rotate, revoke and limit them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Path, Request, Response

from memory_app.errors import InvalidInput, MemoryAppError
from memory_app.page.form import Form
from memory_app.page.render import HERE, page
from memory_app.page.route import Filled, PageRoute, done, shown_again
from memory_app.records.audit import Action
from memory_app.tenancy import keys, quotas
from memory_app.tenancy.rows.keys import RIGHTS, USUAL_RIGHTS, NewKey
from memory_app.web.call import Admin
from memory_app.web.strict import audited
from memory_app.web.strict_json import LARGEST_INTEGER

router = APIRouter(route_class=PageRoute, include_in_schema=False)

KeyId = Annotated[int, Path(ge=1, le=LARGEST_INTEGER)]


@router.get(HERE + "/keys")
def show_keys(request: Request, call: Admin) -> Response:
    return _keys(request, call)


@router.post(HERE + "/keys")
@audited(Action.KEY_CREATE)
def make_key(request: Request, call: Admin, form: Filled) -> Response:
    with shown_again(request, lambda error: _keys(request, call, form, error)):
        new = keys.make_key(
            call.runtime,
            call.tenant_id,
            rights=form.all("rights"),
            label=form.optional("label"),
            days=form.whole("days"),
            agent=form.optional("agent"),
            user=form.optional("user"),
        )
    return _new_key(request, new)


@router.post(HERE + "/keys/{key}/rotate")
@audited(Action.KEY_ROTATE)
def rotate_key(request: Request, call: Admin, key: KeyId, form: Filled) -> Response:
    hours = form.whole("overlap_hours")
    if hours is None:
        raise InvalidInput("overlap_hours: is required", field="overlap_hours")
    new = keys.rotate_key(call.runtime, call.tenant_id, key, overlap_hours=hours)
    return _new_key(request, new, replaces=key, hours=hours)


@router.post(HERE + "/keys/{key}/revoke")
@audited(Action.KEY_REVOKE)
def revoke_key(request: Request, call: Admin, key: KeyId, form: Filled) -> Response:
    keys.revoke_key(call.runtime, call.tenant_id, key)
    return done(request, "keys", notice="revoked")


@router.post(HERE + "/keys/{key}/limits")
@audited(Action.LIMIT_KEY)
def limit_key(request: Request, call: Admin, key: KeyId, form: Filled) -> Response:
    limits = {name: form.whole(name) for name in ("requests_per_minute", "bytes_per_minute")}
    keys.limit_key(call.runtime, call.tenant_id, key, limits=limits)
    return done(request, "keys", notice="limited")


def _keys(
    request: Request, call: Admin, form: Form | None = None, error: MemoryAppError | None = None
) -> Response:
    return page(
        request,
        "keys.html",
        status=200 if error is None else 422,
        keys=list(reversed(keys.list_keys(call.runtime, call.tenant_id))),
        tenant_limits=quotas.standing(call.runtime, call.tenant_id),
        rights=RIGHTS,
        form=form or Form({"rights": list(USUAL_RIGHTS)}),
        error=error,
        now=datetime.now(UTC),
    )


def _new_key(request: Request, new: NewKey, *, replaces: int | None = None, hours: int = 0) -> Response:
    """The only answer that shows a key. It is no redirect, because neither an address nor a cookie may hold it."""
    return page(request, "key_new.html", status=201, new=new, replaces=replaces, hours=hours)
