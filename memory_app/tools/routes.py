"""Routes of the agents' tools: their definitions, and their calls for apps that hand a model's arguments through."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Body, Path, Query, Request

from memory_app.records.scope import Scope
from memory_app.tools.answers import ToolCallAnswer, ToolsAnswer
from memory_app.tools.calls import TOOLS, ToolFormat, call_tool, definitions, find_tool, noting_tool
from memory_app.web.auth import Need
from memory_app.web.call import IN_SCOPE, OfUser, Reader, errors
from memory_app.web.fields import Name
from memory_app.web.strict import StrictRoute

router = APIRouter(route_class=StrictRoute, tags=["tools"])

ToolName = Annotated[str, Path(description=f"One of {', '.join(TOOLS)}.")]


@router.get("/v1/tools", responses=errors())
def list_tools(
    call: Reader,
    format: Annotated[ToolFormat, Query(description="Whose form the definitions have.")] = ToolFormat.OPENAI,
) -> ToolsAnswer:
    """Definitions of the agents' tools for chat-completion APIs."""
    return ToolsAnswer(tools=definitions(format))


@router.post(IN_SCOPE + "/tools/{name}", operation_id="call_tool", responses=errors(400, 404, 413))
def use_tool(
    request: Request,
    call: Reader,
    scope: OfUser,
    name: ToolName,
    arguments: Annotated[dict[str, Any], Body(description="What the model wrote.")],
    session: Annotated[Name | None, Query(description="The conversation going on.")] = None,
) -> ToolCallAnswer:
    """Call a tool with a model's arguments. A wrong argument is answered with `is_error`, for the model to mend.

    Tools that record, store or forget need the right `record`, `write` or `erase`.
    """
    tool = find_tool(name)
    caller = Need(tool.right).check(request)
    place = Scope(scope.agent, scope.user, session)
    with noting_tool(call.runtime, caller, tool, place):
        answer = call_tool(call.runtime, call.tenant_id, place, name=name, arguments=arguments)
    return ToolCallAnswer(data=dict(answer.data), text=answer.text, is_error=answer.is_error)
