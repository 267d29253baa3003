"""Try what is remembered of a person: the context window that an agent would get, and what a recall finds, with every
candidate's signals, for one or two presets side by side. Reading writes nothing, as in the API."""

from __future__ import annotations

from dataclasses import dataclass

from fastapi import APIRouter, Request, Response

from memory_app.errors import InvalidInput
from memory_app.page import signals
from memory_app.page.form import Form
from memory_app.page.person_routes import PERSON, person_page
from memory_app.page.route import Filled, PageRoute
from memory_app.page.signals import Bar
from memory_app.recall.bodies import ContextBody
from memory_app.recall.context import ContextRequest, context
from memory_app.recall.recall import RecallQuery, recall
from memory_app.recall.records import Hit
from memory_app.records.scope import Scope
from memory_app.records.scoring import PRESETS
from memory_app.web.auth import Call
from memory_app.web.call import OfUser, Reader

router = APIRouter(route_class=PageRoute, include_in_schema=False)

TRY = PERSON + "/try"

HITS = 10
CUT_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Candidate:
    """A candidate of a recall with what its score is made of. ``cut``: why it is not in the answer."""

    hit: Hit
    bar: Bar
    cut: str | None


@dataclass(frozen=True, slots=True)
class Attempt:
    """What a recall found with one preset, best first, and what did not make it."""

    preset: str
    found: tuple[Candidate, ...]
    cut: tuple[Candidate, ...]
    degraded: tuple[str, ...]


@router.get(TRY)
def show_form(request: Request, call: Reader, scope: OfUser) -> Response:
    return _view(request, scope, typed={})


@router.post(TRY)
def try_out(request: Request, call: Reader, scope: OfUser, form: Filled) -> Response:
    typed = form.first()
    try:
        return _answer(request, call, scope, form)
    except InvalidInput as error:
        return _view(request, scope, typed=typed, status=422, error=error)


def _answer(request: Request, call: Call, scope: Scope, form: Form) -> Response:
    typed = form.first()
    other = form.optional("other")
    form.fields.pop("other", None)
    body = form.read(ContextBody)
    asked = ContextRequest(**body.model_dump(exclude={"format"}))
    window = context(call.runtime, call.tenant_id, scope, request=asked)
    presets = dict.fromkeys((body.preset or call.runtime.settings.recall.preset, *([other] if other else [])))
    attempts = [_attempt(call, scope, body, preset) for preset in presets]
    return _view(request, scope, typed=typed, window=window, attempts=attempts)


def _attempt(call: Call, scope: Scope, body: ContextBody, preset: str) -> Attempt:
    place = Scope(scope.agent, scope.user, body.session)
    query = RecallQuery(text=body.query, limit=HITS, preset=preset, explain=True)
    recalled = recall(call.runtime, call.tenant_id, place, query=query)
    return Attempt(
        preset=preset,
        found=tuple(_candidate(hit) for hit in recalled.memories),
        cut=tuple(_candidate(hit) for hit in recalled.cut[:CUT_SHOWN]),
        degraded=recalled.degraded,
    )


def _candidate(hit: Hit) -> Candidate:
    explained = hit.explain or {}
    cut = explained.get("cut")
    return Candidate(hit, signals.bar(explained), None if cut is None else str(cut))


def _view(
    request: Request, scope: Scope, *, typed: dict[str, str], status: int = 200, **values: object
) -> Response:
    shown = {"window": None, "attempts": (), "error": None, **values}
    return person_page(
        request, scope, "person_try.html", status=status, typed=typed, presets=list(PRESETS), **shown
    )
