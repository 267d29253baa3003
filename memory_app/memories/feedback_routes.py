"""Routes of feedback and of the query graph: rate an answer or a memory, find questions like another."""

from __future__ import annotations

from typing import Literal

from fastapi import APIRouter
from pydantic import ConfigDict, Field

from memory_app.memories.answers import FeedbackAnswer, SimilarQueriesAnswer, SimilarQueryAnswer
from memory_app.memories.feedback import give_feedback
from memory_app.memories.query_graph import LIMIT_MAX, search
from memory_app.records.records import Label
from memory_app.records.scope import Scope
from memory_app.web.call import IN_SCOPE, OfUser, Reader, Writer, errors
from memory_app.web.fields import Body, CleanWords, Id, Name, Words
from memory_app.web.strict import StrictRoute

router = APIRouter(route_class=StrictRoute, tags=["feedback"])


class FeedbackBody(Body):
    """What somebody thought of an answer or a memory."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"target": "019af0c2-7d1e-7cc3-98c4-dc0c0c07398f", "label": "up", "note": "Just right."}
            ]
        }
    )

    target: Id = Field(description="Id of a turn of the assistant (the answer that is meant) or of a memory.")
    label: Literal["up", "down", "retry"] = Field(description="`retry`: asked for another answer.")
    note: Words | None = Field(None, description="Why, in a sentence.")


class QueryBody(Body):
    """A question to compare with."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"text": "Where did I park?", "session": "chat-1"}]}
    )

    text: CleanWords = Field(description="The question, in plain words.")
    limit: int = Field(10, ge=1, le=LIMIT_MAX, description="Most questions in the answer.")
    session: Name | None = Field(
        None, description="The conversation going on; its questions are preferred a little."
    )


@router.post(IN_SCOPE + "/feedback", status_code=201, responses=errors(400, 404, 413))
def feedback(call: Writer, scope: OfUser, body: FeedbackBody) -> FeedbackAnswer:
    """Rate an answer or a memory. What is similar to it moves half as far; scores stay within -1 and 1."""
    effect = give_feedback(
        call.runtime, call.tenant_id, scope, target=body.target, label=Label(body.label), note=body.note
    )
    return FeedbackAnswer.model_validate(effect)


@router.post(IN_SCOPE + "/queries/search", tags=["recall"], responses=errors(400, 404))
def similar_queries(call: Reader, scope: OfUser, body: QueryBody) -> SimilarQueriesAnswer:
    """Questions the user asked that are like this one, best first. Reading writes nothing."""
    in_session = Scope(scope.agent, scope.user, body.session)
    rows = search(call.runtime, call.tenant_id, in_session, text=body.text, limit=body.limit)
    return SimilarQueriesAnswer(queries=list(map(SimilarQueryAnswer.model_validate, rows)))
