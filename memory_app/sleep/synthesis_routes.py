"""Routes of synthesis by a language model: have one made, and see what the questions cost."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Query
from pydantic import ConfigDict, Field

from memory_app.jobs.answers import RunStateAnswer
from memory_app.records.scope import Scope
from memory_app.sleep import synthesis
from memory_app.sleep.answers import UsageAnswer, UsageDayAnswer
from memory_app.tenancy.usage import DAYS_LIMIT, spending
from memory_app.web.call import IN_SCOPE, OfUser, Reader, Writer, errors
from memory_app.web.fields import Body
from memory_app.web.strict import StrictRoute

router = APIRouter(route_class=StrictRoute, tags=["synthesis"])


class SynthesisBody(Body):
    """What to look through."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"type": "session", "session": "chat-1"}]})

    type: Literal["turn", "session", "deep"] = Field(
        description="The latest turns of a session, all of it, or the memories of the last days."
    )
    session: str | None = Field(None, description="The session to synthesise.")
    max_memories: int | None = Field(None, ge=2, le=200, description="Most memories of a deep synthesis.")
    days: int | None = Field(None, ge=1, le=365, description="Days that a deep synthesis looks back.")
    dry_run: bool = Field(
        False, description="Ask the model, report what a deep synthesis would change, and change nothing."
    )


@router.post(IN_SCOPE + "/synthesis", status_code=202, responses=errors(400, 404))
def synthesize(call: Writer, scope: OfUser, body: SynthesisBody) -> RunStateAnswer:
    """Have a language model say what the latest turns mean, what remains of a session, or what some days show together.

    Of a deep synthesis only what holds takes effect: memories are united where they are alike and the sentence keeps
    their names, numbers and words, pinned ones never, and the run can be undone.
    """
    place = Scope(scope.agent, scope.user, body.session)
    run = synthesis.ask_for(
        call.runtime,
        call.tenant_id,
        place,
        type=body.type,
        max_memories=body.max_memories,
        days=body.days,
        dry_run=body.dry_run,
    )
    return RunStateAnswer.model_validate(run)


@router.get("/v1/usage", tags=["operations"], responses=errors())
def get_usage(
    call: Reader,
    days: Annotated[int, Query(ge=1, le=DAYS_LIMIT, description="How far back.")] = 30,
) -> UsageAnswer:
    """Calls, tokens and money by day and model, newest first."""
    rows = spending(call.runtime, call.tenant_id, days=days)
    return UsageAnswer(days=[UsageDayAnswer.model_validate(row) for row in rows])
