"""The routes of chat completions, by which a program that speaks the OpenAI API gets memory without a line of code."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import unquote

from fastapi import APIRouter, Body, Depends, Header, Request, Response

from memory_app.completions.chat_request import Named, read_request
from memory_app.completions.conversation import Conversation
from memory_app.completions.model_server import ModelServer
from memory_app.errors import InvalidInput
from memory_app.tenancy.rows.keys import Caller
from memory_app.web.auth import Call, Need
from memory_app.web.call import errors
from memory_app.web.errors import answer
from memory_app.web.strict import StrictRoute

router = APIRouter(route_class=StrictRoute, prefix="/openai/v1", tags=["chats"])

Chatter = Annotated[Call, Depends(Need("record", names_in_body=True))]
# Models are nobody's, so a key for one person may list them.
Lister = Annotated[Call, Depends(Need("read", names_in_body=True))]

_EXAMPLE = {
    "model": "gpt-5-mini",
    "user": "mira",
    "messages": [{"role": "user", "content": "Which restaurant shall I book?"}],
}
_ANSWER: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "As the language model's server answered.",
        "content": {"application/json": {}, "text/event-stream": {}},
    }
}
HistoryHeader = Annotated[
    str | None,
    Header(description="`whole`: each call sends all of the session's conversation, so edits replace turns."),
]
NameHeader = Annotated[str | None, Header(description="Percent-encoded where it is not ASCII.")]


@router.post(
    "/chat/completions",
    response_class=Response,
    responses=_ANSWER | errors(400, 404, 409, 413),
    dependencies=[Depends(Need("read", names_in_body=True))],
)
async def complete_chat(
    call: Chatter,
    request: Request,
    body: Annotated[dict[str, Any], Body(examples=[_EXAMPLE])],
    x_memory_agent: NameHeader = None,
    x_memory_session: NameHeader = None,
    x_memory_history: HistoryHeader = None,
) -> Response:
    """Answer a chat as the OpenAI API does: memory is added to what the model sees, and both sides are recorded.

    The person comes from `user`, or from a key that is for one. The agent and the session come from `metadata.agent`
    and `metadata.session`, or from headers; else they are `assistant` and `chat`. Messages that were sent before are
    known. With `metadata.history` or its header `whole`, and a key with the right `erase`, an edited message and a
    reply that was made again replace the turns in their places. What memory could not do stands in the header
    `X-Memory-Degraded`.
    """
    caller: Caller = request.state.caller
    server: ModelServer = request.app.state.model_server
    try:
        chat = read_request(
            body,
            bound=Named(caller.agent, caller.user),
            headers=Named(
                agent=_decoded(x_memory_agent),
                session=_decoded(x_memory_session),
                history=x_memory_history,
            ),
            default_model=server.default_model,
        )
    except InvalidInput as error:
        # The status that clients of this API expect.
        return answer(400, error.kind, error.message, field=error.field)
    caller.check_bound(agent=chat.scope.agent, user=chat.scope.user)
    return await Conversation(call, caller, chat, server, request.app.state.last_policies).answered()


@router.get("/models", response_class=Response, responses=_ANSWER | errors(404, 409))
async def list_models(_: Lister, request: Request) -> Response:
    """The models of the language model's server, as it lists them."""
    server: ModelServer = request.app.state.model_server
    answering = await server.forwarding().ask("GET", "/models")
    try:
        content = await answering.body()
    finally:
        await answering.close()
    return Response(content, answering.status, media_type=answering.media_type)


def _decoded(name: str | None) -> str | None:
    return None if name is None else unquote(name)
