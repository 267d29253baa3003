"""Routes of turns: record them, read the latest, follow a ticket; and the sessions they stand in."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Header, Query, Request, Response

from memory_app.errors import InvalidInput
from memory_app.records.audit import Action
from memory_app.turns import failed, tickets
from memory_app.turns.answers import (
    FailedAnswer,
    FailedTurnAnswer,
    ListedTurnAnswer,
    RefusedAnswer,
    RefusedMessageAnswer,
    SessionAnswer,
    SessionsAnswer,
    TicketAnswer,
    TicketsAnswer,
    TicketStateAnswer,
    TurnsAnswer,
)
from memory_app.turns.bodies import MessagesBody, OneOrManyTurns, TurnBody, new_turn
from memory_app.turns.erased import list_refused
from memory_app.turns.long_poll import wait_for
from memory_app.turns.record import record
from memory_app.turns.replaced import replacing
from memory_app.turns.rows.sessions import SessionRow
from memory_app.turns.sessions import list_sessions
from memory_app.turns.stream import clear_hot, latest_turns
from memory_app.turns.tickets import WAIT_LIMIT_SECONDS
from memory_app.web.answers import next_cursor
from memory_app.web.call import (
    IN_SCOPE,
    IN_SESSION,
    Cursor,
    OfSession,
    OfUser,
    Reader,
    Recorder,
    TurnId,
    Writer,
    errors,
)
from memory_app.web.fields import Words
from memory_app.web.strict import StrictRoute, audited

router = APIRouter(route_class=StrictRoute, tags=["turns"])

KeyHeader = Annotated[
    Words | None,
    Header(alias="Idempotency-Key", description="For a single turn; the same as its `idempotency_key`."),
]


@router.post(IN_SESSION + "/turns", status_code=202, responses=errors(400, 404, 413, 429))
def record_turns(
    call: Recorder, scope: OfSession, body: OneOrManyTurns, request: Request, key: KeyHeader = None
) -> TicketsAnswer:
    """Record one turn, or several as `{"turns": […]}` or, chat messages as they are, `{"messages": […]}`.

    Answered after the commit, with one ticket per turn. The background work may take a while; the turns are usable at
    once. After 503 or a time-out send the same again: an idempotency key makes that safe.
    """
    if key is not None:
        body = _with_key(body, key)
    new_turns = [new_turn(turn) for turn in _turns_of(body)]
    try:
        with replacing(call.runtime, call.tenant_id, scope, new_turns, caller=request.state.caller):
            tickets = record(call.runtime, call.tenant_id, scope, new=new_turns)
    except InvalidInput as error:
        raise _as_sent(error, body) from error
    return TicketsAnswer(tickets=[TicketAnswer.model_validate(ticket) for ticket in tickets])


@router.get(IN_SESSION + "/turns", responses=errors(404))
def list_turns(
    call: Reader,
    scope: OfSession,
    limit: Annotated[int, Query(ge=1, le=500, description="Most turns.")] = 20,
) -> TurnsAnswer:
    """The latest turns of a session, oldest first."""
    turns = latest_turns(call.runtime, call.tenant_id, scope, limit=limit)
    return TurnsAnswer(turns=[ListedTurnAnswer.model_validate(turn) for turn in turns])


@router.get("/v1/turns/{id}", responses=errors(404, 429))
async def get_ticket(
    call: Reader,
    id: TurnId,
    wait_seconds: Annotated[
        float, Query(ge=0, le=WAIT_LIMIT_SECONDS, description="Wait this long for a terminal stage.")
    ] = 0,
) -> TicketStateAnswer:
    """The ticket of a turn: its stage, what came of it, why if nothing did, and what it waits for."""
    row = await wait_for(
        call,
        partial(tickets.look, call.runtime, call.tenant_id, id),
        is_over=lambda row: row.stage in tickets.TERMINAL,
        seconds=wait_seconds,
    )
    row = await call.work(partial(tickets.explained, call.runtime, call.tenant_id, row=row))
    return TicketStateAnswer.model_validate(row)


@router.get(IN_SCOPE + "/sessions", operation_id="list_sessions", tags=["sessions"], responses=errors(404))
def read_sessions(
    call: Reader,
    scope: OfUser,
    active: Annotated[bool | None, Query(description="Only those not yet ended, or only the others.")] = None,
    limit: Annotated[int, Query(ge=1, le=500, description="Most sessions.")] = 100,
) -> SessionsAnswer:
    """Sessions of an agent and a user, latest activity first."""
    rows = list_sessions(call.runtime, call.tenant_id, scope, active=active, limit=limit)
    return SessionsAnswer(sessions=[_session_answer(row) for row in rows])


@router.delete(IN_SESSION + "/hot", tags=["sessions"], status_code=204, responses=errors(404))
def clear_session(call: Writer, scope: OfSession) -> Response:
    """Begin the session afresh: drop the hot stream and the cached context. No knowledge is lost."""
    clear_hot(call.runtime, call.tenant_id, scope)
    return Response(status_code=204)


@router.get("/v1/failed", tags=["operations"], responses=errors())
def list_failed(
    call: Reader,
    cursor: Cursor = None,
    limit: Annotated[int, Query(ge=1, le=500, description="Most turns.")] = 100,
) -> FailedAnswer:
    """Turns that were set aside, newest first, with the reason."""
    rows = failed.failed(call.runtime, call.tenant_id, limit=limit, before=cursor)
    return FailedAnswer(
        turns=[FailedTurnAnswer.model_validate(row) for row in rows],
        cursor=next_cursor([row.id for row in rows], limit),
    )


@router.get("/v1/refused", operation_id="list_refused", tags=["operations"], responses=errors())
def read_refused(
    call: Reader,
    cursor: Cursor = None,
    limit: Annotated[int, Query(ge=1, le=500, description="Most messages.")] = 100,
) -> RefusedAnswer:
    """Messages of the broker that were refused for an erasure or a limit, newest first."""
    rows = list_refused(call.runtime, call.tenant_id, limit=limit, before=cursor)
    return RefusedAnswer(
        messages=[RefusedMessageAnswer.model_validate(row) for row in rows],
        cursor=next_cursor([row.id for row in rows], limit),
    )


@router.post("/v1/failed/{id}/replay", tags=["operations"], status_code=202, responses=errors(404, 409))
@audited(Action.REPLAY)
def replay(call: Writer, id: TurnId) -> Response:
    """Index and extract the turn once more, once the cause is mended. Follow it with `GET /v1/turns/{id}`."""
    failed.replay(call.runtime, call.tenant_id, id)
    return Response(status_code=202)


@router.post("/v1/failed/{id}/discard", tags=["operations"], status_code=202, responses=errors(404, 409))
@audited(Action.DISCARD)
def discard(call: Writer, id: TurnId) -> Response:
    """Give the turn up: it stays readable and has no effects; a session that waited for it goes on."""
    failed.discard(call.runtime, call.tenant_id, id)
    return Response(status_code=202)


def _with_key(body: OneOrManyTurns, key: str) -> TurnBody:
    """The single turn under the header's key."""
    if not isinstance(body, TurnBody):
        raise InvalidInput(
            "Idempotency-Key: the header is for a single turn; give each turn of a batch its own",
            field="Idempotency-Key",
        )
    if body.idempotency_key not in (None, key):
        raise InvalidInput(
            "idempotency_key: differs from the header Idempotency-Key", field="idempotency_key"
        )
    return body.model_copy(update={"idempotency_key": key})


def _turns_of(body: OneOrManyTurns) -> Sequence[TurnBody]:
    if isinstance(body, TurnBody):
        return [body]
    return body.messages if isinstance(body, MessagesBody) else body.turns


def _as_sent(error: InvalidInput, body: OneOrManyTurns) -> InvalidInput:
    """The error with its field named as the caller sent it, who may have put one turn into a batch."""
    field = error.field or ""
    name = "messages" if isinstance(body, MessagesBody) else "turns"
    if not field.startswith("turn"):
        return error
    if isinstance(body, TurnBody):
        sent = field.removeprefix("turn.")
    elif field.startswith("turn."):
        sent = field.replace("turn", f"{name}[0]", 1)
    else:
        sent = field.replace("turns", name, 1)
    return type(error)(error.message.replace(field, sent, 1), field=sent)


def _session_answer(row: SessionRow) -> SessionAnswer:
    return SessionAnswer(
        name=row.name,
        active=row.ended_at is None,
        turns=row.next_seq - 1,
        extracted_seq=row.extracted_seq,
        created_at=row.created_at,
        last_activity_at=row.last_activity_at,
        ended_at=row.ended_at,
        summary=row.summary,
        parked_reason=row.parked_reason,
    )
