"""What routes of memories and entities answer with: rows field by field, so that nothing leaves by accident."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from pydantic import Field

from memory_app.records.records import Memory
from memory_app.web.answers import Answer, TurnAnswer


class RememberedAnswer(Answer):
    id: UUID
    outcome: str = Field(description="`inserted`, `linked`, `merged`, `reinforced` or `superseded`.")
    merged_count: int
    notes: list[str] = Field(
        description="What was changed before storing, such as an importance off the scale."
    )


class EmotionalStateAnswer(Answer):
    valence: str
    intensity: float
    user_impact: str | None


class RelationalContextAnswer(Answer):
    bond_strength: float | None
    communication_style: list[str]
    shared_references: list[str]
    user_values: list[str]
    user_struggles: list[str]


class MemoryAnswer(Answer):
    id: UUID
    kind: str
    subtype: str | None
    text: str
    subject: str | None
    relation: str | None
    object: str | None
    importance: int
    confidence: float
    tags: list[str]
    pinned: bool
    origin: str
    emotional_state: EmotionalStateAnswer | None
    relational_context: RelationalContextAnswer | None
    valid_from: datetime
    valid_until: datetime | None
    created_at: datetime
    last_seen: datetime | None
    last_recalled: datetime | None
    repeat_count: int
    recall_count: int
    feedback_score: float
    synthesis_type: str | None
    successor: UUID | None
    retired_at: datetime | None
    retired_reason: str | None
    session: str | None
    embedding_model: str | None


class MemoriesAnswer(Answer):
    memories: list[MemoryAnswer]
    cursor: UUID | None = Field(description="Give it back for the next page; null on the last one.")


class ParentAnswer(Answer):
    memory: MemoryAnswer
    how: str = Field(description="`merged`, `superseded` or the type of the link.")


class RunAnswer(Answer):
    id: UUID
    name: str
    state: str
    model: str | None
    prompt_version: str | None
    request_id: UUID | None = Field(description="The request that asked for it, if one did.")
    task_id: UUID | None = Field(description="The task that did it, as logs and Flower name it.")
    created_at: datetime
    finished_at: datetime | None


class WhyAnswer(Answer):
    memory: MemoryAnswer
    evidence: list[TurnAnswer]
    parents: list[ParentAnswer]
    successor: MemoryAnswer | None
    runs: list[RunAnswer]
    strength: float = Field(description="0 to 1; 1 is pinned.")
    fades_at: datetime | None = Field(description="When it is faded if nothing happens; null: never.")
    fate: str = Field(description="When and why it fades or goes, and what brings it back.")


class EntityAnswer(Answer):
    key: str
    type: str
    label: str
    aliases: list[str]
    summary: str | None
    first_seen: datetime
    last_seen: datetime
    mentions: int = Field(validation_alias="mention_count")


class EntitiesAnswer(Answer):
    entities: list[EntityAnswer]


def memory_answer(memory: Memory) -> MemoryAnswer:
    return MemoryAnswer.model_validate(memory)
