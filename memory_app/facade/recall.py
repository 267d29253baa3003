"""Read memory: rows for a query, the context window, answers to questions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from uuid import UUID

from memory_app.ask import ask as ask_service
from memory_app.ask.ask import Answered
from memory_app.facade.base import Facade, tuple_of
from memory_app.memories import feedback as feedback_service
from memory_app.memories import query_graph as query_service
from memory_app.memories.feedback import Given
from memory_app.memories.query_graph import SimilarQuery
from memory_app.recall import context as context_service
from memory_app.recall import recall as recall_service
from memory_app.recall.context import ContextRequest
from memory_app.recall.expression_state import ExpressionState, expression_state
from memory_app.recall.recall import Recalled, RecallQuery
from memory_app.recall.sections import ContextWindow
from memory_app.records.choice import choice_of
from memory_app.records.ids import checked_id
from memory_app.records.records import (
    Label,
    Tier,
)
from memory_app.records.scope import Scope
from memory_app.turns import statistics as statistics_service
from memory_app.turns.statistics import Stats


class Recall(Facade):
    """See `MemoryApp`."""

    __slots__ = ()

    def recall(
        self,
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
    ) -> Recalled:
        """The best rows for the query, or without one the strongest. Filters narrow; an empty one is an error.

        The scope's session is the conversation going on, whose rows are preferred a little; ``session`` shows its rows
        alone.
        """
        request = RecallQuery(
            query,
            limit=limit,
            kinds=tuple_of(kinds),
            tiers=None if tiers is None else tuple(choice_of(Tier, tier, field="tiers") for tier in tiers),
            tags=tuple_of(tags),
            subtypes=tuple_of(subtypes),
            session=session,
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
        return recall_service.recall(self.runtime, self.tenant_id, scope, query=request)

    def context(
        self,
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
    ) -> ContextWindow:
        """The context window for the next reply in the scope's session.

        ``budget_tokens`` is never exceeded. What was slow or away is left out and named in ``degraded``.
        """
        request = ContextRequest(
            query,
            session=scope.session,
            budget_tokens=budget_tokens,
            turns=turns,
            preset=preset,
            topic_limit=topic_limit,
            anchor_limit=anchor_limit,
            anchor_importance=anchor_importance,
            expand_graph=expand_graph,
            depth=depth,
        )
        return context_service.context(self.runtime, self.tenant_id, scope, request=request)

    def ask(self, scope: Scope, question: str) -> Answered:
        """Have the agent's language model answer a question from memory, each sentence with the ids it rests on.

        `Conflict` for an agent without a model.
        """
        return ask_service.ask(self.runtime, self.tenant_id, scope, question=question)

    def feedback(
        self, scope: Scope, target: UUID | str, label: Label | str, *, note: str | None = None
    ) -> Given:
        """Rate a turn of the assistant or a memory: up, down or retry."""
        return feedback_service.give_feedback(
            self.runtime,
            self.tenant_id,
            scope,
            target=checked_id(target, field="target"),
            label=choice_of(Label, label, field="label"),
            note=note,
        )

    def stats(self, scope: Scope) -> Stats:
        """How much the scope holds and how much it may hold."""
        return statistics_service.stats(self.runtime, self.tenant_id, scope)

    def similar_queries(self, scope: Scope, text: str, *, limit: int = 10) -> tuple[SimilarQuery, ...]:
        """Questions the user asked that are like ``text``; those of the scope's session are preferred a little."""
        return query_service.search(self.runtime, self.tenant_id, scope, text=text, limit=limit)

    def expression(self, scope: Scope) -> ExpressionState:
        """How the agent speaks with the user now: persona, what tunes it, and the mood of the last interaction."""
        return expression_state(self.runtime, self.tenant_id, scope)
