"""Routes of exports as JSON Lines: a person, an agent, the tenant, sent while they are read."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from contextlib import closing
from itertools import chain
from typing import Annotated, Any

from anyio import CancelScope
from fastapi import APIRouter, Query
from fastapi.responses import StreamingResponse
from starlette.concurrency import run_in_threadpool
from starlette.types import Receive, Scope, Send

from memory_app.records.audit import Action
from memory_app.transfer.export import export_lines
from memory_app.web.auth import Call
from memory_app.web.call import Admin, OfAgent, Reader, UserName, errors
from memory_app.web.edge import SLASH
from memory_app.web.fields import NAME_SCHEMA
from memory_app.web.places import InFlight
from memory_app.web.strict import StrictRoute, audited

router = APIRouter(route_class=StrictRoute, tags=["transfer"])

MEDIA_TYPE = "application/x-ndjson"

# Lines are sent together: Starlette changes threads for each item of an iterator.
CHUNK_CHARS = 64_000

# Each holds a database connection for as long as its reader takes.
MOST_AT_ONCE = 2
"""Exports of a tenant under way in a process."""

_exports = InFlight(MOST_AT_ONCE, what="exports of this tenant")

WithVectors = Annotated[
    bool, Query(description="With embeddings and search terms; they make it several times as large.")
]
OneAgent = Annotated[
    str | None, Query(description="Only what this agent knows of the user.", json_schema_extra=NAME_SCHEMA)
]


def _described(*statuses: int) -> dict[int | str, dict[str, Any]]:
    lines = {"schema": {"type": "string", "description": "A header, one object for each row, the counts."}}
    return {200: {"content": {MEDIA_TYPE: lines}}} | errors(*statuses)


@router.get("/v1/users/{user}/export", response_class=StreamingResponse, responses=_described(404, 429))
@audited(Action.EXPORT_USER)
def export_user(
    call: Reader, user: UserName, agent: OneAgent = None, with_vectors: WithVectors = False
) -> StreamingResponse:
    """Everything that is stored about a person, as JSON Lines: turns, memories with evidence, entities, feedback,
    checkpoints, runs. The last line has the counts; without it the file was cut. 429: two are being sent."""
    return _answer(call, agent=agent, user=user.replace(SLASH, "/"), with_vectors=with_vectors)


@router.get("/v1/agents/{agent}/export", response_class=StreamingResponse, responses=_described(404, 429))
@audited(Action.EXPORT_AGENT)
def export_agent(call: Admin, scope: OfAgent, with_vectors: WithVectors = False) -> StreamingResponse:
    """Everything of an agent with all its users, in the same form. Needs the right `admin`."""
    return _answer(call, agent=scope.agent, with_vectors=with_vectors)


@router.get("/v1/export", response_class=StreamingResponse, responses=_described(429))
@audited(Action.EXPORT_TENANT)
def export_tenant(call: Admin, with_vectors: WithVectors = False) -> StreamingResponse:
    """Everything of the tenant, in the same form; no API keys. Needs the right `admin`."""
    return _answer(call, with_vectors=with_vectors)


class _Sending(StreamingResponse):
    """Sends chunks, and closes their iterator when the reader hung up."""

    def __init__(self, first: str, chunks: Generator[str, None, None]) -> None:
        super().__init__(chain([first], chunks), media_type=MEDIA_TYPE)
        self.chunks = chunks

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            # Else the transaction would stay open, and the place taken, until Python collects its garbage. The task may
            # be cancelled by now, and without the shield close() would not run.
            with CancelScope(shield=True):
                await run_in_threadpool(self.chunks.close)


def _answer(call: Call, **options: Any) -> StreamingResponse:
    chunks = _chunks(call.tenant_id, export_lines(call.runtime, call.tenant_id, **options))
    # The first line is made here, so that what is not there is still answered by a status.
    return _Sending(next(chunks), chunks)


def _chunks(tenant_id: int, lines: Generator[str, None, None]) -> Generator[str, None, None]:
    """Lines put together; the first one alone. Raises `RateLimited` when enough of the tenant's are being sent."""
    with _exports.counted(tenant_id), closing(lines):
        yield next(lines)
        yield from joined(lines)


def joined(pieces: Iterable[str]) -> Iterator[str]:
    """The pieces, several at a time."""
    chunk: list[str] = []
    size = 0
    for piece in pieces:
        chunk.append(piece)
        size += len(piece)
        if size >= CHUNK_CHARS:
            yield "".join(chunk)
            chunk, size = [], 0
    yield "".join(chunk)
