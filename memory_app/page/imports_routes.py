"""Import a file of another program into a person's memory: first as a dry run that tells what comes in and what is left
out, then in earnest, followed while a worker does it."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Request, Response

from memory_app.errors import InvalidInput, MemoryAppError
from memory_app.page.form import Form
from memory_app.page.person_routes import PERSON, person_page
from memory_app.page.route import File, Filled, PageRoute, done, shown_again
from memory_app.records.audit import Action
from memory_app.records.run import OPEN
from memory_app.records.scope import Scope
from memory_app.transfer import import_runs, imports
from memory_app.transfer.import_order import Order
from memory_app.transfer.importers.detection import FORMATS
from memory_app.web.answers import next_cursor
from memory_app.web.call import Cursor, OfUser, Reader, Writer
from memory_app.web.errors import status_of
from memory_app.web.fields import Id
from memory_app.web.strict import audited, takes_file

router = APIRouter(route_class=PageRoute, include_in_schema=False)

IMPORTS = PERSON + "/imports"
PAGE_IMPORTS = 50
DATE_ORDERS = {"dmy": "day first", "mdy": "month first"}

RunId = Annotated[Id, Path()]


@router.get(IMPORTS)
def show_imports(request: Request, call: Reader, scope: OfUser, cursor: Cursor = None) -> Response:
    return _imports(request, call, scope, form=Form({"dry_run": ["true"]}), cursor=cursor)


@router.post(IMPORTS)
@takes_file
@audited(Action.IMPORT)
def import_file(request: Request, call: Writer, scope: OfUser, form: Filled, file: File) -> Response:
    """Keep the file for a worker; the view of its run follows it."""
    with shown_again(request, lambda error: _imports(request, call, scope, form=form, error=error)):
        order = order_of(form)
        run = imports.ask(call.runtime, call.tenant_id, scope, order=order, file=file)
    return done(request, "agents", scope.agent, "users", scope.user, "imports", run.id, notice="import")


@router.get(IMPORTS + "/{id}")
def show_import(request: Request, call: Reader, scope: OfUser, id: RunId) -> Response:
    run = import_runs.read_import(call.runtime, call.tenant_id, scope, id)
    return person_page(
        request,
        scope,
        "person_import.html",
        run=run,
        report=run.report,
        total=_items(run.report),
        is_open=run.state in OPEN,
    )


def order_of(form: Form) -> Order:
    """How the file is to be imported. Raises `InvalidInput` with the field."""
    return Order(
        format=form.optional("format"),
        dry_run=form.is_ticked("dry_run"),
        session=form.optional("session"),
        time_zone=form.optional("time_zone"),
        date_order=form.optional("date_order"),
        speakers=dict(map(_speaker, (form.optional("speakers") or "").splitlines())),
        owner=form.optional("owner"),
    )


def _speaker(line: str) -> tuple[str, str]:
    # The last sign: a name may have one in it.
    name, _, role = line.rpartition("=")
    if not name.strip():
        raise InvalidInput("speakers: a line is a name, = and a role, such as Anna=user", field="speakers")
    return name.strip(), role.strip()


def _items(report: Any) -> int:
    """Items of the file, those that are left out among them; 0 before it has been read."""
    if report is None:
        return 0
    survey = report["survey"]
    return int(survey["turns"] + survey["memories"] + sum(survey["left_out"].values()))


def _imports(
    request: Request,
    call: Reader,
    scope: Scope,
    *,
    form: Form,
    cursor: Any = None,
    error: MemoryAppError | None = None,
) -> Response:
    rows = import_runs.list_imports(call.runtime, call.tenant_id, scope, limit=PAGE_IMPORTS, before=cursor)
    return person_page(
        request,
        scope,
        "person_imports.html",
        status=200 if error is None else status_of(error),
        imports=rows,
        cursor=cursor,
        older=next_cursor([row.id for row in rows], PAGE_IMPORTS),
        form=form,
        error=error,
        formats=FORMATS,
        date_orders=DATE_ORDERS,
        may_import="write" in request.state.caller.rights,
    )
