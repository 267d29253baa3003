"""The agents: the persona with a preview, the policy and the memories that every user of an agent begins with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from starlette.responses import RedirectResponse

from memory_app.agents import agents, counts
from memory_app.agents.agents import AgentChange
from memory_app.agents.persona import (
    LENGTHS,
    STRUCTURES,
    STYLES,
    TEMPLATES,
    TONES,
    load_template,
    parse_persona,
    persona_of,
    render_persona,
)
from memory_app.errors import InvalidInput, MemoryAppError, NotFound
from memory_app.language.redaction import PrivateKind, Redaction
from memory_app.page import agent_forms
from memory_app.page.render import HERE, Addresses, page
from memory_app.page.route import Filled, PageRoute, done, shown_again
from memory_app.records.audit import Action
from memory_app.records.kinds import KINDS
from memory_app.records.retention import CLASSES
from memory_app.records.scope import Scope
from memory_app.records.scoring import PRESETS, SIGNAL_NAMES
from memory_app.tenancy.policy import ExtractionMode, Policy
from memory_app.web.call import Admin, NameCursor, OfAgent, Reader
from memory_app.web.errors import status_of
from memory_app.web.strict import audited

router = APIRouter(route_class=PageRoute, include_in_schema=False)

PAGE_AGENTS = 50
SPARE_ROWS = 2
"""Empty rows below a table of fields, since nothing here can add one."""

AGENT = HERE + "/agents/{agent}"
PERSONA, POLICY, DEFAULTS = "agent_persona.html", "agent_policy.html", "agent_defaults.html"

Choices = Mapping[str, Sequence[str]]
OF_PERSONA: Choices = {
    "styles": STYLES,
    "tones": TONES,
    "lengths": LENGTHS,
    "structures": STRUCTURES,
    "templates": TEMPLATES,
}
OF_POLICY: Choices = {
    "extractions": list(ExtractionMode),
    "presets": list(PRESETS),
    "signals": SIGNAL_NAMES,
    "redactions": list(Redaction),
    "private_kinds": list(PrivateKind),
    "switches": agent_forms.SWITCHES,
    "counts": agent_forms.COUNTS,
    "seconds": agent_forms.SECONDS,
    "retention_classes": CLASSES,
}
OF_DEFAULTS: Choices = {"kinds": list(KINDS)}


@router.get(HERE + "/agents")
def show_agents(
    request: Request,
    call: Reader,
    cursor: NameCursor = None,
    agent: Annotated[str, Query(max_length=200, description="The name of one to open.")] = "",
) -> Response:
    if agent:
        return RedirectResponse(Addresses(request)("agents", agent), status_code=303)
    rows = counts.list_agents(call.runtime, call.tenant_id, limit=PAGE_AGENTS, cursor=cursor)
    is_full = len(rows) == PAGE_AGENTS
    return page(
        request,
        "agents.html",
        agents=rows,
        counted=counts.USERS_COUNTED,
        cursor=cursor,
        next_cursor=rows[-1].name if is_full else None,
    )


@router.get(AGENT)
def show_persona(
    request: Request,
    call: Reader,
    scope: OfAgent,
    template: Annotated[str, Query(max_length=50, description="Fill the form with this one.")] = "",
) -> Response:
    if template and template not in TEMPLATES:
        raise InvalidInput(f"template: one of {', '.join(TEMPLATES)}", field="template")
    persona, is_new = _stored(call, scope, "persona")
    if template:
        persona = load_template(template).persona.as_dict()
    return _shown(request, scope, PERSONA, persona, is_new=is_new)


@router.post(AGENT + "/persona")
@audited(Action.AGENT_CHANGE)
def save_persona(request: Request, call: Admin, scope: OfAgent, form: Filled) -> Response:
    persona = agent_forms.persona_of(form)
    with shown_again(request, lambda error: _shown(request, scope, PERSONA, persona, error=error)):
        _change(call, scope, persona=persona)
    return done(request, "agents", scope.agent, notice="persona")


@router.post(AGENT + "/persona/reset")
@audited(Action.AGENT_CHANGE)
def reset_persona(request: Request, call: Admin, scope: OfAgent, form: Filled) -> Response:
    _change(call, scope, persona=None)
    return done(request, "agents", scope.agent, notice="persona")


@router.post(AGENT + "/persona/preview")
def preview_persona(request: Request, call: Reader, scope: OfAgent, form: Filled) -> Response:
    """What the model would read of the persona in the form. Stores nothing."""
    persona = agent_forms.persona_of(form)
    if "HX-Request" in request.headers:
        return page(request, "agent_preview.html", text=render_persona(parse_persona(persona)))
    with shown_again(request, lambda error: _shown(request, scope, PERSONA, persona, error=error)):
        parse_persona(persona)
    return _shown(request, scope, PERSONA, persona)


@router.get(AGENT + "/policy")
def show_policy(request: Request, call: Reader, scope: OfAgent) -> Response:
    policy, is_new = _stored(call, scope, "policy")
    return _shown(request, scope, POLICY, policy, is_new=is_new)


@router.post(AGENT + "/policy")
@audited(Action.AGENT_CHANGE)
def save_policy(request: Request, call: Admin, scope: OfAgent, form: Filled) -> Response:
    policy = agent_forms.policy_of(form)
    with shown_again(request, lambda error: _shown(request, scope, POLICY, policy, error=error)):
        _change(call, scope, policy=policy)
    return done(request, "agents", scope.agent, "policy", notice="policy")


@router.get(AGENT + "/defaults")
def show_defaults(request: Request, call: Reader, scope: OfAgent) -> Response:
    memories, is_new = _stored(call, scope, "default_memories")
    return _shown(request, scope, DEFAULTS, memories, is_new=is_new)


@router.post(AGENT + "/defaults")
@audited(Action.AGENT_CHANGE)
def save_defaults(request: Request, call: Admin, scope: OfAgent, form: Filled) -> Response:
    memories = agent_forms.defaults_of(form)
    with shown_again(request, lambda error: _shown(request, scope, DEFAULTS, memories, error=error)):
        _change(call, scope, default_memories=memories)
    return done(request, "agents", scope.agent, "defaults", notice="defaults")


def _stored(call: Reader, scope: Scope, part: str) -> tuple[Any, bool]:
    """A part of the agent as a document, and whether the agent would be new."""
    try:
        agent = agents.agent(call.runtime, call.tenant_id, scope)
    except NotFound:
        fresh = {"persona": persona_of(None).as_dict(), "policy": Policy().as_dict(), "default_memories": []}
        return fresh[part], True
    documents = {
        "persona": agent.persona.as_dict(),
        "policy": agent.policy.as_dict(),
        "default_memories": [dict(memory) for memory in agent.default_memories],
    }
    return documents[part], False


def _change(call: Admin, scope: Scope, **parts: Any) -> None:
    change = AgentChange(named=frozenset(parts), **parts)
    agents.change_agent(call.runtime, call.tenant_id, scope, change=change)


def _shown(
    request: Request,
    scope: Scope,
    template: str,
    document: Any,
    *,
    is_new: bool = False,
    error: MemoryAppError | None = None,
) -> Response:
    """The form of a part of an agent with what it holds, and what is wrong with it."""
    choices = {PERSONA: OF_PERSONA, POLICY: OF_POLICY, DEFAULTS: OF_DEFAULTS}[template]
    text = render_persona(parse_persona(document)) if template == PERSONA and error is None else None
    return page(
        request,
        template,
        status=200 if error is None else status_of(error),
        agent=scope.agent,
        document=document,
        is_new=is_new,
        error=error,
        text=text,
        spare_rows=SPARE_ROWS,
        may_change="admin" in request.state.caller.rights,
        **choices,
    )
