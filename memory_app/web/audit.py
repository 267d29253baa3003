"""Write calls of routes into the audit log, refused ones too: before they begin and when they end."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from anyio import CancelScope, to_thread
from fastapi import Request

from memory_app import correlation
from memory_app.records.audit import Action
from memory_app.tenancy.audit import Noting, noting
from memory_app.tenancy.rows.keys import Caller
from memory_app.web.edge import SLASH

TARGETS = ("id", "key", "webhook")
"""Parts of the path that name what a call is about, beside agent and user. A session may be named after the person."""

TO = "to"
"""The agent that a grant is for, in the query."""


@asynccontextmanager
async def audited_request(request: Request, action: Action | None) -> AsyncIterator[None]:
    """Nothing for None. A caller who hangs up ends nothing: what was begun is done, and written down."""
    caller: Caller | None = getattr(request.state, "caller", None)
    if action is None or caller is None:
        yield
        return
    note = _note(request, action, caller)
    await to_thread.run_sync(note.begin)
    try:
        yield
    except BaseException as error:
        await _end(note, error)
        raise
    await _end(note, None)


async def _end(note: Noting, error: BaseException | None) -> None:
    # The task may be cancelled by now, and without the shield nothing would be written.
    with CancelScope(shield=True):
        await to_thread.run_sync(note.end, error)


def _note(request: Request, action: Action, caller: Caller) -> Noting:
    names = {name: value.replace(SLASH, "/") for name, value in request.path_params.items()}
    targets = [names[name] for name in TARGETS if name in names]
    if TO in request.query_params:
        targets.append(request.query_params[TO])
    if request.query_params.get("dry_run", "false").lower() not in ("false", "0", "no", "off"):
        targets.append("dry_run")
    return noting(
        request.app.state.runtime,
        caller.tenant_id,
        action,
        key_id=caller.key_id or None,
        agent=names.get("agent"),
        user=names.get("user"),
        target=" ".join(targets)[:200] or None,
        request_id=correlation.request_id(),
    )
