"""Route of the report about a person."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from fastapi.responses import PlainTextResponse, Response

from memory_app.records.audit import Action
from memory_app.transfer import person
from memory_app.transfer.answers import PersonReportAnswer
from memory_app.web.call import Reader, UserName, errors
from memory_app.web.edge import SLASH
from memory_app.web.strict import StrictRoute, audited

router = APIRouter(route_class=StrictRoute, tags=["transfer"])

Format = Annotated[Literal["json", "text"], Query(description="`text` is for people to read.")]

_TEXT: dict[int | str, dict[str, Any]] = {200: {"content": {"text/plain": {"schema": {"type": "string"}}}}}


@router.get("/v1/users/{user}/report", response_model=PersonReportAnswer, responses=_TEXT | errors())
@audited(Action.REPORT_USER)
def report_user(call: Reader, user: UserName, format: Format = "json") -> PersonReportAnswer | Response:
    """What is held about a person with all agents: how much, since when, and what is believed now. Somebody whom nobody
    knows has an empty report. All of it, word for word, is `GET /v1/users/{user}/export`."""
    report = person.report_user(call.runtime, call.tenant_id, user.replace(SLASH, "/"))
    if format == "text":
        return PlainTextResponse(person.as_text(report))
    return PersonReportAnswer.model_validate(report)
