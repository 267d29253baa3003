"""Context: the window of text put before the model. Gathers the parts; `domain.sections` lays them out.

Every group of sections is read on its own, so that what is slow or away is left out and named instead of failing the
chat. Reading never writes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import structlog
from sqlalchemy import Connection

from memory_app.domain.kinds import Section, kinds_of_section
from memory_app.domain.layout import ANCHOR_IMPORTANCE, ANCHOR_LIMIT, ARTIFACT_LIMIT, CORE_LIMIT
from memory_app.domain.parts import Card, ContextParts, ExpressionPart, Row, SessionPart
from memory_app.domain.persona import load_template, parse_persona, render_persona
from memory_app.domain.records import Memory, Tier
from memory_app.domain.scope import Scope
from memory_app.domain.sections import ContextWindow, render, shared_vocabulary
from memory_app.errors import InvalidInput, Transient
from memory_app.runtime import Runtime
from memory_app.services import stream
from memory_app.services.recall import Hit, RecallQuery, recall
from memory_app.store import clock, entities, memories, names, sessions
from memory_app.store.db import transaction
from memory_app.store.names import ScopeRow

log = structlog.get_logger(__name__)

BUDGET_LIMIT_TOKENS = 200_000
TURNS_LIMIT = 200
TOPIC_MEMORIES = 10
"""Rows asked of recall; at most the setting's number is shown after blending."""

CARDS = 4
CARD_FACTS = 5


@dataclass(frozen=True, slots=True)
class ContextRequest:
    """What the chat is about to say something to. None takes the setting's default."""

    query: str | None = None
    session: str | None = None
    budget_tokens: int | None = None
    turns: int | None = None
    preset: str | None = None


def context(runtime: Runtime, tenant_id: int, scope: Scope, request: ContextRequest) -> ContextWindow:
    """The window for the next reply. A scope of which nothing is known yet gives the persona and the empty rest.

    Raises `InvalidInput` naming the field; `StoreUnavailable` only when not even the scope can be read.
    """
    budget, shown_turns = _checked(runtime, request)
    with transaction(runtime.engine, tenant_id) as connection:
        row = names.find_scope(connection, tenant_id, Scope(scope.agent, scope.user))
        now = clock.now(connection)
        parts = ContextParts() if row is None else _bootstrap(connection, row)
    if row is None:
        with transaction(runtime.engine, tenant_id) as connection:
            persona = names.agent_persona(connection, tenant_id, scope.agent)
        parts = replace(parts, expression=ExpressionPart(persona=_persona(persona)))
        return render(parts, budget_tokens=budget, now=now)
    parts = _with(
        parts, "session", lambda p: _with_session(runtime, tenant_id, row, request.session, shown_turns, p)
    )
    if request.query is not None and request.query.strip():
        parts = _with(parts, "memories", lambda p: _with_rows(runtime, tenant_id, scope, request, p))
    return render(parts, budget_tokens=budget, now=now)


def _checked(runtime: Runtime, request: ContextRequest) -> tuple[int, int]:
    settings = runtime.settings.context
    budget = settings.budget_tokens if request.budget_tokens is None else request.budget_tokens
    shown = settings.turns if request.turns is None else request.turns
    if not 1 <= budget <= BUDGET_LIMIT_TOKENS:
        raise InvalidInput(f"budget_tokens: 1 to {BUDGET_LIMIT_TOKENS}", field="budget_tokens")
    if not 0 <= shown <= TURNS_LIMIT:
        raise InvalidInput(f"turns: 0 to {TURNS_LIMIT}", field="turns")
    return budget, shown


def _with(parts: ContextParts, section: str, add: Callable[[ContextParts], ContextParts]) -> ContextParts:
    """The parts with one more group, or without it and its name among the degraded ones."""
    try:
        return add(parts)
    except Transient as error:
        log.warning("context_degraded", section=section, error=error.kind)
        return replace(parts, degraded=(*parts.degraded, section))


