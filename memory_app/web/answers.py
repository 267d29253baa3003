"""The parts that answers share. An answer names each of its fields, so that no new column leaves by accident."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field


class Answer(BaseModel):
    """A JSON object of an answer, read from a record's attributes."""

    model_config = ConfigDict(from_attributes=True, frozen=True, defer_build=True)


class ErrorDetail(Answer):
    type: str = Field(description="Stable name of the kind of error.")
    message: str = Field(description="What is wrong and what to do; never what was sent.")
    field: str | None = Field(None, description="Dotted path of what to change.")
    retry_after: float | None = Field(None, description="Seconds until the same request may pass.")
    request_id: str | None = Field(None, description="Names the request in the log and in `memory trace`.")


class ErrorAnswer(Answer):
    """Every answer that is not a success."""

    error: ErrorDetail


class TurnAnswer(Answer):
    id: UUID
    session: str
    seq: int
    role: str
    name: str = Field(validation_alias="speaker")
    content: str = Field(validation_alias="text")
    at: datetime
    words_deleted_at: datetime | None = Field(
        None, description="When the agent's retention deleted its words; `content` is empty since."
    )


def next_cursor(ids: Sequence[UUID], limit: int) -> UUID | None:
    """The cursor of the next page: None when this one was not full."""
    return ids[-1] if ids and len(ids) >= limit else None
