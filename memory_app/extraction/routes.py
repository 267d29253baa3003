"""The route by which a caller states something in words."""

from __future__ import annotations

from dataclasses import replace

from fastapi import APIRouter

from memory_app.extraction.declared import read_text
from memory_app.memories.answers import RememberedAnswer
from memory_app.memories.bodies import AgentStatementBody, StatementBody, statement_of
from memory_app.memories.remember import remember
from memory_app.web.call import IN_SCOPE, OfAgent, OfUser, Writer, errors
from memory_app.web.strict import StrictRoute

router = APIRouter(route_class=StrictRoute, tags=["memories"])


@router.post(
    IN_SCOPE + "/memories", operation_id="remember", status_code=201, responses=errors(400, 404, 413)
)
def remember_statement(call: Writer, scope: OfUser, body: StatementBody) -> RememberedAnswer:
    """Remember a statement. The outcome says whether it was new, known already, merged, or took another's place.

    A `fact` of a text alone is read by rules: "Mira lives in Lisbon." ends "Mira lives in Porto."
    """
    remembered = remember(
        call.runtime,
        call.tenant_id,
        replace(scope, session=body.session),
        statement=statement_of(body),
        deduplicate=body.deduplicate,
        read=read_text,
    )
    return RememberedAnswer.model_validate(remembered)


@router.post(
    "/v1/agents/{agent}/memories",
    operation_id="remember_for_all",
    status_code=201,
    responses=errors(400, 413),
)
def remember_statement_for_all(call: Writer, scope: OfAgent, body: AgentStatementBody) -> RememberedAnswer:
    """Remember a statement that all users of the agent are shown.

    Kinds about the agent itself (`core`, `capability`, `value`, `identity`) may be stored so; `shared` says that
    another kind is meant for all as well.
    """
    remembered = remember(
        call.runtime,
        call.tenant_id,
        scope,
        statement=statement_of(body),
        deduplicate=body.deduplicate,
        shared=body.shared,
        read=read_text,
    )
    return RememberedAnswer.model_validate(remembered)
