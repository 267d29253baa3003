"""The expression state of an agent with a user: how it speaks, what tunes it, and the mood of the last interaction.

Persona and adjustments are rows. The rest stands in Redis, and is read from the sessions and turns where it is not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

import structlog
from sqlalchemy import Connection

from memory_app.agents.persona import persona_of
from memory_app.db.db import transaction
from memory_app.errors import MemoryAppError
from memory_app.hot import expression, window
from memory_app.hot.expression import Expression
from memory_app.memories.rows import memories
from memory_app.records.kinds import Section, kinds_of_section
from memory_app.records.records import Memory
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.tenancy.rows import names
from memory_app.tenancy.rows.names import ScopeRow
from memory_app.tenancy.shards import in_scopes_shard
from memory_app.turns.rows import sessions

log = structlog.get_logger(__name__)

ADJUSTMENTS_LIMIT = 50
"""Newest memories of the section that are shown."""


@dataclass(frozen=True, slots=True)
class ExpressionState:
    """``adjustments`` are current memories that tune how the agent speaks, newest first. ``session`` is that of the
    last interaction; None of each: there was no interaction yet."""

    persona: Mapping[str, object]
    adjustments: tuple[Memory, ...]
    tone: str | None
    last_interaction_at: datetime | None
    session: str | None
    session_started_at: datetime | None


@in_scopes_shard
def expression_state(runtime: Runtime, tenant_id: int, scope: Scope) -> ExpressionState:
    """How the agent speaks with the user now. Raises `NotFound` for a pair of which nothing was ever stored."""
    with transaction(runtime.engine, tenant_id) as connection:
        row = names.need_scope(connection, tenant_id, scope)
        adjustments = names.over_visible(
            connection,
            row,
            lambda place, scopes: _adjustments(place, scopes),
            order=lambda memory: -memory.id.int,
        )
        state = _hot_state(runtime, row)
        newest = sessions.listed(connection, row.id, active=None, limit=1)
        # A producer's own word for a tone stands in the table alone.
        tone = state.tone
        if tone in (None, expression.UNLABELLED):
            tone = sessions.ongoing(connection, row.id, None).tone
        session = sessions.read(connection, row.id, state.session_id) if state.session_id else None
    current = session or (newest[0] if newest else None)
    is_known = session is not None
    return ExpressionState(
        persona=persona_of(row.persona).as_dict(),
        adjustments=tuple(adjustments[:ADJUSTMENTS_LIMIT]),
        tone=tone,
        last_interaction_at=state.last_interaction_at or (current.last_activity_at if current else None),
        session=current.name if current else None,
        session_started_at=(state.session_started_at if is_known else None)
        or (current.created_at if current else None),
    )


def _adjustments(connection: Connection, scope_ids: tuple[int, ...]) -> tuple[Memory, ...]:
    kinds = kinds_of_section(Section.EXPRESSION)
    return memories.listed(connection, scope_ids, kinds=kinds, tag=None, limit=ADJUSTMENTS_LIMIT, before=None)


def _hot_state(runtime: Runtime, row: ScopeRow) -> Expression:
    try:
        return window.read(runtime.hot, row.own_first).expression
    except MemoryAppError as error:
        log.warning("hot_memory_not_read", error=error.kind)
        return Expression()
