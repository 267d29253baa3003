"""Routes that forget for good: a turn, a memory, a session, a person; and the receipts."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Response

from memory_app.forget import forget
from memory_app.forget.answers import ErasureAnswer
from memory_app.jobs.answers import RunStateAnswer
from memory_app.records.audit import Action
from memory_app.records.run import OPEN
from memory_app.web.call import (
    IN_SESSION,
    Eraser,
    MemoryId,
    OfAgent,
    OfSession,
    Reader,
    TurnId,
    UserName,
    errors,
)
from memory_app.web.edge import SLASH
from memory_app.web.fields import Id
from memory_app.web.strict import StrictRoute, audited

router = APIRouter(route_class=StrictRoute, tags=["forget"])

DryRun = Annotated[bool, Query(description="Count what would go, and change nothing.")]


QUEUED: dict[str, Any] = {
    "model": RunStateAnswer,
    "description": "Others work on the rows; a worker does it as soon as its turn comes.",
}


@router.delete("/v1/turns/{id}", status_code=202, responses=errors(404))
@audited(Action.ERASE_TURN)
def forget_turn(call: Eraser, id: TurnId) -> RunStateAnswer:
    """Forget one turn and what came only from it: memories, entities, its share in every count."""
    return RunStateAnswer.model_validate(forget.forget_turn(call.runtime, call.tenant_id, id))


@router.delete(
    "/v1/memories/{id}", status_code=204, tags=["memories"], responses={**errors(404), 202: QUEUED}
)
@audited(Action.ERASE_MEMORY)
def forget_memory(call: Eraser, id: MemoryId) -> Response:
    """Delete a memory for good, with the rows that were merged into it and what was made of it alone.

    To keep it as history invalidate it instead. The turns it came from stay; forgetting a turn is a call of its own.
    """
    run = forget.forget_memory(call.runtime, call.tenant_id, id)
    if run.state not in OPEN:
        return Response(status_code=204)
    answer = RunStateAnswer.model_validate(run)
    return Response(answer.model_dump_json(), status_code=202, media_type="application/json")


@router.delete(IN_SESSION, status_code=202, responses=errors())
@audited(Action.ERASE_SESSION)
def forget_session(call: Eraser, scope: OfSession, dry_run: DryRun = False) -> RunStateAnswer:
    """Forget one session, its turns and what came only from it. Repeating it is harmless."""
    run = forget.forget_session(call.runtime, call.tenant_id, scope, dry_run=dry_run)
    return RunStateAnswer.model_validate(run)


@router.delete("/v1/users/{user}", status_code=202, responses=errors())
@audited(Action.ERASE_USER)
def forget_user(call: Eraser, user: UserName, dry_run: DryRun = False) -> RunStateAnswer:
    """Forget a person with all agents. Repeating it is harmless, and the same name may come back later as somebody new.

    The state is `done` and the report names the receipt, or where others work on the person's rows it is `queued`: a
    worker erases as soon as its turn comes, with all that is stored until then. Follow it with `GET /v1/runs/{id}`.
    """
    name = user.replace(SLASH, "/")
    return RunStateAnswer.model_validate(
        forget.forget_user(call.runtime, call.tenant_id, name, dry_run=dry_run)
    )


@router.delete("/v1/agents/{agent}", status_code=202, responses=errors())
@audited(Action.ERASE_AGENT)
def forget_agent(call: Eraser, scope: OfAgent, dry_run: DryRun = False) -> RunStateAnswer:
    """Forget an agent with all that it knows of everybody; the people stay, with what other agents know of them.

    A worker does it, a person at a time; follow it with `GET /v1/runs/{id}`. The report of the end names the receipt.
    Repeating it is harmless, and the same name may come back later as a new agent.
    """
    run = forget.forget_agent(call.runtime, call.tenant_id, scope.agent, dry_run=dry_run)
    return RunStateAnswer.model_validate(run)


@router.get("/v1/erasures/{id}", responses=errors(404))
def get_erasure(call: Reader, id: Annotated[Id, Path(description="Id of the receipt.")]) -> ErasureAnswer:
    """The receipt of something that was forgotten: counts per table."""
    erasure = forget.read_erasure(call.runtime, call.tenant_id, id)
    line = forget.read_receipt_line(call.runtime, call.tenant_id, id)
    return ErasureAnswer(
        id=erasure.id,
        state=erasure.state,
        counts=dict(erasure.counts),
        created_at=erasure.created_at,
        finished_at=erasure.finished_at,
        receipt=line,
    )
