"""Routes that read memory: the context window, recall, entities and statistics."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, Query

from memory_app.memories.answers import EntitiesAnswer, EntityAnswer
from memory_app.memories.entities import list_entities
from memory_app.recall.answers import (
    CapacityAnswer,
    ContextAnswer,
    ExpressionAnswer,
    HitAnswer,
    MessageAnswer,
    RecallAnswer,
    StatsAnswer,
)
from memory_app.recall.bodies import ContextBody, RecallBody
from memory_app.recall.context import ContextRequest, context
from memory_app.recall.expression_state import expression_state
from memory_app.recall.recall import RecallQuery, recall
from memory_app.recall.sections import as_json, as_messages
from memory_app.records.records import Tier
from memory_app.turns.statistics import stats
from memory_app.web.call import IN_SCOPE, OfUser, Reader, errors
from memory_app.web.strict import StrictRoute

router = APIRouter(route_class=StrictRoute, tags=["recall"])


@router.post(IN_SCOPE + "/context", responses=errors(400, 404, 413))
def get_context(call: Reader, scope: OfUser, body: ContextBody) -> ContextAnswer:
    """The context window for the next reply, within its budget.

    A part that is slow or away is left out and named in `degraded`; the chat goes on.
    """
    request = ContextRequest(**body.model_dump(exclude={"format"}))
    window = context(call.runtime, call.tenant_id, scope, request=request)
    answer = ContextAnswer.model_validate(as_json(window))
    if body.format != "messages":
        return answer
    messages = [MessageAnswer.model_validate(message) for message in as_messages(window)]
    return answer.model_copy(update={"messages": messages})


@router.post(IN_SCOPE + "/recall", operation_id="recall", responses=errors(400, 404, 413))
def read_recall(call: Reader, scope: OfUser, body: RecallBody) -> RecallAnswer:
    """What is remembered that answers a query, best first. Reading writes nothing."""
    place = replace(scope, session=body.current_session)
    recalled = recall(call.runtime, call.tenant_id, place, query=recall_query(body))
    return RecallAnswer(
        memories=[HitAnswer.model_validate(hit) for hit in recalled.memories],
        degraded=list(recalled.degraded),
        cut=[HitAnswer.model_validate(hit) for hit in recalled.cut],
    )


@router.get(IN_SCOPE + "/expression", responses=errors(404))
def get_expression(call: Reader, scope: OfUser) -> ExpressionAnswer:
    """How the agent speaks with the user now: persona, what tunes it, and the mood of the last interaction."""
    return ExpressionAnswer.model_validate(expression_state(call.runtime, call.tenant_id, scope))


@router.get(IN_SCOPE + "/entities", operation_id="list_entities", responses=errors(404))
def read_entities(
    call: Reader,
    scope: OfUser,
    limit: Annotated[int, Query(ge=1, le=500, description="Most entities.")] = 100,
) -> EntitiesAnswer:
    """Who and what is talked about, most mentioned first."""
    entities = list_entities(call.runtime, call.tenant_id, scope, limit=limit)
    return EntitiesAnswer(entities=[EntityAnswer.model_validate(entity) for entity in entities])


@router.get(IN_SCOPE + "/stats", tags=["operations"], responses=errors(404))
def get_stats(call: Reader, scope: OfUser) -> StatsAnswer:
    """Counts of what is stored for an agent and a user, and how much may be."""
    counts = stats(call.runtime, call.tenant_id, scope)
    rows = counts.rows
    return StatsAnswer(
        memories=dict(counts.memories),
        retired_memories=rows.retired_memories,
        links=rows.links,
        entities=rows.entities,
        sessions=rows.sessions,
        turns=rows.turns,
        failed_turns=rows.failed_turns,
        capacity=CapacityAnswer(max_memories=counts.max_memories, max_links=counts.max_links),
    )


def recall_query(body: RecallBody) -> RecallQuery:
    return RecallQuery(
        text=body.query,
        limit=body.limit,
        kinds=None if body.kinds is None else tuple(body.kinds),
        tiers=None if body.tiers is None else tuple(Tier(tier) for tier in body.tiers),
        tags=None if body.tags is None else tuple(body.tags),
        session=body.session,
        min_importance=body.min_importance,
        as_of=body.as_of,
        preset=body.preset,
        expand_graph=body.expand_graph,
        depth=body.depth,
        subtypes=None if body.subtypes is None else tuple(body.subtypes),
        after=body.after,
        before=body.before,
        min_score=body.min_score,
        weights=body.weights,
        threshold=body.threshold,
        explain=body.explain,
    )
