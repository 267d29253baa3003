"""The route that follows a piece of work by any id on its way."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Path
from pydantic import Field

from memory_app.ops.trace import Origin, trace
from memory_app.web.answers import Answer
from memory_app.web.call import Reader, errors
from memory_app.web.fields import Id
from memory_app.web.strict import StrictRoute

router = APIRouter(route_class=StrictRoute, tags=["operations"])


class TracedTurnAnswer(Answer):
    id: UUID
    agent: str
    user: str
    session: str
    seq: int


class TracedRunAnswer(Answer):
    id: UUID
    name: str
    state: str
    attempts: int
    model: str | None


class TracedMemoryAnswer(Answer):
    id: UUID
    kind: str
    successor: UUID | None


class StepAnswer(Answer):
    at: datetime
    event: str = Field(
        description="Such as `turn accepted`, `turn indexed`, `extract started`, `fact stored`."
    )
    turn_id: UUID | None
    run_id: UUID | None
    memory_id: UUID | None
    request_id: UUID | None
    task_id: UUID | None
    reason: str | None


class TraceAnswer(Answer):
    id: UUID
    origin: Origin = Field(description="What the id belongs to.")
    turns: list[TracedTurnAnswer]
    runs: list[TracedRunAnswer]
    memories: list[TracedMemoryAnswer]
    steps: list[StepAnswer] = Field(description="What happened, in the order of time.")
    waiting_for: str | None = Field(description="What a turn that is not through waits for.")


@router.get("/v1/trace/{id}", responses=errors(404))
def read_trace(
    call: Reader, id: Annotated[Id, Path(description="Id of a turn, memory, run, request or task.")]
) -> TraceAnswer:
    """The way from the request to the memories, or back: ids and times, no text. Up to 500 rows of each sort."""
    return TraceAnswer.model_validate(trace(call.runtime, call.tenant_id, id))
