"""A person, as an agent remembers them: what holds now and since when, memories, sessions, questions, who is talked
about, and how it grew. Every list is shown a page at a time."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request, Response

from memory_app.errors import InvalidInput, NotFound
from memory_app.language.text import slug
from memory_app.memories import browse, entities
from memory_app.memories.entities import Card
from memory_app.memories.facts import FactQuery, find_facts
from memory_app.memories.lookup import MemoryFilter
from memory_app.page import graph, plots, timeline
from memory_app.page.render import HERE, Addresses, page
from memory_app.page.route import PageRoute
from memory_app.page.words import plural
from memory_app.records.kinds import KINDS, question_kinds
from memory_app.records.scope import Scope
from memory_app.turns import history
from memory_app.turns.statistics import stats
from memory_app.web.answers import next_cursor
from memory_app.web.auth import Call
from memory_app.web.call import Cursor, OfSession, OfUser, Reader
from memory_app.web.edge import SLASH
from memory_app.web.fields import KindName
from memory_app.web.strict_json import LARGEST_INTEGER

router = APIRouter(route_class=PageRoute, include_in_schema=False)

PERSON = HERE + "/agents/{agent}/users/{user}"

FACTS_NOW = 60
FACTS_PAGE = 100
MEMORIES_PAGE = 50
SESSIONS_PAGE = 50
TURNS_PAGE = 50
ENTITIES = 60

AMOUNTS = {
    "memories": partial(plural, one="memory", several="memories"),
    "turns": partial(plural, one="turn", several="turns"),
}
"""What grows, and how so many are written."""

Number = Annotated[int | None, Query(ge=1, le=LARGEST_INTEGER, description="The last of the page before.")]


@router.get(PERSON)
def show_person(request: Request, call: Reader, scope: OfUser) -> Response:
    facts = find_facts(call.runtime, call.tenant_id, scope, query=FactQuery(limit=FACTS_NOW))
    return person_page(request, scope, "person.html", facts=facts, is_full=len(facts) == FACTS_NOW)


@router.get(PERSON + "/card")
def show_card(request: Request, call: Reader, scope: OfUser) -> Response:
    """The part that looks through all that mentions the person, fetched when the rest is shown."""
    return person_page(request, scope, "person_card.html", card=_own_card(call, scope))


@router.get(PERSON + "/figures")
def show_figures(request: Request, call: Reader, scope: OfUser) -> Response:
    """The part that counts all that is stored, fetched when the rest is shown."""
    grown = browse.growth(call.runtime, call.tenant_id, scope)
    today = datetime.now(UTC).date()
    days = [today - timedelta(days=ago) for ago in reversed(range(browse.GROWTH_DAYS))]
    drawn = [
        plots.bars(
            {day: grown[several].get(day, 0) for day in days}, amount=amount, title=f"{several} by day"
        )
        for several, amount in AMOUNTS.items()
    ]
    counts = stats(call.runtime, call.tenant_id, scope)
    return person_page(request, scope, "person_figures.html", counts=counts, plots=drawn)


@router.get(PERSON + "/timeline")
def show_timeline(request: Request, call: Reader, scope: OfUser, cursor: Cursor = None) -> Response:
    facts = browse.told_facts(call.runtime, call.tenant_id, scope, limit=FACTS_PAGE, before=cursor)
    span = timeline.span_of(facts, datetime.now(UTC))
    address = _addresses(request, scope)("memories")
    lanes = [(lane, timeline.draw(lane, span, address)) for lane in timeline.lanes(facts)]
    older = next_cursor([fact.memory.id for fact in facts], FACTS_PAGE)
    return person_page(
        request, scope, "person_timeline.html", lanes=lanes, span=span, cursor=cursor, older=older
    )


@router.get(PERSON + "/memories")
def show_memories(
    request: Request,
    call: Reader,
    scope: OfUser,
    kind: Annotated[Literal[""] | KindName, Query(description="Only this kind.")] = "",
    history: Annotated[bool, Query(description="Retired ones too.")] = False,
    cursor: Cursor = None,
) -> Response:
    filters = MemoryFilter(kind=kind or None, limit=MEMORIES_PAGE, before=cursor, history=history)
    rows = browse.list_standing(call.runtime, call.tenant_id, scope, filters=filters)
    older = next_cursor([row.memory.id for row in rows], MEMORIES_PAGE)
    return person_page(
        request,
        scope,
        "person_memories.html",
        rows=rows,
        kinds=list(KINDS),
        kind=kind or None,
        history=history,
        cursor=cursor,
        older=older,
    )


@router.get(PERSON + "/questions")
def show_questions(request: Request, call: Reader, scope: OfUser, cursor: Cursor = None) -> Response:
    (kind,) = question_kinds()
    filters = MemoryFilter(kind=kind, limit=MEMORIES_PAGE, before=cursor)
    rows = browse.list_standing(call.runtime, call.tenant_id, scope, filters=filters)
    older = next_cursor([row.memory.id for row in rows], MEMORIES_PAGE)
    return person_page(request, scope, "person_questions.html", rows=rows, cursor=cursor, older=older)


@router.get(PERSON + "/sessions")
def show_sessions(request: Request, call: Reader, scope: OfUser, cursor: Number = None) -> Response:
    rows = history.list_sessions(call.runtime, call.tenant_id, scope, limit=SESSIONS_PAGE, before=cursor)
    older = rows[-1].number if len(rows) == SESSIONS_PAGE else None
    return person_page(request, scope, "person_sessions.html", rows=rows, cursor=cursor, older=older)


@router.get(PERSON + "/sessions/{session}")
def show_session(request: Request, call: Reader, scope: OfSession, cursor: Number = None) -> Response:
    read = history.read_history(call.runtime, call.tenant_id, scope, limit=TURNS_PAGE, before=cursor)
    older = min(turn.seq for turn in read.turns) if len(read.turns) == TURNS_PAGE else None
    return person_page(request, scope, "person_session.html", read=read, cursor=cursor, older=older)


@router.get(PERSON + "/entities")
def show_entities(request: Request, call: Reader, scope: OfUser) -> Response:
    circle = browse.circle(call.runtime, call.tenant_id, scope, limit=ENTITIES)
    mine = _addresses(request, scope)
    drawn = graph.draw(circle.entities, circle.ties, lambda entity: mine("entities", entity.key))
    return person_page(request, scope, "person_entities.html", rows=circle.entities, graph=drawn)


@router.get(PERSON + "/entities/{key}")
def show_entity(request: Request, call: Reader, scope: OfUser, key: str) -> Response:
    card = entities.card(call.runtime, call.tenant_id, scope, key=key.replace(SLASH, "/"))
    return person_page(request, scope, "person_entity.html", card=card)


def _own_card(call: Call, scope: Scope) -> Card | None:
    """What is known of the person as an entity; None where nothing is, or where their name makes no key."""
    try:
        return entities.card(call.runtime, call.tenant_id, scope, key=f"person:{slug(scope.user or '')}")
    except (InvalidInput, NotFound):
        return None


def person_page(request: Request, scope: Scope, template: str, **values: Any) -> Response:
    """A view of a person; ``mine`` makes addresses below theirs."""
    return page(request, template, scope=scope, mine=_addresses(request, scope), **values)


def _addresses(request: Request, scope: Scope) -> Callable[..., str]:
    return partial(Addresses(request), "agents", scope.agent, "users", scope.user)
