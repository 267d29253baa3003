"""The parts that routes share: the call, the scope named in the address, and the errors to expect."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Depends, Path, Query

from memory_app.records.scope import NAME_LIMIT, Scope
from memory_app.web.answers import ErrorAnswer
from memory_app.web.auth import Call, Need
from memory_app.web.edge import SLASH
from memory_app.web.fields import NAME_SCHEMA, Id

IN_SCOPE = "/v1/agents/{agent}/users/{user}"
IN_SESSION = IN_SCOPE + "/sessions/{session}"


def _named(description: str, example: str) -> Any:
    """A name in the address."""
    # The schema only describes the rules. `Scope` checks them, when the stand-in for a slash was replaced.
    return Path(description=description, examples=[example], json_schema_extra=NAME_SCHEMA)


Reader = Annotated[Call, Depends(Need("read"))]
Recorder = Annotated[Call, Depends(Need("record"))]
Writer = Annotated[Call, Depends(Need("write"))]
Eraser = Annotated[Call, Depends(Need("erase"))]
Admin = Annotated[Call, Depends(Need("admin"))]

AgentName = Annotated[str, _named("Name of the agent inside the tenant.", "ada")]
UserName = Annotated[str, _named("Name of the person inside the tenant.", "mira")]
SessionName = Annotated[str, _named("Name of the conversation.", "chat-1")]


async def _agent(agent: AgentName) -> Scope:
    return Scope(_name(agent))


async def _user(agent: AgentName, user: UserName) -> Scope:
    return Scope(_name(agent), _name(user))


async def _session(agent: AgentName, user: UserName, session: SessionName) -> Scope:
    return Scope(_name(agent), _name(user), _name(session))


def _name(segment: str) -> str:
    return segment.replace(SLASH, "/")


OfAgent = Annotated[Scope, Depends(_agent)]
OfUser = Annotated[Scope, Depends(_user)]
OfSession = Annotated[Scope, Depends(_session)]

MemoryId = Annotated[Id, Path(description="Id of the memory.")]
TurnId = Annotated[Id, Path(description="Id of the turn, as on its ticket.")]
Cursor = Annotated[Id | None, Query(description="The `cursor` of the page before.")]

NameCursor = Annotated[
    str | None, Query(description="The `cursor` of the page before.", max_length=NAME_LIMIT)
]


def errors(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The error answers of a route for its description; what every route may answer is added."""
    common = (401, 403, 408, 422, 429, 503)
    return {
        status: {"model": ErrorAnswer, "description": _DESCRIPTIONS[status]}
        for status in sorted({*common, *statuses})
    }


_DESCRIPTIONS = {
    400: "The body is not JSON.",
    401: "No key, or one that is unknown, revoked or expired.",
    403: "The key lacks the right, or is for another agent or person.",
    408: "The request came too slowly; it may be sent again.",
    404: "No such thing for this tenant.",
    409: "Contradicts what is stored.",
    413: "Larger than the limit.",
    422: "A field is unknown, missing or does not fit.",
    429: "Too much at once; see Retry-After.",
    503: "The database is away or the outcome is unknown; try again.",
}
