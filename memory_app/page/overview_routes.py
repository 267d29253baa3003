"""The overview: whether everything works, what waits and why, what failed, and what it cost."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from decimal import Decimal
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from starlette.responses import RedirectResponse

from memory_app.ops import overview
from memory_app.ops.health import health
from memory_app.ops.public_checks import Looks
from memory_app.page import plots
from memory_app.page.navigation import home_of
from memory_app.page.render import HERE, Addresses, page
from memory_app.page.route import Filled, PageRoute, done
from memory_app.page.words import dollars
from memory_app.records.audit import Action
from memory_app.tenancy.rows.usage import UsageDay
from memory_app.turns import failed
from memory_app.web.call import Reader, TurnId, Writer
from memory_app.web.strict import audited

router = APIRouter(route_class=PageRoute, include_in_schema=False)

Live = Annotated[bool, Query(description="Whether the view follows what goes on.")]


@router.get(HERE)
async def home(request: Request) -> Response:
    """Lead to the first view that the caller may open."""
    return RedirectResponse(Addresses(request)(*home_of(request.state.caller)), status_code=303)


@router.get(HERE + "/overview")
async def show_overview(request: Request, call: Reader, live: Live = True) -> Response:
    return page(request, "overview.html", live=live, **await _now(request, call))


@router.get(HERE + "/overview/now")
async def show_now(request: Request, call: Reader) -> Response:
    """The part that is fetched again every few seconds."""
    return page(request, "overview_now.html", **await _now(request, call))


@router.get(HERE + "/overview/days")
def show_last_days(request: Request, call: Reader) -> Response:
    """The part that takes longer the more is stored, fetched when the rest is shown."""
    days = overview.last_days(call.runtime, call.tenant_id)
    costs = plots.bars(_by_day(days.spending), amount=dollars, title="US dollars by day (UTC)")
    return page(request, "overview_days.html", days=days, costs=costs)


@router.post(HERE + "/failed/{id}/replay")
@audited(Action.REPLAY)
def replay(request: Request, call: Writer, id: TurnId, form: Filled) -> Response:
    failed.replay(call.runtime, call.tenant_id, id)
    return done(request, "overview", notice="replayed")


@router.post(HERE + "/failed/{id}/discard")
@audited(Action.DISCARD)
def discard(request: Request, call: Writer, id: TurnId, form: Filled) -> Response:
    failed.discard(call.runtime, call.tenant_id, id)
    return done(request, "overview", notice="discarded")


async def _now(request: Request, call: Reader) -> dict[str, Any]:
    looks: Looks = request.app.state.looks
    report = await looks.see("ready", partial(health, request.app.state.runtime))
    # Without a database nothing more can be said; the report says why.
    if report.pipeline is None:
        return {"health": report, "now": None}
    return {"health": report, "now": await call.work(overview.now, call.runtime, call.tenant_id)}


def _by_day(days: Iterable[UsageDay]) -> dict[date, Decimal]:
    costs: dict[date, Decimal] = {}
    for used in days:
        costs[used.day] = costs.get(used.day, Decimal(0)) + used.cost_usd
    return dict(sorted(costs.items()))
