"""What sleep and synthesis did to a person's memories, as before, after and why; try it, do it, undo it."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Request, Response

from memory_app.errors import InvalidInput
from memory_app.page.person_routes import PERSON, person_page
from memory_app.page.render import HERE, page
from memory_app.page.route import Filled, PageRoute, done
from memory_app.records.audit import Action
from memory_app.records.run import OPEN
from memory_app.sleep import consolidate, cycle, nights, synthesis, undo
from memory_app.web.answers import next_cursor
from memory_app.web.call import Cursor, OfUser, Reader, Writer
from memory_app.web.fields import Id
from memory_app.web.strict import audited

router = APIRouter(route_class=PageRoute, include_in_schema=False)

NIGHTS = PERSON + "/nights"
PAGE_NIGHTS = 50
JOBS = ("sleep", "consolidate", "deep")

RunId = Annotated[Id, Path()]


@router.get(HERE + "/nights")
def show_latest(request: Request, call: Reader) -> Response:
    return page(request, "latest_nights.html", nights=nights.latest(call.runtime, call.tenant_id))


@router.get(NIGHTS)
def show_nights(request: Request, call: Reader, scope: OfUser, cursor: Cursor = None) -> Response:
    rows = nights.list_nights(call.runtime, call.tenant_id, scope, limit=PAGE_NIGHTS, before=cursor)
    return person_page(
        request,
        scope,
        "nights.html",
        nights=rows,
        cursor=cursor,
        next_cursor=next_cursor([row.id for row in rows], PAGE_NIGHTS),
        may_change="write" in request.state.caller.rights,
    )


@router.post(NIGHTS)
def begin_night(request: Request, call: Writer, scope: OfUser, form: Filled) -> Response:
    """Ask for a job; the view of its run follows it."""
    job, dry_run = form.text("job"), form.is_ticked("dry_run")
    if job == "sleep":
        run = cycle.ask(call.runtime, call.tenant_id, scope, options={"dry_run": dry_run})
    elif job == "consolidate":
        run = consolidate.ask(call.runtime, call.tenant_id, scope, dry_run=dry_run)
    elif job == "deep":
        run = synthesis.ask_for(call.runtime, call.tenant_id, scope, type="deep", dry_run=dry_run)
    else:
        raise InvalidInput(f"job: one of {', '.join(JOBS)}", field="job")
    return done(request, "agents", scope.agent, "users", scope.user, "nights", run.id, notice="asked")


@router.get(NIGHTS + "/{id}")
def show_night(request: Request, call: Reader, scope: OfUser, id: RunId) -> Response:
    night = nights.night(call.runtime, call.tenant_id, scope, id)
    run, report = night.run, night.run.report or {}
    is_undoable = (
        run.name in undo.UNDO
        and run.state == "done"
        and not run.options.get("dry_run")
        and not report.get("undone_at")
        and bool(report.get("changes"))
    )
    return person_page(
        request,
        scope,
        "night.html",
        night=night,
        run=run,
        report=report,
        is_open=run.state in OPEN,
        may_undo=is_undoable and "write" in request.state.caller.rights,
    )


@router.post(NIGHTS + "/{id}/undo")
@audited(Action.UNDO)
def undo_night(request: Request, call: Writer, scope: OfUser, id: RunId, form: Filled) -> Response:
    # Whose it is first: the verb takes any run of the tenant.
    nights.night(call.runtime, call.tenant_id, scope, id)
    undo.undo_run(call.runtime, call.tenant_id, id)
    return done(request, "agents", scope.agent, "users", scope.user, "nights", id, notice="undone")
