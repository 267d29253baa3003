"""Routes of the audit log of the caller's tenant. They need the right `admin`."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from memory_app.main.answers import AuditAnswer, ChainAnswer, EntryAnswer
from memory_app.records.audit import Action, Entry
from memory_app.tenancy import audit
from memory_app.web.call import Admin, errors
from memory_app.web.fields import NAME_SCHEMA, Instant
from memory_app.web.strict import StrictRoute
from memory_app.web.strict_json import LARGEST_INTEGER

router = APIRouter(route_class=StrictRoute, tags=["audit"])


@router.get("/v1/audit", responses=errors())
def get_audit(
    call: Admin,
    action: Annotated[Action | None, Query(description="Only this action.")] = None,
    user: Annotated[
        str | None, Query(description="Only what was done about this person.", json_schema_extra=NAME_SCHEMA)
    ] = None,
    key: Annotated[
        int | None, Query(ge=1, le=LARGEST_INTEGER, description="Only what was done with this key.")
    ] = None,
    since: Annotated[Instant | None, Query(description="Only what was done then or later.")] = None,
    until: Annotated[Instant | None, Query(description="Only what was done before.")] = None,
    cursor: Annotated[
        int | None, Query(ge=1, le=LARGEST_INTEGER, description="The `cursor` of the page before.")
    ] = None,
    limit: Annotated[int, Query(ge=1, le=500, description="Most entries.")] = 100,
) -> AuditAnswer:
    """Who did what, newest first: keys, policy, erasures, exports, imports, replays, undo, reads of a whole person."""
    rows = audit.entries(
        call.runtime,
        call.tenant_id,
        limit=limit,
        before=cursor,
        action=action,
        user=user,
        key_id=key,
        since=since,
        until=until,
    )
    is_full = len(rows) == limit
    return AuditAnswer(entries=[_answer(row) for row in rows], cursor=rows[-1].seq if is_full else None)


@router.get("/v1/audit/chain", responses=errors())
def verify_audit(call: Admin) -> ChainAnswer:
    """Walk along the whole log and tell whether an entry was changed, taken out or put in."""
    chain = audit.verify(call.runtime, call.tenant_id)
    return ChainAnswer(entries=chain.entries, head=chain.head.hex(), broken_at=chain.broken_at)


def _answer(entry: Entry) -> EntryAnswer:
    return EntryAnswer(
        seq=entry.seq,
        at=entry.at,
        key_id=entry.key_id,
        action=entry.action,
        agent=entry.agent,
        subject=None if entry.subject is None else entry.subject.hex(),
        target=entry.target,
        outcome=entry.outcome,
        request_id=entry.request_id,
        digest=entry.digest.hex(),
    )
