"""The route by which a question is answered over memory."""

from __future__ import annotations

from dataclasses import replace

from fastapi import APIRouter

from memory_app.ask.answers import AskAnswer
from memory_app.ask.ask import ask
from memory_app.ask.bodies import AskBody
from memory_app.web.call import IN_SCOPE, OfUser, Reader, errors
from memory_app.web.places import InFlight
from memory_app.web.strict import StrictRoute

router = APIRouter(route_class=StrictRoute, tags=["recall"])

# Each holds a thread for as long as the model takes, and context windows must not wait for one.
MOST_AT_ONCE = 2
"""Questions of a tenant under way in a process."""

_questions = InFlight(MOST_AT_ONCE, what="questions of this tenant")


@router.post(IN_SCOPE + "/ask", operation_id="ask", responses=errors(400, 404, 409))
def ask_memory(call: Reader, scope: OfUser, body: AskBody) -> AskAnswer:
    """Answer a question from memory by the agent's language model, each sentence with what it rests on.

    What memory does not say is not answered: then `known` is false. 409 for an agent without a language model. 429:
    two questions are being answered.
    """
    with _questions.counted(call.tenant_id):
        answered = ask(
            call.runtime, call.tenant_id, replace(scope, session=body.session), question=body.question
        )
    return AskAnswer.model_validate(answered)