def _bootstrap(connection: Connection, row: ScopeRow) -> ContextParts:
    """Sections 1–4 and 6: they depend on who, not on the query."""

    def of(section: Section, limit: int, min_importance: int = 1) -> tuple[Memory, ...]:
        kinds = kinds_of_section(section)
        return memories.strongest(connection, row.visible, kinds, limit=limit, min_importance=min_importance)

    anchors = of(Section.RELATIONSHIP, ANCHOR_LIMIT, ANCHOR_IMPORTANCE)
    expression = of(Section.EXPRESSION, 10)
    episodes = of(Section.NARRATIVE, 1)
    mood = next((m.emotional_state for m in (*expression, *anchors) if m.emotional_state), None)
    return ContextParts(
        core=of(Section.CORE, CORE_LIMIT),
        expression=ExpressionPart(
            persona=_persona(row.persona),
            tuning=tuple(m for m in expression if m.kind == "expression"),
            values=tuple(m for m in expression if m.kind == "value"),
            mood=mood,
        ),
        anchors=anchors,
        vocabulary=shared_vocabulary(anchors),
        artifacts=of(Section.INSIGHTS, ARTIFACT_LIMIT),
        identity=of(Section.IDENTITY, 5),
        narrative=episodes[0].text if episodes else "",
        narrative_ids=tuple(m.id for m in episodes),
        zone=_zone(row.time_zone),
    )


def _persona(given: dict[str, object] | None) -> str:
    return render_persona(load_template("default").persona if given is None else parse_persona(given))


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        return ZoneInfo("UTC")


def _with_session(
    runtime: Runtime, tenant_id: int, row: ScopeRow, name: str | None, limit: int, parts: ContextParts
) -> ContextParts:
    with transaction(runtime.engine, tenant_id) as connection:
        session = sessions.find(connection, row.id, name) if name is not None else None
        if session is None:
            return parts
        shown = stream.latest(runtime, connection, row.id, session=session, limit=limit)
        before = sessions.last_activity_before(connection, row.id, session)
    return replace(
        parts,
        session=SessionPart(
            name=session.name, started_at=session.created_at, last_interaction_at=before, turns=shown
        ),
    )


def _with_rows(
    runtime: Runtime, tenant_id: int, scope: Scope, request: ContextRequest, parts: ContextParts
) -> ContextParts:
    """Sections 5, 7 and 8: what bears on the query, without what the session section shows anyway."""
    shown = {turn.id for turn in parts.session.turns} if parts.session else set()
    limits = runtime.settings.recall
    asked = RecallQuery(
        # What the user just wrote may be a whole page; its beginning asks well enough, and the chat goes on.
        text=(request.query or "")[: limits.query_limit_chars],
        limit=min(TOPIC_MEMORIES + len(shown), limits.limit_max),
        preset=request.preset,
        tiers=(Tier.FACTS, Tier.ENTITIES, Tier.DAILY_LOGS),
    )
    place = Scope(scope.agent, scope.user, request.session if scope.user else None)
    recalled = recall(runtime, tenant_id, place, asked)
    elsewhere = {m.id for m in (*parts.core, *parts.anchors, *parts.identity, *parts.expression.tuning)}
    rows = [
        _row(hit)
        for hit in recalled.memories
        if hit.tier is not Tier.ENTITIES and hit.id not in shown and hit.id not in elsewhere
    ]
    topical = tuple(m for m in parts.artifacts if any(row.id == m.id for row in rows))
    with transaction(runtime.engine, tenant_id) as connection:
        cards = _cards(
            connection, [hit for hit in recalled.memories if hit.tier is Tier.ENTITIES], tenant_id, place
        )
    return replace(
        parts,
        rows=tuple(rows[: runtime.settings.context.memories]),
        artifacts=topical or parts.artifacts,
        cards=cards,
        degraded=(*parts.degraded, *recalled.degraded),
    )


def _row(hit: Hit) -> Row:
    return Row(
        id=hit.id,
        tier=hit.tier,
        text=hit.text,
        at=hit.at,
        speaker=hit.speaker,
        score=hit.score,
        indexed=hit.indexed,
    )


def _cards(connection: Connection, hits: list[Hit], tenant_id: int, scope: Scope) -> tuple[Card, ...]:
    row = names.find_scope(connection, tenant_id, Scope(scope.agent, scope.user))
    if row is None:
        return ()
    return tuple(
        Card(
            key=entity.key,
            label=entity.label,
            type=entity.type,
            summary=entity.summary or "",
            facts=entities.facts_about(connection, entity, limit=CARD_FACTS),
            linked=entities.linked_to(connection, entity, limit=CARD_FACTS),
        )
        for entity in entities.by_keys(connection, row.visible, [str(hit.id) for hit in hits[:CARDS]])
    )
