"""Route of the report about a person."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import APIRouter, Query
from fastapi.responses import PlainTextResponse, Response
from pydantic import Field

from memory_app.records.audit import Action
from memory_app.transfer import person
from memory_app.web.answers import Answer
from memory_app.web.call import Reader, UserName, errors
from memory_app.web.edge import SLASH
from memory_app.web.strict import StrictRoute, audited

router = APIRouter(route_class=StrictRoute, tags=["transfer"])

Format = Annotated[Literal["json", "text"], Query(description="`text` is for people to read.")]

_TEXT: dict[int | str, dict[str, Any]] = {200: {"content": {"text/plain": {"schema": {"type": "string"}}}}}


class HeldAnswer(Answer):
    id: UUID
    kind: str
    text: str
    origin: str
    stored_at: datetime


class WithAgentAnswer(Answer):
    """What one agent holds about the person."""

    agent: str
    since: datetime
    first_turn_at: datetime | None
    last_turn_at: datetime | None
    counts: dict[str, int] = Field(description="Rows by table.")
    redacted: dict[str, int] = Field(
        description="What was taken out of their turns before these were stored, by kind."
    )
    memories: list[HeldAnswer] = Field(description="The current ones, 2,000 at most.")
    entities: list[str] = Field(description="Who and what the person spoke of, 500 at most.")


class PersonReportAnswer(Answer):
    """What is held about a person."""

    user: str
    reported_at: datetime
    erased_at: datetime | None = Field(description="When the name was erased last.")
    memories_elsewhere: int = Field(
        description="Memories for all users of an agent that rest on something the person said."
    )
    agents: list[WithAgentAnswer]


@router.get("/v1/users/{user}/report", response_model=PersonReportAnswer, responses=_TEXT | errors())
@audited(Action.REPORT_USER)
def report_user(call: Reader, user: UserName, format: Format = "json") -> PersonReportAnswer | Response:
    """What is held about a person with all agents: how much, since when, and what is believed now. Somebody whom nobody
    knows has an empty report. All of it, word for word, is `GET /v1/users/{user}/export`."""
    report = person.report_user(call.runtime, call.tenant_id, user.replace(SLASH, "/"))
    if format == "text":
        return PlainTextResponse(person.as_text(report))
    return PersonReportAnswer.model_validate(report)
