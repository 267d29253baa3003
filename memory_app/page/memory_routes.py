"""One memory: what it says, where it comes from, how firmly it stands, and what somebody may do about it.

It is looked at below its person, whom the key may be for; the memories that all users of the agent share are among
theirs, and a key for one person changes none of those.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from fastapi import APIRouter, Request, Response

from memory_app.errors import InvalidInput
from memory_app.forget.forget import forget_memory
from memory_app.memories import fate, lookup
from memory_app.memories.bodies import CorrectionBody
from memory_app.memories.correct import correct
from memory_app.memories.feedback import give_feedback
from memory_app.page.person_routes import PERSON, person_page
from memory_app.page.render import Addresses
from memory_app.page.route import Filled, PageRoute, done
from memory_app.records.audit import Action
from memory_app.records.choice import choice_of
from memory_app.records.records import RECOVERABLE, Label
from memory_app.records.run import OPEN
from memory_app.records.scope import Scope
from memory_app.tenancy.rows.keys import Caller
from memory_app.web.auth import Call
from memory_app.web.call import Eraser, MemoryId, OfUser, Reader, Writer
from memory_app.web.strict import audited

router = APIRouter(route_class=PageRoute, include_in_schema=False)

MEMORY = PERSON + "/memories/{id}"


@router.get(MEMORY)
def show_memory(request: Request, call: Reader, scope: OfUser, id: MemoryId) -> Response:
    return _view(request, call, scope, id)


@router.post(MEMORY + "/pin")
def pin(request: Request, call: Writer, scope: OfUser, id: MemoryId, form: Filled) -> Response:
    _check(request, call, scope, id)
    lookup.pin(call.runtime, call.tenant_id, id, pinned=True)
    return _done(request, scope, id, notice="pinned")


@router.post(MEMORY + "/unpin")
def unpin(request: Request, call: Writer, scope: OfUser, id: MemoryId, form: Filled) -> Response:
    _check(request, call, scope, id)
    lookup.pin(call.runtime, call.tenant_id, id, pinned=False)
    return _done(request, scope, id, notice="unpinned")


@router.post(MEMORY + "/invalidate")
def invalidate(request: Request, call: Writer, scope: OfUser, id: MemoryId, form: Filled) -> Response:
    _check(request, call, scope, id)
    lookup.invalidate(call.runtime, call.tenant_id, id)
    return _done(request, scope, id, notice="invalidated")


@router.post(MEMORY + "/revive")
def revive(request: Request, call: Writer, scope: OfUser, id: MemoryId, form: Filled) -> Response:
    _check(request, call, scope, id)
    fate.revive(call.runtime, call.tenant_id, id)
    return _done(request, scope, id, notice="revived")


@router.post(MEMORY + "/correct")
def correct_memory(request: Request, call: Writer, scope: OfUser, id: MemoryId, form: Filled) -> Response:
    _check(request, call, scope, id)
    try:
        body = form.read(CorrectionBody)
        triple = body.model_dump(exclude={"text"}, exclude_none=True)
        corrected = correct(call.runtime, call.tenant_id, id, text=body.text, triple=triple)
    except InvalidInput as error:
        # With what was typed, which may be long.
        return _view(request, call, scope, id, error=error, typed=form.first())
    return _done(request, scope, corrected.id, notice="corrected")


@router.post(MEMORY + "/rate")
def rate(request: Request, call: Writer, scope: OfUser, id: MemoryId, form: Filled) -> Response:
    label = choice_of(Label, form.text("label"), field="label")
    give_feedback(call.runtime, call.tenant_id, scope, target=id, label=label, note=form.optional("note"))
    return _done(request, scope, id, notice="rated")


@router.post(MEMORY + "/forget")
@audited(Action.ERASE_MEMORY)
def forget(request: Request, call: Eraser, scope: OfUser, id: MemoryId, form: Filled) -> Response:
    _check(request, call, scope, id)
    run = forget_memory(call.runtime, call.tenant_id, id)
    notice = "forgetting" if run.state in OPEN else "forgotten"
    return done(request, "agents", scope.agent, "users", scope.user, "memories", notice=notice)


def _view(
    request: Request,
    call: Call,
    scope: Scope,
    id: UUID,
    *,
    error: InvalidInput | None = None,
    typed: Mapping[str, Any] | None = None,
) -> Response:
    lookup.need_visible(call.runtime, call.tenant_id, scope, id)
    why = lookup.why(call.runtime, call.tenant_id, id)
    return person_page(
        request,
        scope,
        "memory.html",
        status=200 if error is None else 422,
        why=why,
        chain=lookup.versions(call.runtime, call.tenant_id, id),
        can_revive=why.memory.retired_reason in RECOVERABLE,
        error=error,
        typed=typed,
        here=Addresses(request)("agents", scope.agent, "users", scope.user, "memories", id),
    )


def _check(request: Request, call: Call, scope: Scope, id: UUID) -> None:
    """Raise `NotFound` unless the memory is one that the caller may change."""
    caller: Caller = request.state.caller
    need = lookup.need_visible if caller.user is None else lookup.need_own
    need(call.runtime, call.tenant_id, scope, id)


def _done(request: Request, scope: Scope, id: UUID, *, notice: str) -> Response:
    return done(request, "agents", scope.agent, "users", scope.user, "memories", id, notice=notice)
