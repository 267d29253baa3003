"""Answers of the routes of turns and sessions."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from pydantic import Field

from memory_app.web.answers import Answer, TurnAnswer


class TicketAnswer(Answer):
    id: UUID
    seq: int = Field(description="Place in the session, from 1, without gaps.")
    stage: str = Field(description="`accepted`, `indexed`, `extracted` or `failed`.")
    duplicate: bool = Field(description="The key was used before; this is the first ticket.")
    cleaned: bool = Field(description="Characters that cannot be stored were removed from the text.")
    redacted: dict[str, int] = Field(
        description="Private parts that were taken out before the turn was stored, by kind."
    )


class TicketsAnswer(Answer):
    tickets: list[TicketAnswer]


class TicketStateAnswer(Answer):
    id: UUID
    session: str
    seq: int
    stage: str = Field(description="`extracted` and `failed` are terminal.")
    reason: str | None = Field(description="Why it failed, or why no memory came of it.")
    waiting_for: str | None = Field(
        description="What a turn that is neither extracted nor failed waits for: a worker, a provider, its time, or "
        "those before it. For people; the words may change."
    )
    attempts: int
    memory_ids: list[UUID]
    accepted_at: datetime


class ListedTurnAnswer(TurnAnswer):
    idempotency_key: str | None
    emotional_tone: str | None
    tools_used: list[str]
    metadata: dict[str, Any] = Field(
        description="What the caller gave, and under `message` details of a chat message."
    )
    redacted: dict[str, int] = Field(
        description="Private parts that were taken out before the turn was stored, by kind."
    )


class TurnsAnswer(Answer):
    turns: list[ListedTurnAnswer]


class SessionAnswer(Answer):
    session: str = Field(validation_alias="name")
    active: bool
    turns: int
    extracted: int = Field(validation_alias="extracted_seq", description="Turns whose extraction is through.")
    created_at: datetime
    last_activity_at: datetime
    ended_at: datetime | None
    summary: str | None
    parked_reason: str | None


class SessionsAnswer(Answer):
    sessions: list[SessionAnswer]


class FailedTurnAnswer(Answer):
    id: UUID
    agent: str
    user: str | None
    session: str
    seq: int
    accepted_at: datetime
    failed_at: datetime
    reason: str
    attempts: int
    is_indexed: bool = Field(description="False: it failed while it was made searchable.")


class RefusedMessageAnswer(Answer):
    id: UUID
    message_id: str = Field(description="Id of the task, as its producer knows it.")
    reason: str = Field(description="`sent_before_erasure`, `no_sent_at` or `turn_erased`.")
    sent_at: datetime | None
    refused_at: datetime


class RefusedAnswer(Answer):
    messages: list[RefusedMessageAnswer]
    cursor: UUID | None


class FailedAnswer(Answer):
    turns: list[FailedTurnAnswer]
    cursor: UUID | None
