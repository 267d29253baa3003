"""Who is remembered: a list to choose from, and a field for a name. Where a key is for one agent or person, theirs."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request, Response
from starlette.responses import RedirectResponse

from memory_app.agents.people import list_people
from memory_app.page.render import HERE, Addresses, page
from memory_app.page.route import PageRoute
from memory_app.web.auth import Call, Need
from memory_app.web.strict_json import LARGEST_INTEGER

router = APIRouter(route_class=PageRoute, include_in_schema=False)

PAGE = 50

# The database shows a caller for one agent or person only their rows, so the list may be asked for by everybody.
AnyReader = Annotated[Call, Depends(Need("read", names_in_body=True))]


@router.get(HERE + "/people")
def show_people(
    request: Request,
    call: AnyReader,
    user: Annotated[str, Query(description="Name of the person that is looked for.")] = "",
    cursor: Annotated[int | None, Query(ge=1, le=LARGEST_INTEGER)] = None,
) -> Response:
    name = user.strip() or None
    people = list_people(call.runtime, call.tenant_id, user=name, limit=PAGE, before=cursor)
    if name is not None and len(people) == 1:
        return RedirectResponse(
            Addresses(request)("agents", people[0].agent, "users", people[0].user), status_code=303
        )
    is_full = len({person.number for person in people}) == PAGE
    older = people[-1].number if is_full else None
    return page(request, "people.html", people=people, user=user, cursor=cursor, older=older)
