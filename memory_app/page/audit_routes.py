"""The audit log of the tenant: search in it, and walk along its chain."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from memory_app.errors import InvalidInput
from memory_app.page.render import HERE, page
from memory_app.page.route import PageRoute
from memory_app.records.audit import Action
from memory_app.records.choice import choice_of
from memory_app.tenancy import audit
from memory_app.web.call import Admin
from memory_app.web.strict_json import LARGEST_INTEGER

router = APIRouter(route_class=PageRoute, include_in_schema=False)

PAGE_ENTRIES = 50

# Of a form, which sends its empty fields, too.
Filter = Annotated[str, Query(max_length=200)]


@router.get(HERE + "/audit")
def show_audit(
    request: Request,
    call: Admin,
    action: Filter = "",
    key: Filter = "",
    user: Filter = "",
    since: Filter = "",
    until: Filter = "",
    cursor: Annotated[int | None, Query(ge=1, le=LARGEST_INTEGER)] = None,
) -> Response:
    """Entries, newest first. ``since`` and ``until`` are the first and the last day, in UTC."""
    last_day = _day(until, "until")
    entries = audit.entries(
        call.runtime,
        call.tenant_id,
        limit=PAGE_ENTRIES,
        before=cursor,
        action=choice_of(Action, action, field="action") if action else None,
        user=user or None,
        key_id=_key(key),
        since=_day(since, "since"),
        until=None if last_day is None else last_day + timedelta(days=1),
    )
    filters = {"action": action, "key": key, "user": user, "since": since, "until": until}
    return page(
        request,
        "audit.html",
        entries=entries,
        actions=list(Action),
        filters=filters,
        given={name: value for name, value in filters.items() if value},
        cursor=cursor,
        next_cursor=entries[-1].seq if len(entries) == PAGE_ENTRIES else None,
    )


@router.get(HERE + "/audit/chain")
def verify_audit(request: Request, call: Admin) -> Response:
    """Whether an entry was changed, taken out or put in."""
    return page(request, "audit_chain.html", chain=audit.verify(call.runtime, call.tenant_id))


def _day(value: str, field: str) -> datetime | None:
    if not value:
        return None
    try:
        day = date.fromisoformat(value)
    except ValueError:
        raise InvalidInput(f"{field}: a day is required, as in 2026-01-31", field=field) from None
    # The day after the last one must be a date, too.
    if not 1900 <= day.year <= 2200:
        raise InvalidInput(f"{field}: a day between 1900 and 2200", field=field)
    return datetime.combine(day, time(), tzinfo=UTC)


def _key(value: str) -> int | None:
    if not value:
        return None
    if not (value.isascii() and value.isdecimal() and 1 <= len(value) <= 18):
        raise InvalidInput("key: the number of a key", field="key")
    return int(value)
