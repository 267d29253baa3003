"""What routes of transfer answer with."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from pydantic import Field

from memory_app.agents.answers import GrantAnswer
from memory_app.web.answers import Answer

Rows = list[dict[str, Any]]


class SnapshotAnswer(Answer):
    """A scope, row by row. An empty scope can be filled from it."""

    format: str
    version: int
    created_at: datetime
    scope: dict[str, Any]
    embedder: dict[str, Any] = Field(description="Kind, model and dimensions of its vectors.")
    canonical: dict[str, Any] = Field(
        description="Version of the normaliser, and a hash over the keys of the nodes."
    )
    counts: dict[str, int]
    nodes: Rows = Field(description="Memories, retired ones too.")
    links: Rows
    entities: Rows
    mentions: Rows
    sessions: Rows
    turns: Rows
    evidence: Rows


class ImportedAnswer(Answer):
    counts: dict[str, int] = Field(description="Rows stored, by the name of their list.")


class CheckpointAnswer(Answer):
    id: UUID
    session: str | None
    created_at: datetime
    nodes: int
    links: int


class CheckpointsAnswer(Answer):
    checkpoints: list[CheckpointAnswer]
    cursor: UUID | None


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
    grants: list[GrantAnswer] = Field(description="What other agents may recall of it.")


class PersonReportAnswer(Answer):
    """What is held about a person."""

    user: str
    reported_at: datetime
    erased_at: datetime | None = Field(description="When the name was erased last.")
    memories_elsewhere: int = Field(
        description="Memories for all users of an agent that rest on something the person said."
    )
    agents: list[WithAgentAnswer]
