"""The route of events: a stream of them, or a page for clients that ask again and again."""

from __future__ import annotations

from typing import Annotated, Any

from anyio import to_thread
from fastapi import APIRouter, Depends, Header, Query, Request, Response

from memory_app.errors import StoreUnavailable, Unauthorized
from memory_app.events.answers import EventAnswer, EventsAnswer
from memory_app.events.event import Choice, types_of
from memory_app.events.read import PAGE_LIMIT, Feed
from memory_app.events.stream import MEDIA_TYPE, EventStream, Listening, Streams
from memory_app.runtime import Runtime
from memory_app.tenancy import access
from memory_app.tenancy.rows.keys import Caller
from memory_app.turns.long_poll import wait_for
from memory_app.turns.tickets import WAIT_LIMIT_SECONDS
from memory_app.web.auth import Call, Need, bearer_key
from memory_app.web.call import errors
from memory_app.web.fields import NAME_SCHEMA
from memory_app.web.strict import StrictRoute

router = APIRouter(route_class=StrictRoute, tags=["events"])

# The names stand in the query; a key for one agent or one person hears of those.
Listener = Annotated[Call, Depends(Need("read", names_in_body=True))]

_ANSWER: dict[int | str, dict[str, Any]] = {200: {"content": {MEDIA_TYPE: {}}}}


@router.get("/v1/events", responses=_ANSWER | errors(), response_model=EventsAnswer)
async def list_events(
    call: Listener,
    request: Request,
    after: Annotated[
        str | None,
        Query(description="Id of the last event that was seen, or `oldest`; absent: from now on."),
    ] = None,
    types: Annotated[
        str | None,
        Query(
            description="Only these, with commas between: `turn.extracted,memory`; a group stands for all of it."
        ),
    ] = None,
    agent: Annotated[
        str | None, Query(description="Only of this agent.", json_schema_extra=NAME_SCHEMA)
    ] = None,
    user: Annotated[
        str | None, Query(description="Only of this person.", json_schema_extra=NAME_SCHEMA)
    ] = None,
    limit: Annotated[int, Query(ge=1, le=PAGE_LIMIT, description="Most events of a page.")] = 100,
    wait_seconds: Annotated[
        float, Query(ge=0, le=WAIT_LIMIT_SECONDS, description="Wait this long for the first event of a page.")
    ] = 0,
    # Sent by clients of event streams when they connect anew; the same as `after`, which others send.
    last_event_id: Annotated[str | None, Header(alias="Last-Event-ID", include_in_schema=False)] = None,
) -> Response | EventsAnswer:
    """What changed, in the order in which it became visible; ids only, never text.

    With `Accept: text/event-stream` a stream that goes on; else a page. An event of the type `reset` says that the
    database is not the one that `after` is of: read anew what you need, and go on from there.
    """
    caller: Caller = request.state.caller
    agent = caller.agent if agent is None else agent
    user = caller.user if user is None else user
    caller.check_bound(agent=agent, user=user)
    choice = Choice(types_of(types), agent, user)
    feed = Feed(call.runtime, call.tenant_id, choice, cursor=last_event_id or after, limit=limit)
    if MEDIA_TYPE in request.headers.get("accept", ""):
        return await _stream(call, request, caller, feed)
    page = await wait_for(call, feed.look, is_over=lambda page: bool(page.events), seconds=wait_seconds)
    return EventsAnswer(
        events=[EventAnswer.model_validate(event) for event in page.events], cursor=page.cursor
    )


async def _stream(call: Call, request: Request, caller: Caller, feed: Feed) -> Response:
    streams: Streams = request.app.state.streams
    request.state.until_sent.enter_context(streams.counted(caller.key_id))

    async def is_welcome() -> bool:
        values = request.headers.getlist("authorization")
        return not values or await to_thread.run_sync(
            _is_valid, request.app.state.runtime, bearer_key(values)
        )

    # The first look before the head of the answer: what is wrong with the request gets its status.
    page = await call.work(feed.look)
    return EventStream(Listening(call, feed, streams, is_welcome).pieces(page))


def _is_valid(runtime: Runtime, key: str) -> bool:
    try:
        access.look_up(runtime, key)
    except Unauthorized:
        return False
    except StoreUnavailable:
        # Nothing can be read either as long as that lasts.
        return True
    return True
