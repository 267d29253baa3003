"""Routes of transfer: a scope as one document and back, and checkpoints."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query
from fastapi.responses import StreamingResponse
from pydantic import ConfigDict, Field

from memory_app.records.audit import Action
from memory_app.records.scope import Scope
from memory_app.transfer import snapshots
from memory_app.transfer.answers import CheckpointAnswer, CheckpointsAnswer, ImportedAnswer, SnapshotAnswer
from memory_app.transfer.export_routes import joined
from memory_app.web.answers import next_cursor
from memory_app.web.call import IN_SCOPE, Cursor, OfUser, Reader, Writer, errors
from memory_app.web.fields import Body, Id, Name
from memory_app.web.strict import StrictRoute, audited, takes_snapshot

router = APIRouter(route_class=StrictRoute, tags=["transfer"])

CheckpointId = Annotated[Id, Path(description="Id of the checkpoint.")]


class SnapshotBody(Body):
    """A snapshot, as the export gave it. What must be in it is checked as a whole."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"format": "memory-snapshot", "version": 1}]})

    new_consent: bool = Field(
        False, description="Required for a person who was erased once: they have agreed anew."
    )
    # Any: `check_snapshot` names the part that does not fit, and pydantic would go through every row once more.
    format: Any = None
    version: Any = None
    created_at: Any = None
    scope: Any = None
    embedder: Any = None
    canonical: Any = None
    counts: Any = None
    nodes: Any = None
    links: Any = None
    entities: Any = None
    mentions: Any = None
    sessions: Any = None
    turns: Any = None
    evidence: Any = None


class CheckpointBody(Body):
    """What to keep."""

    session: Name | None = Field(
        None, description="Only memories of this session; else of the agent and user."
    )
    most: int | None = Field(None, ge=1, le=10_000, description="So many of the strongest.")


@router.get(IN_SCOPE + "/export", response_model=SnapshotAnswer, responses=errors(404))
@audited(Action.EXPORT_SCOPE)
def export(call: Reader, scope: OfUser) -> StreamingResponse:
    """Everything that is stored for an agent and a user, as one document."""
    return _document(snapshots.export(call.runtime, call.tenant_id, scope))


@router.post(IN_SCOPE + "/import", responses=errors(400, 409, 413))
@takes_snapshot
@audited(Action.IMPORT)
def load(call: Writer, scope: OfUser, body: SnapshotBody) -> ImportedAnswer:
    """Fill an empty agent and user from a snapshot: the same ids, counts, links and results.

    409: it is not empty, or the person was erased once and `new_consent` is not true.
    Another version, embedder or normaliser, a field that is missing or does not fit, or links that lead nowhere: 422
    names what is wrong and nothing is stored. 413: the body is too large, or the scope may not hold so much. 429 or
    503: several large snapshots are under way.
    """
    document = dict(body)
    new_consent = document.pop("new_consent")
    imported = snapshots.load(call.runtime, call.tenant_id, scope, document=document, new_consent=new_consent)
    return ImportedAnswer.model_validate(imported)


@router.post(IN_SCOPE + "/checkpoints", status_code=201, responses=errors(400, 404))
def checkpoint(call: Writer, scope: OfUser, body: CheckpointBody) -> CheckpointAnswer:
    """Keep the strongest memories, of a session or of all, as a document."""
    of = Scope(scope.agent, scope.user, body.session)
    checkpoint = snapshots.make_checkpoint(call.runtime, call.tenant_id, of, most=body.most)
    return CheckpointAnswer.model_validate(checkpoint)


@router.get(IN_SCOPE + "/checkpoints", responses=errors(404))
def list_checkpoints(
    call: Reader,
    scope: OfUser,
    limit: Annotated[int, Query(ge=1, le=500, description="Most checkpoints of a page.")] = 50,
    cursor: Cursor = None,
) -> CheckpointsAnswer:
    """Checkpoints, newest first."""
    page = snapshots.list_checkpoints(call.runtime, call.tenant_id, scope, limit=limit, before=cursor)
    return CheckpointsAnswer(
        checkpoints=[CheckpointAnswer.model_validate(row) for row in page],
        cursor=next_cursor([row.id for row in page], limit),
    )


@router.get(IN_SCOPE + "/checkpoints/{id}", response_model=SnapshotAnswer, responses=errors(404))
def read_checkpoint(call: Reader, scope: OfUser, id: CheckpointId) -> StreamingResponse:
    """The document of a checkpoint; it can be imported like a snapshot."""
    document = snapshots.read_checkpoint(call.runtime, call.tenant_id, scope, checkpoint_id=id)
    return _document(document)


def _document(snapshot: Mapping[str, Any]) -> StreamingResponse:
    """A snapshot as JSON."""
    # Piece by piece: json.dumps of the whole would hold the GIL, and with it all other calls.
    return StreamingResponse(joined(_pieces(snapshot)), media_type="application/json")


def _pieces(snapshot: Mapping[str, Any]) -> Iterator[str]:
    opening = "{"
    for name in SnapshotAnswer.model_fields:
        value = snapshot[name]
        yield f"{opening}{json.dumps(name)}:"
        opening = ","
        if isinstance(value, list):
            yield "["
            for number, row in enumerate(value):
                yield ("," if number else "") + json.dumps(row, ensure_ascii=False)
            yield "]"
        else:
            yield json.dumps(value, ensure_ascii=False)
    yield "}"
