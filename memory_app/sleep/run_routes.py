"""Routes of background work: ask for consolidation, follow a run, and undo what a run or a merge did."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from fastapi import APIRouter, Path, Query
from pydantic import ConfigDict, Field

from memory_app.jobs import jobs
from memory_app.jobs.answers import RunStateAnswer
from memory_app.memories.answers import memory_answer
from memory_app.records.audit import Action
from memory_app.records.run import OPEN
from memory_app.sleep import consolidate, undo
from memory_app.sleep.answers import RestoredAnswer
from memory_app.sleep.report import with_texts
from memory_app.turns.long_poll import wait_for
from memory_app.turns.tickets import WAIT_LIMIT_SECONDS
from memory_app.web.call import IN_SCOPE, MemoryId, OfUser, Reader, Writer, errors
from memory_app.web.fields import Body, Id, KindName
from memory_app.web.strict import StrictRoute, audited

router = APIRouter(route_class=StrictRoute, tags=["runs"])

RunId = Annotated[Id, Path(description="Id of the run.")]


class ConsolidateBody(Body):
    """What to look through."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"kind": "fact", "dry_run": True}]})

    kind: KindName | None = Field(None, description="Only memories of this kind.")
    dry_run: bool = Field(False, description="Report what would be united, and change nothing.")


@router.post(
    IN_SCOPE + "/consolidate", operation_id="consolidate", status_code=202, responses=errors(400, 404)
)
def ask_to_consolidate(call: Writer, scope: OfUser, body: ConsolidateBody) -> RunStateAnswer:
    """Unite what says the same among the memories that are stored. Nothing is blended that differs in a number, a date,
    a negation or a name, and the run can be undone."""
    run = consolidate.ask(call.runtime, call.tenant_id, scope, kind=body.kind, dry_run=body.dry_run)
    return RunStateAnswer.model_validate(run)


@router.get("/v1/runs/{id}", responses=errors(404, 429))
async def get_run(
    call: Reader,
    id: RunId,
    wait_seconds: Annotated[
        float, Query(ge=0, le=WAIT_LIMIT_SECONDS, description="Wait this long until it is done or failed.")
    ] = 0,
) -> RunStateAnswer:
    """A run and its report."""
    run = await wait_for(
        call,
        partial(jobs.read, call.runtime, call.tenant_id, id),
        is_over=lambda run: run.state not in OPEN,
        seconds=wait_seconds,
    )
    read_texts = partial(with_texts, call.runtime, call.tenant_id, run=run)
    return RunStateAnswer.model_validate(await call.work(read_texts))


@router.post("/v1/runs/{id}/undo", operation_id="undo", responses=errors(404, 409))
@audited(Action.UNDO)
def undo_run(call: Writer, id: RunId) -> RunStateAnswer:
    """Take back everything a run did, or nothing: 409 names what stands on it."""
    return RunStateAnswer.model_validate(undo.undo_run(call.runtime, call.tenant_id, id))


@router.post("/v1/memories/{id}/unmerge", tags=["memories"], responses=errors(404, 409))
@audited(Action.UNMERGE)
def unmerge(call: Writer, id: MemoryId) -> RestoredAnswer:
    """Take one merged memory apart: its parts are current again and it is gone. 409 names what blocks it."""
    parts = undo.undo_merge(call.runtime, call.tenant_id, id)
    return RestoredAnswer(memories=[memory_answer(part) for part in parts])
