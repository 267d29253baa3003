"""Context: the window of text put before the model. Gathers the parts; `recall.sections` lays them out.

What depends on who is read in one transaction, what bears on the query by recall; what is slow or away is left out and
named instead of failing the chat. Reading writes no row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from uuid import UUID

import structlog
from sqlalchemy import Connection

from memory_app import metrics
from memory_app.db.db import transaction
from memory_app.errors import InvalidInput, MemoryAppError, Transient
from memory_app.hot import expression, window
from memory_app.hot.expression import Expression, Interaction
from memory_app.hot.shown_windows import ShownWindow
from memory_app.hot.window import HotContext
from memory_app.language.text import clean_given
from memory_app.recall.bootstrap_parts import Anchors, bootstrap_parts, first_parts, persona_parts
from memory_app.recall.counts import note_hits
from memory_app.recall.granted import with_granted
from memory_app.recall.narrative import with_narrative
from memory_app.recall.parts import ContextParts, SessionPart
from memory_app.recall.query import QueryVectors, ScopedQuery, check_query, embed_query, prepare_query
from memory_app.recall.recall import search, search_previous_models
from memory_app.recall.records import Hit, Recalled, RecallQuery
from memory_app.recall.rerank import is_reranked, rerank, with_more_rows
from memory_app.recall.sections import ContextWindow, render
from memory_app.recall.topic import Topic, read_topic, with_topic
from memory_app.records.importance import HIGHEST
from memory_app.records.layout import ANCHOR_LIMIT
from memory_app.records.records import Tier
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.tenancy.policy import parse_policy
from memory_app.tenancy.redaction import with_redaction_of
from memory_app.tenancy.rows import names
from memory_app.tenancy.rows.names import ScopeRow
from memory_app.tenancy.shards import in_scopes_shard
from memory_app.turns import stream
from memory_app.turns.rows import sessions
from memory_app.turns.rows.sessions import Ongoing, SessionRow

log = structlog.get_logger(__name__)

BUDGET_LIMIT_TOKENS = 200_000
TURNS_LIMIT = 200
TOPIC_LIMIT = 10
"""Rows asked of recall by default; at most the setting's number is shown after blending."""

ANCHORS_MOST = 50

LOG_LINE_TOKENS = 40
"""Tokens of a usual line of the log: as many lines are read as the budget may hold."""

LOG_LINES_LIMIT = 100

BEGUN_AFRESH = timedelta(seconds=1)
"""A session whose start is noted that much later than it was made was begun afresh since."""


@dataclass(frozen=True, slots=True)
class ContextRequest:
    """The options of a context window. None takes the setting's default."""

    query: str | None = None
    session: str | None = None
    budget_tokens: int | None = None
    turns: int | None = None
    preset: str | None = None
    topic_limit: int | None = None
    """Rows of memory and turns that are looked for; how many of them are shown depends on the room."""
    anchor_limit: int | None = None
    anchor_importance: int | None = None
    """Least importance of a relational anchor that is shown, 1–10."""
    expand_graph: bool = True
    """Whether memories linked to those that bear on the query may be shown, up to ``depth`` links away."""
    depth: int = 1


@dataclass(frozen=True, slots=True)
class _Search:
    """A search that cannot be finished in the transaction, since no model is called in one. ``recalled`` None: vectors
    were missing. ``limit`` is how many rows are wanted of it."""

    scoped: ScopedQuery
    limit: int
    recalled: Recalled | None = None


@dataclass(frozen=True, slots=True)
class _Read:
    """What was read in one transaction. ``row`` None: there is nothing to be searched. ``topic`` is what recall
    returned; a `_Search` where a model must be asked first; None: nothing is searched, or the search failed."""

    row: ScopeRow | None
    parts: ContextParts
    now: datetime
    topic: Topic | _Search | None = None


@metrics.timing(metrics.context_seconds, "whole")
@in_scopes_shard
def context(runtime: Runtime, tenant_id: int, scope: Scope, *, request: ContextRequest) -> ContextWindow:
    """Build the window for the next reply. For a scope without any data it holds the persona and nothing else.

    Raises `InvalidInput` naming the field; `StoreUnavailable` only when not even the scope can be read.
    """
    rendered = _rendered(runtime, tenant_id, scope, request=request)
    for section in rendered.degraded:
        metrics.degraded.labels("context", section).inc()
    return rendered


