"""The route that follows a piece of work by any id on its way."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path

from memory_app.ops.answers import (
    TraceAnswer,
)
from memory_app.ops.trace import trace
from memory_app.web.call import Reader, errors
from memory_app.web.fields import Id
from memory_app.web.strict import StrictRoute

router = APIRouter(route_class=StrictRoute, tags=["operations"])


@router.get("/v1/trace/{id}", responses=errors(404))
def get_trace(
    call: Reader, id: Annotated[Id, Path(description="Id of a turn, memory, run, request or task.")]
) -> TraceAnswer:
    """The way from the request to the memories, or back: ids and times, no text. Up to 500 rows of each sort."""
    return TraceAnswer.model_validate(trace(call.runtime, call.tenant_id, id))
