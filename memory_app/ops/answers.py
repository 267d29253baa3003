"""What routes for operators answer with."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from pydantic import Field

from memory_app.ops.origin import Origin
from memory_app.web.answers import Answer


class PartAnswer(Answer):
    ok: bool
    reason: str | None


class PipelineAnswer(Answer):
    unindexed: int
    oldest_unindexed_seconds: float
    due_sessions: int
    oldest_due_seconds: float
    failed: int


class ReadyAnswer(Answer):
    ok: bool
    parts: dict[str, PartAnswer]
    pipeline: PipelineAnswer | None


class LiveAnswer(Answer):
    ok: bool


class TracedTurnAnswer(Answer):
    id: UUID
    agent: str
    user: str
    session: str
    seq: int


class TracedRunAnswer(Answer):
    id: UUID
    name: str
    state: str
    attempts: int
    model: str | None


class TracedMemoryAnswer(Answer):
    id: UUID
    kind: str
    successor: UUID | None


class StepAnswer(Answer):
    at: datetime
    event: str = Field(
        description="Such as `turn accepted`, `turn indexed`, `extract started`, `fact stored`."
    )
    turn_id: UUID | None
    run_id: UUID | None
    memory_id: UUID | None
    request_id: UUID | None
    task_id: UUID | None
    reason: str | None


class TraceAnswer(Answer):
    id: UUID
    origin: Origin = Field(description="What the id belongs to.")
    turns: list[TracedTurnAnswer]
    runs: list[TracedRunAnswer]
    memories: list[TracedMemoryAnswer]
    steps: list[StepAnswer] = Field(description="What happened, in the order of time.")
    waiting_for: str | None = Field(description="What a turn that is not through waits for.")