def _rendered(runtime: Runtime, tenant_id: int, scope: Scope, *, request: ContextRequest) -> ContextWindow:
    budget, turns_limit = _limits_of(runtime, request)
    query = _query_of(runtime, request)
    # Before the transaction: none is open while a model is called.
    with metrics.timed(metrics.context_seconds, "embed"):
        vectors = _vectors(runtime, tenant_id, scope, query)
    wanted = _Request(
        scope=scope,
        anchors=_anchors_of(request),
        session=request.session,
        turns=turns_limit,
        query=query,
        vectors=vectors,
        further_turns=min(budget // LOG_LINE_TOKENS, LOG_LINES_LIMIT),
    )
    with metrics.timed(metrics.context_seconds, "read"):
        read = _read(runtime, tenant_id, wanted)
    if read.row is None or query is None:
        return render(read.parts, budget_tokens=budget, now=read.now)
    topic = _searched_topic(runtime, tenant_id, row=read.row, topic=read.topic)
    # A narrative is kept for some minutes, and would outlive a grant that is revoked; and what is another agent's must
    # not be moved by ratings of this reply.
    own_hits = tuple(hit for hit in topic.hits if hit.agent is None)
    read = replace(
        read, parts=with_narrative(runtime, tenant_id, read.row, read.parts, query=query, hits=own_hits)
    )
    turn_ids = {str(turn.id) for turn in read.parts.turns}
    limit = runtime.settings.context.memories
    parts = with_topic(read.parts, topic, turn_ids=turn_ids, limit=limit)
    rendered = render(parts, budget_tokens=budget, now=read.now)
    omitted = turn_ids - {str(turn.id) for turn in rendered.turns}
    if any(str(hit.id) in omitted for hit in topic.hits):
        # The budget took these turns out of the session section: the best of them may stand as rows.
        parts = with_topic(read.parts, topic, turn_ids=turn_ids - omitted, limit=limit)
        rendered = render(parts, budget_tokens=budget, now=read.now)
    note_hits(runtime, tenant_id, own_hits, window=_shown_window(read, wanted, own_hits, rendered))
    return rendered


def _vectors(runtime: Runtime, tenant_id: int, scope: Scope, query: RecallQuery | None) -> QueryVectors:
    if query is None:
        return QueryVectors()
    return embed_query(with_redaction_of(runtime, tenant_id, scope.agent), query.text)


def _limits_of(runtime: Runtime, request: ContextRequest) -> tuple[int, int]:
    """Return the budget in tokens and the number of turns, checked."""
    settings = runtime.settings.context
    budget = settings.budget_tokens if request.budget_tokens is None else request.budget_tokens
    turns = settings.turns if request.turns is None else request.turns
    if not 1 <= budget <= BUDGET_LIMIT_TOKENS:
        raise InvalidInput(f"budget_tokens: 1 to {BUDGET_LIMIT_TOKENS}", field="budget_tokens")
    if not 0 <= turns <= TURNS_LIMIT:
        raise InvalidInput(f"turns: 0 to {TURNS_LIMIT}", field="turns")
    return budget, turns


def _anchors_of(request: ContextRequest) -> Anchors:
    limit = ANCHOR_LIMIT if request.anchor_limit is None else request.anchor_limit
    if not 0 <= limit <= ANCHORS_MOST:
        raise InvalidInput(f"anchor_limit: 0 to {ANCHORS_MOST}", field="anchor_limit")
    if request.anchor_importance is not None and not 1 <= request.anchor_importance <= HIGHEST:
        raise InvalidInput(f"anchor_importance: 1 to {HIGHEST}", field="anchor_importance")
    return Anchors(limit, request.anchor_importance)


# --- what depends on who ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Request:
    """What is read. ``query`` None: nothing is to be searched for. ``vectors`` are those of its text,
    ``further_turns`` as in `ScopedQuery`."""

    scope: Scope
    anchors: Anchors
    session: str | None
    turns: int
    query: RecallQuery | None
    vectors: QueryVectors
    further_turns: int


def _read(runtime: Runtime, tenant_id: int, request: _Request, *, has_session: bool = True) -> _Read:
    """Read all parts of the window. If reading the session fails, all is read again without it; a search that fails
    is left out."""
    read, stage = None, "scope"
    # One transaction for all of it, as each round trip costs more than what it reads.
    try:
        with transaction(runtime.engine, tenant_id) as connection:
            row = names.find_scope(connection, tenant_id, Scope(request.scope.agent, request.scope.user))
            if row is None:
                first = first_parts(connection, tenant_id, request.scope.agent, anchors=request.anchors)
                return _Read(row=None, parts=first.parts, now=first.now)
            if not parse_policy(row.policy).memory:
                return _Read(row=None, parts=persona_parts(row.persona), now=row.now)
            hot_context = _read_hot(runtime, row)
            parts = bootstrap_parts(
                runtime, connection, row, hot_context=hot_context, anchors=request.anchors
            )
            stage = "session"
            if has_session:
                parts = _with_session(
                    runtime, connection, row, request=request, hot_context=hot_context, parts=parts
                )
            else:
                parts = replace(parts, degraded=(*parts.degraded, stage))
            read, stage = _Read(row=row, parts=parts, now=row.now), "memories"
            return _with_search(runtime, connection, read, row=row, request=request)
    except Transient as error:
        can_do_without_session = stage == "session" and has_session and request.session is not None
        if read is None and not can_do_without_session:
            raise
        log.warning("context_degraded", section=stage, error=error.kind)
    # An error aborts the transaction, so everything is read again, this time without the session.
    return read or _read(runtime, tenant_id, request, has_session=False)


def _with_search(
    runtime: Runtime, connection: Connection, read: _Read, *, row: ScopeRow, request: _Request
) -> _Read:
    if request.query is None:
        return read
    # Turns of the session section are hits again; as many more are asked for, so that memories are not displaced.
    room = runtime.settings.recall.limit_max - request.query.limit
    spare = min(len(read.parts.turns), room)
    query = replace(request.query, limit=request.query.limit + spare)
    # Only the scope of a user has sessions.
    session = request.session if row.user_id is not None else None
    scoped = prepare_query(
        connection,
        runtime,
        row,
        query=with_more_rows(runtime, query),
        vectors=request.vectors,
        session=session,
        spare=spare,
        further_turns=request.further_turns,
    )
    scoped = with_granted(connection, runtime, scoped)
    if scoped.missing_models:
        return replace(read, topic=_Search(scoped, query.limit))
    recalled = search(connection, runtime, scoped)
    if is_reranked(runtime, query):
        return replace(read, topic=_Search(scoped, query.limit, recalled))
    return replace(read, topic=read_topic(connection, row, scoped=scoped, recalled=recalled))


def _read_hot(runtime: Runtime, row: ScopeRow) -> HotContext | None:
    """Read the hot part of the window; None while Redis is away, since the tables have all of it."""
    try:
        return window.read(runtime.hot, row.own_first)
    except MemoryAppError as error:
        log.warning("hot_memory_not_read", error=error.kind)
        return None


def _with_session(
    runtime: Runtime,
    connection: Connection,
    row: ScopeRow,
    *,
    request: _Request,
    hot_context: HotContext | None,
    parts: ContextParts,
) -> ContextParts:
    ongoing = sessions.ongoing(connection, row.id, request.session)
    session = ongoing.session
    state = _expression(runtime, row, ongoing=ongoing, hot_context=hot_context)
    parts = replace(parts, expression=replace(parts.expression, last_tone=state.tone))
    if session is None:
        # The first reply of a session is asked for before its first turn is there.
        if request.session is None or ongoing.active_before is None:
            return parts
        part = SessionPart(name=request.session, last_interaction_at=ongoing.active_before)
        return replace(parts, session=part)
    latest = stream.latest(
        runtime,
        connection,
        row.id,
        session=session,
        limit=request.turns,
        listed=hot_context.turns if hot_context else None,
    )
    part = SessionPart(
        name=session.name,
        started_at=_began(state, session) or ongoing.first_at or session.created_at,
        last_interaction_at=ongoing.active_before,
        turns=latest,
    )
    return replace(parts, session=part)


def _began(state: Expression, session: SessionRow) -> datetime | None:
    """When the session was begun afresh; None when it never was."""
    # The hot state is that of the scope, and may be about another of its sessions.
    if state.session_id != session.id or state.session_started_at is None:
        return None
    # It is set to the making of the session first, in milliseconds.
    is_afresh = state.session_started_at - session.created_at > BEGUN_AFRESH
    return state.session_started_at if is_afresh else None


def _expression(
    runtime: Runtime, row: ScopeRow, *, ongoing: Ongoing, hot_context: HotContext | None
) -> Expression:
    """Return the hot state with what only the table has; rebuild it from the table where Redis has lost it."""
    state = hot_context.expression if hot_context else Expression()
    is_lost = hot_context is not None and state.last_interaction_at is None
    if is_lost and ongoing.session is not None:
        _rebuild(runtime, row, ongoing.session)
    # Redis stores only known labels of a tone, never a producer's own word; the table has that word.
    if state.tone in (None, expression.UNLABELLED):
        return replace(state, tone=ongoing.tone)
    return state


def _rebuild(runtime: Runtime, row: ScopeRow, session: SessionRow) -> None:
    at, began = session.last_activity_at, session.created_at
    try:
        expression.note(runtime.hot, row.id, Interaction(session.id, at, session_started_at=began))
    except MemoryAppError as error:
        log.warning("expression_not_rebuilt", error=error.kind)


# --- what bears on the query --------------------------------------------------------------------------------


def _query_of(runtime: Runtime, request: ContextRequest) -> RecallQuery | None:
    limits = runtime.settings.recall
    topic_limit = min(TOPIC_LIMIT, limits.limit_max) if request.topic_limit is None else request.topic_limit
    if not 1 <= topic_limit <= limits.limit_max:
        raise InvalidInput(f"topic_limit: 1 to {limits.limit_max}", field="topic_limit")
    # Recall refuses an empty query, but a chat with an empty message must go on.
    if request.query is None or not clean_given(request.query, field="query")[0].strip():
        return None
    # What the user just wrote may be a whole page; its beginning asks well enough, and the chat goes on.
    query = RecallQuery(
        text=request.query[: limits.query_limit_chars],
        limit=topic_limit,
        # Entities are shown as cards.
        tiers=(Tier.FACTS, Tier.DAILY_LOGS),
        preset=request.preset,
        expand_graph=request.expand_graph,
        depth=request.depth,
    )
    return check_query(runtime, query)


def _searched_topic(
    runtime: Runtime, tenant_id: int, *, row: ScopeRow, topic: Topic | _Search | None
) -> Topic:
    """Return the topic; where a model had to be asked, finish the search now."""
    try:
        if isinstance(topic, _Search):
            scoped, recalled = topic.scoped, topic.recalled
            if recalled is None:
                recalled = search_previous_models(runtime, tenant_id, scoped)
            recalled = rerank(
                runtime, scoped, recalled, limit=topic.limit, further_turns=scoped.further_turns
            )
            with transaction(runtime.engine, tenant_id) as connection:
                topic = read_topic(connection, row, scoped=scoped, recalled=recalled)
    except Transient as error:
        log.warning("context_degraded", section="memories", error=error.kind)
        topic = None
    return Topic(degraded=("memories",)) if topic is None else topic


_TOPIC_SECTIONS = ("insights", "entities", "memories")


def _shown_window(
    read: _Read, request: _Request, hits: Sequence[Hit], rendered: ContextWindow
) -> ShownWindow | None:
    """What of the topic stands in the window; what stands in every window says nothing about one reply."""
    if read.row is None or request.session is None:
        return None
    in_window = {id for section in rendered.sections if section.name in _TOPIC_SECTIONS for id in section.ids}
    ids = [hit.id for hit in hits if hit.tier is Tier.FACTS and isinstance(hit.id, UUID)]
    return ShownWindow(
        read.row.id, request.session, read.now, tuple(id for id in ids if str(id) in in_window)
    )
