"""Routes of agents: persona, policy, default memories."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from memory_app.agents import agents, counts
from memory_app.agents.agents import Agent, AgentChange
from memory_app.agents.answers import AgentAnswer, AgentsAnswer, ListedAgentAnswer
from memory_app.agents.bodies import AgentAmendment, AgentBody
from memory_app.records.audit import Action
from memory_app.web.call import Admin, NameCursor, OfAgent, Reader, errors
from memory_app.web.strict import StrictRoute, audited

router = APIRouter(route_class=StrictRoute, tags=["agents"])


@router.get("/v1/agents", responses=errors())
def list_agents(
    call: Reader,
    limit: Annotated[int, Query(ge=1, le=counts.PAGE_MOST, description="Most agents of a page.")] = 50,
    cursor: NameCursor = None,
) -> AgentsAnswer:
    """The agents of the tenant by name, a page at a time."""
    agents = counts.list_agents(call.runtime, call.tenant_id, limit=limit, cursor=cursor)
    listed = [
        ListedAgentAnswer(agent=agent.name, created_at=agent.created_at, users=agent.users)
        for agent in agents
    ]
    return AgentsAnswer(agents=listed, cursor=listed[-1].agent if len(listed) == limit else None)


@router.get("/v1/agents/{agent}", responses=errors(404))
def get_agent(call: Reader, scope: OfAgent) -> AgentAnswer:
    """Persona, policy and default memories, with all defaults filled in."""
    return _answer(agents.agent(call.runtime, call.tenant_id, scope))


@router.put("/v1/agents/{agent}", responses=errors(400, 413))
@audited(Action.AGENT_CHANGE)
def change_agent(call: Admin, scope: OfAgent, body: AgentBody) -> AgentAnswer:
    """Set persona, policy or default memories; each part given is replaced as a whole, absent ones stay.

    The agent is made when it is new. A policy takes effect with the next turn.
    """
    defaults = body.default_memories
    change = AgentChange(
        # Absent and null are different: null puts a part back to its default.
        named=frozenset(body.model_fields_set),
        persona=body.persona,
        policy=body.policy,
        default_memories=None if defaults is None else [item.model_dump() for item in defaults],
    )
    return _answer(agents.change_agent(call.runtime, call.tenant_id, scope, change=change))


@router.patch("/v1/agents/{agent}", responses=errors(400, 404, 413))
@audited(Action.AGENT_CHANGE)
def amend_agent(call: Admin, scope: OfAgent, body: AgentAmendment) -> AgentAnswer:
    """Change single fields of policy or persona; what is not named stays. A policy takes effect with the next turn."""
    amended = agents.amend_agent(
        call.runtime, call.tenant_id, scope, policy=body.policy, persona=body.persona
    )
    return _answer(amended)


def _answer(agent: Agent) -> AgentAnswer:
    return AgentAnswer(
        agent=agent.name,
        persona=agent.persona.as_dict(),
        policy=agent.policy.as_dict(),
        default_memories=[dict(memory) for memory in agent.default_memories],
        created_at=agent.created_at,
    )
