"""Routes of memories: list, read, explain, pin, close, delete."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Query

from memory_app.memories import fate
from memory_app.memories import lookup as memories
from memory_app.memories.answers import (
    MemoriesAnswer,
    MemoryAnswer,
    ParentAnswer,
    RememberedAnswer,
    RunAnswer,
    VersionsAnswer,
    WhyAnswer,
    memory_answer,
)
from memory_app.memories.bodies import CorrectionBody
from memory_app.memories.correct import correct
from memory_app.memories.lookup import MemoryFilter
from memory_app.records.records import Memory
from memory_app.web.answers import TurnAnswer, next_cursor
from memory_app.web.call import IN_SCOPE, Cursor, MemoryId, OfAgent, OfUser, Reader, Writer, errors
from memory_app.web.fields import CleanWords, KindName
from memory_app.web.strict import StrictRoute

router = APIRouter(route_class=StrictRoute, tags=["memories"])


@router.get(IN_SCOPE + "/memories", responses=errors(404))
def list_memories(
    call: Reader,
    scope: OfUser,
    kind: Annotated[KindName | None, Query(description="Only this kind.")] = None,
    tag: Annotated[CleanWords | None, Query(description="Only memories with this tag.")] = None,
    history: Annotated[bool, Query(description="Retired ones too; each names its successor.")] = False,
    limit: Annotated[int, Query(ge=1, le=500, description="Most memories of a page.")] = 50,
    cursor: Cursor = None,
) -> MemoriesAnswer:
    """Current memories, newest first, a page at a time; the agent's own are among them."""
    filters = MemoryFilter(kind=kind, tag=tag, limit=limit, before=cursor, history=history)
    return _page(memories.list_memories(call.runtime, call.tenant_id, scope, filters=filters), limit)


@router.get("/v1/agents/{agent}/memories", responses=errors(404))
def list_agent_memories(
    call: Reader,
    scope: OfAgent,
    kind: Annotated[KindName | None, Query(description="Only this kind.")] = None,
    tag: Annotated[CleanWords | None, Query(description="Only memories with this tag.")] = None,
    history: Annotated[bool, Query(description="Retired ones too; each names its successor.")] = False,
    limit: Annotated[int, Query(ge=1, le=500, description="Most memories of a page.")] = 50,
    cursor: Cursor = None,
) -> MemoriesAnswer:
    """Current memories that all users of the agent are shown, newest first, a page at a time."""
    filters = MemoryFilter(kind=kind, tag=tag, limit=limit, before=cursor, history=history)
    return _page(memories.list_memories(call.runtime, call.tenant_id, scope, filters=filters), limit)


@router.get("/v1/memories/{id}", responses=errors(404))
def get_memory(call: Reader, id: MemoryId) -> MemoryAnswer:
    """One memory; retired ones too, with the reason."""
    return memory_answer(memories.read_memory(call.runtime, call.tenant_id, id))


@router.post("/v1/memories/{id}/invalidate", responses=errors(404, 409))
def invalidate(call: Writer, id: MemoryId) -> MemoryAnswer:
    """It is no longer true: close its interval now and keep it as history."""
    return memory_answer(memories.invalidate(call.runtime, call.tenant_id, id))


@router.post(
    "/v1/memories/{id}/correct", operation_id="correct", status_code=201, responses=errors(400, 404, 409, 413)
)
def correct_memory(call: Writer, id: MemoryId, body: CorrectionBody) -> RememberedAnswer:
    """Other words for a memory: a new row takes its place, with kind, importance, tags, pin and evidence of the old."""
    given = body.model_dump(exclude={"text"}, exclude_none=True)
    corrected = correct(call.runtime, call.tenant_id, id, text=body.text, triple=given)
    return RememberedAnswer.model_validate(corrected)


@router.post("/v1/memories/{id}/pin", responses=errors(404, 409))
def pin(call: Writer, id: MemoryId) -> MemoryAnswer:
    """Pin: it never fades, is never evicted and is always considered."""
    return memory_answer(memories.pin(call.runtime, call.tenant_id, id, pinned=True))


@router.post("/v1/memories/{id}/unpin", responses=errors(404, 409))
def unpin(call: Writer, id: MemoryId) -> MemoryAnswer:
    """Take the pin off."""
    return memory_answer(memories.pin(call.runtime, call.tenant_id, id, pinned=False))


@router.post("/v1/memories/{id}/revive", responses=errors(404, 409))
def revive(call: Writer, id: MemoryId) -> MemoryAnswer:
    """Bring back a memory that expired or was evicted, as if it had just been seen."""
    return memory_answer(fate.revive(call.runtime, call.tenant_id, id))


@router.get("/v1/memories/{id}/versions", responses=errors(404))
def list_versions(call: Reader, id: MemoryId) -> VersionsAnswer:
    """The chain a memory stands in, by successors: a text never changes, a change is a new row."""
    chain = memories.versions(call.runtime, call.tenant_id, id)
    return VersionsAnswer(memories=list(map(memory_answer, chain)))


@router.get("/v1/memories/{id}/why", responses=errors(404))
def why(call: Reader, id: MemoryId) -> WhyAnswer:
    """Why it is there and how firmly: evidence, parents, successor, jobs, strength, and when it fades."""
    why = memories.why(call.runtime, call.tenant_id, id)
    return WhyAnswer(
        agent=why.agent,
        user=why.user,
        memory=memory_answer(why.memory),
        evidence=list(map(TurnAnswer.model_validate, why.evidence)),
        parents=list(map(ParentAnswer.model_validate, why.parents)),
        successor=None if why.successor is None else memory_answer(why.successor),
        runs=list(map(RunAnswer.model_validate, why.runs)),
        strength=why.strength,
        fades_at=why.fades_at,
        fate=why.fate,
    )


def _page(rows: Sequence[Memory], limit: int) -> MemoriesAnswer:
    return MemoriesAnswer(
        memories=list(map(memory_answer, rows)), cursor=next_cursor([row.id for row in rows], limit)
    )
