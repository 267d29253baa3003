"""Routes of grants: what a person lets an agent recall of what another agent knows of them.

The path names the agent whose memories they are, so that a key for one agent can give away nothing of another's.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response
from pydantic import Field

from memory_app.agents import grants
from memory_app.agents.answers import GrantAnswer, GrantsAnswer
from memory_app.agents.rows.grants import Grant
from memory_app.records.audit import Action
from memory_app.records.kinds import shareable_kinds
from memory_app.web.call import AgentName, Reader, UserName, Writer, errors
from memory_app.web.edge import SLASH
from memory_app.web.fields import Body, Instant, KindName, Name
from memory_app.web.strict import StrictRoute, audited

router = APIRouter(route_class=StrictRoute, tags=["users"])

OF_USER = "/v1/users/{user}/grants"
OF_AGENT = OF_USER + "/{agent}"


class GrantBody(Body):
    """What may be recalled, and for how long."""

    kinds: list[KindName] = Field(min_length=1, description=f"Of {', '.join(shareable_kinds())}.")
    until: Instant | None = Field(None, description="When it ends; null: when it is revoked.")


@router.get(OF_USER, responses=errors(404))
def list_grants(call: Reader, user: UserName) -> GrantsAnswer:
    """What a person lets agents recall of what others know of them."""
    return _answer(grants.list_grants(call.runtime, call.tenant_id, _name(user)))


@router.get(OF_AGENT, responses=errors(404))
def list_agent_grants(call: Reader, user: UserName, agent: AgentName) -> GrantsAnswer:
    """The grants of a person from an agent and to it."""
    return _answer(grants.list_grants(call.runtime, call.tenant_id, _name(user), agent=_name(agent)))


@router.put(OF_AGENT, responses=errors(400, 404, 409, 413))
@audited(Action.GRANT_SET)
def set_grant(
    call: Writer,
    user: UserName,
    agent: AgentName,
    to: Annotated[Name, Query(description="The agent that may recall what this one knows.")],
    body: GrantBody,
) -> GrantAnswer:
    """Let another agent recall part of what this one knows of the person; a grant between the two is replaced."""
    row = grants.grant(
        call.runtime,
        call.tenant_id,
        _name(user),
        _name(agent),
        to=to,
        kinds=body.kinds,
        until=body.until,
    )
    return GrantAnswer.model_validate(row)


@router.delete(OF_AGENT, status_code=204, responses=errors(404))
@audited(Action.GRANT_REVOKE)
def revoke_grant(
    call: Writer,
    user: UserName,
    agent: AgentName,
    to: Annotated[
        Name | None, Query(description="The agent that may recall it no longer; absent: all of them.")
    ] = None,
) -> Response:
    """Take a grant back, at once: calls that begin afterwards find nothing of it."""
    grants.revoke(call.runtime, call.tenant_id, _name(user), _name(agent), to=to)
    return Response(status_code=204)


def _name(segment: str) -> str:
    return segment.replace(SLASH, "/")


def _answer(rows: tuple[Grant, ...]) -> GrantsAnswer:
    return GrantsAnswer(grants=[GrantAnswer.model_validate(row) for row in rows])
