"""Calls that read memory and rate it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from uuid import UUID

from memory_app.ask.answers import AskAnswer
from memory_app.client.call import MODEL_SECONDS, Call, answer_of, body_of, in_user
from memory_app.memories.answers import FeedbackAnswer, SimilarQueriesAnswer
from memory_app.recall.answers import ContextAnswer, ExpressionAnswer, RecallAnswer, StatsAnswer
from memory_app.records.ids import checked_id
from memory_app.records.records import Label, Tier
from memory_app.records.scope import Scope


def recall(
    scope: Scope,
    query: str | None = None,
    *,
    limit: int = 10,
    kinds: Sequence[str] | None = None,
    tiers: Sequence[Tier | str] | None = None,
    tags: Sequence[str] | None = None,
    subtypes: Sequence[str] | None = None,
    session: str | None = None,
    min_importance: int | None = None,
    after: datetime | None = None,
    before: datetime | None = None,
    as_of: datetime | None = None,
    preset: str | None = None,
    weights: Mapping[str, float | None] | None = None,
    min_score: float | None = None,
    threshold: float | None = None,
    expand_graph: bool = False,
    depth: int = 1,
    explain: bool = False,
) -> Call[RecallAnswer]:
    """The best rows for the query, or without one the strongest. Filters narrow; an empty one is an error.

    The scope's session is the conversation going on, whose rows are preferred a little; ``session`` shows its rows
    alone.
    """
    body = body_of(
        query=query,
        limit=limit,
        kinds=kinds,
        tiers=tiers,
        tags=tags,
        subtypes=subtypes,
        session=session,
        current_session=scope.session,
        min_importance=min_importance,
        after=after,
        before=before,
        as_of=as_of,
        preset=preset,
        weights=weights,
        min_score=min_score,
        threshold=threshold,
        expand_graph=expand_graph,
        depth=depth,
        explain=explain,
    )
    return Call("POST", in_user(scope, "recall"), answer_of(RecallAnswer), body=body)


def context(
    scope: Scope,
    query: str | None = None,
    *,
    budget_tokens: int | None = None,
    turns: int | None = None,
    topic_limit: int | None = None,
    anchor_limit: int | None = None,
    anchor_importance: int | None = None,
    expand_graph: bool = True,
    depth: int = 1,
    preset: str | None = None,
) -> Call[ContextAnswer]:
    """The context window for the next reply in the scope's session, as text and as chat messages.

    ``budget_tokens`` is never exceeded. What was slow or away is left out and named in ``degraded``.
    """
    body = body_of(
        query=query,
        session=scope.session,
        budget_tokens=budget_tokens,
        turns=turns,
        topic_limit=topic_limit,
        anchor_limit=anchor_limit,
        anchor_importance=anchor_importance,
        expand_graph=expand_graph,
        depth=depth,
        preset=preset,
        format="messages",
    )
    return Call("POST", in_user(scope, "context"), answer_of(ContextAnswer), body=body)


def ask(scope: Scope, question: str) -> Call[AskAnswer]:
    """Have the agent's language model answer a question from memory, each sentence with the ids it rests on.

    `Conflict` for an agent without a model.
    """
    body = body_of(question=question, session=scope.session)
    return Call("POST", in_user(scope, "ask"), answer_of(AskAnswer), body=body, further_seconds=MODEL_SECONDS)


def similar_queries(scope: Scope, text: str, *, limit: int = 10) -> Call[SimilarQueriesAnswer]:
    """Questions the user asked that are like ``text``; those of the scope's session are preferred a little."""
    body = body_of(text=text, limit=limit, session=scope.session)
    return Call("POST", in_user(scope, "queries", "search"), answer_of(SimilarQueriesAnswer), body=body)


def feedback(
    scope: Scope, target: UUID | str, label: Label | str, *, note: str | None = None
) -> Call[FeedbackAnswer]:
    """Rate a turn of the assistant or a memory: up, down or retry."""
    body = body_of(target=checked_id(target, field="target"), label=label, note=note)
    return Call("POST", in_user(scope, "feedback"), answer_of(FeedbackAnswer), body=body, is_repeatable=False)


def stats(scope: Scope) -> Call[StatsAnswer]:
    """How much the scope holds and how much it may hold."""
    return Call("GET", in_user(scope, "stats"), answer_of(StatsAnswer))


def expression(scope: Scope) -> Call[ExpressionAnswer]:
    """How the agent speaks with the user now: persona, what tunes it, and the mood of the last interaction."""
    return Call("GET", in_user(scope, "expression"), answer_of(ExpressionAnswer))
