"""Calls of turns and sessions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID, uuid4

from pydantic import BaseModel

from memory_app.client.call import (
    Call,
    answer_of,
    in_session,
    in_user,
    json_of,
    nothing,
    path,
    query_of,
)
from memory_app.errors import InvalidInput
from memory_app.records.ids import checked_id
from memory_app.records.message import MessageContent, Turn
from memory_app.records.records import NewTurn, Role
from memory_app.records.scope import Scope
from memory_app.turns.answers import (
    FailedAnswer,
    RefusedAnswer,
    SessionsAnswer,
    TicketAnswer,
    TicketsAnswer,
    TicketStateAnswer,
    TurnsAnswer,
)

T = TypeVar("T")


def record(
    scope: Scope,
    content: MessageContent,
    *,
    role: Role | str = Role.USER,
    name: str | None = None,
    at: datetime | float | str | None = None,
    idempotency_key: str | None = None,
    emotional_tone: str | None = None,
    tools_used: Sequence[str] = (),
    metadata: Mapping[str, Any] | None = None,
    tool_calls: Sequence[Mapping[str, Any] | BaseModel] | None = None,
    tool_call_id: str | None = None,
    replaces: UUID | str | None = None,
) -> Call[TicketAnswer]:
    """Accept one turn of the scope's session.

    ``content`` is text, or the parts of a chat message; ``tool_calls`` and ``tool_call_id`` are those of a message.
    ``replaces``: a turn of the session that is forgotten, and in whose place this one stands.
    Without an ``idempotency_key`` the call is given one, so that what is tried again is recorded once.
    """
    turn = {
        "role": str(role),
        "content": content,
        "name": name,
        "at": at,
        "idempotency_key": idempotency_key,
        "emotional_tone": emotional_tone,
        "tools_used": tools_used,
        "metadata": metadata,
        "tool_calls": tool_calls,
        "tool_call_id": tool_call_id,
        "replaces": replaces,
    }
    return _posted(scope, [_given(turn)], lambda tickets: tickets[0])


def record_all(scope: Scope, turns: Sequence[Turn]) -> Call[tuple[TicketAnswer, ...]]:
    """Accept turns of one session in order: all of them, or none and an error.

    A turn may be a chat message as it is: a mapping, or an object of the OpenAI or Anthropic client.
    """
    fields = [_fields(turn, place=f"turns[{number}]") for number, turn in enumerate(turns)]
    return _posted(scope, fields, tuple)


def _posted(
    scope: Scope, fields: Sequence[Mapping[str, Any]], choose: Callable[[Sequence[TicketAnswer]], T]
) -> Call[T]:
    # Once here, and not once for each attempt.
    keyed = [{**turn, "idempotency_key": turn.get("idempotency_key") or uuid4().hex} for turn in fields]
    read = answer_of(TicketsAnswer)
    body = json_of(keyed[0] if len(keyed) == 1 else {"turns": keyed})
    return Call("POST", in_session(scope, "turns"), lambda answer: choose(read(answer).tickets), body=body)


def _fields(turn: Turn, *, place: str) -> Mapping[str, Any]:
    if isinstance(turn, NewTurn):
        return _given(
            {
                "role": str(turn.role),
                "content": turn.text,
                "name": turn.speaker,
                "at": turn.at,
                "idempotency_key": turn.idempotency_key,
                "emotional_tone": turn.emotional_tone,
                "tools_used": turn.tools_used,
                "metadata": turn.metadata,
                "replaces": turn.replaces,
            }
        )
    if isinstance(turn, BaseModel):
        return turn.model_dump(mode="json", warnings=False)
    if not isinstance(turn, Mapping):
        raise InvalidInput(f"{place}: a turn is a mapping or a message of a client library", field=place)
    return turn


def _given(turn: Mapping[str, Any]) -> dict[str, Any]:
    """Without what is not given. The content stays: null says that a message has calls of tools alone."""
    return {name: value for name, value in turn.items() if name == "content" or value not in (None, (), {})}


def ticket(turn_id: UUID | str, *, wait_seconds: float = 0) -> Call[TicketStateAnswer]:
    """How far a turn has come; waits until it is extracted or failed, for ``wait_seconds`` (at most 30)."""
    return Call(
        "GET",
        path("v1", "turns", checked_id(turn_id, field="turn_id")),
        answer_of(TicketStateAnswer),
        query=query_of(wait_seconds=wait_seconds),
        further_seconds=wait_seconds,
    )


def turns(scope: Scope, *, limit: int = 20) -> Call[TurnsAnswer]:
    """The latest turns of the scope's session, oldest first."""
    return Call("GET", in_session(scope, "turns"), answer_of(TurnsAnswer), query=query_of(limit=limit))


def sessions(scope: Scope, *, active: bool | None = None, limit: int = 100) -> Call[SessionsAnswer]:
    """Sessions, latest activity first; ``active`` tells those not yet ended from the others."""
    query = query_of(active=active, limit=limit)
    return Call("GET", in_user(scope, "sessions"), answer_of(SessionsAnswer), query=query)


def clear_session(scope: Scope) -> Call[None]:
    """Begin the scope's session afresh: drop hot stream and cached context. No knowledge is lost."""
    return Call("DELETE", in_session(scope, "hot"), nothing)


def failed(*, cursor: UUID | str | None = None, limit: int = 100) -> Call[FailedAnswer]:
    """Turns that were set aside, newest first, with the reason and without their text."""
    return Call(
        "GET", path("v1", "failed"), answer_of(FailedAnswer), query=query_of(cursor=cursor, limit=limit)
    )


def refused(*, cursor: UUID | str | None = None, limit: int = 100) -> Call[RefusedAnswer]:
    """Messages of the broker that were refused because what they carry was erased, newest first."""
    return Call(
        "GET", path("v1", "refused"), answer_of(RefusedAnswer), query=query_of(cursor=cursor, limit=limit)
    )


def replay(turn_id: UUID | str) -> Call[None]:
    """Index and extract a failed turn once more."""
    return _settle(turn_id, "replay")


def discard(turn_id: UUID | str) -> Call[None]:
    """Give a failed turn up: it stays readable and has no effects."""
    return _settle(turn_id, "discard")


def _settle(turn_id: UUID | str, verb: str) -> Call[None]:
    address = path("v1", "failed", checked_id(turn_id, field="turn_id"), verb)
    return Call("POST", address, nothing, is_repeatable=False)
